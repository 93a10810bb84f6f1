"""The file methods of an environment: the same policy, roots and refusals as its commands."""

from __future__ import annotations

from corral.environment.base import ExecutionEnvironment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import IO, Any, Literal, overload

    from corral.environment.files import Entry, FileHalf, Level, WriteMode
    from corral.files.access import AnyPath
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content
    from corral.files.handles import WriteHandle


class FileMethods(ExecutionEnvironment):
    """By way of a file half."""

    def _file_half(self) -> FileHalf:
        raise NotImplementedError

    @property
    def working_dir(self) -> str:
        return self._file_half().working_dir

    def read_file(self, path: AnyPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._file_half().read_file(path, encoding=encoding, errors=errors)

    def read_bytes(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        return self._file_half().read_bytes(path, limit=limit)

    if TYPE_CHECKING:

        @overload
        def open(self, path: AnyPath, mode: Literal["r"] = "r", *, encoding: str = "utf-8") -> IO[str]: ...
        @overload
        def open(self, path: AnyPath, mode: Literal["rb"], *, encoding: str = "utf-8") -> IO[bytes]: ...
        @overload
        def open(self, path: AnyPath, mode: WriteMode, *, encoding: str = "utf-8") -> WriteHandle: ...

    def open(self, path: AnyPath, mode: Any = "r", *, encoding: str = "utf-8") -> Any:
        return self._file_half().open(path, mode, encoding=encoding)

    def write_file(
        self,
        path: AnyPath,
        content: Content,
        *,
        existing: Existing = "replace",
        links: Links = "refuse",
        encoding: str = "utf-8",
    ) -> int:
        return self._file_half().write_file(path, content, existing=existing, links=links, encoding=encoding)

    def remove_file(self, path: AnyPath) -> None:
        self._file_half().remove_file(path)

    def remove_tree(self, path: AnyPath) -> None:
        self._file_half().remove_tree(path)

    def rename(self, source: AnyPath, target: AnyPath, *, existing: Existing = "replace") -> None:
        self._file_half().rename(source, target, existing=existing)

    def make_dir(self, path: AnyPath) -> None:
        self._file_half().make_dir(path)

    def list_dir(self, path: AnyPath = ".") -> list[Entry]:
        return self._file_half().list_dir(path)

    def walk(self, path: AnyPath = ".") -> Iterator[Level]:
        return self._file_half().walk(path)

    def stat(self, path: AnyPath) -> os.stat_result:
        return self._file_half().stat(path)

    def glob(self, pattern: str) -> list[str]:
        return self._file_half().glob(pattern)
