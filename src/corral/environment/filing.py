"""The file methods of an environment: the same policy, roots and refusals as its commands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import IO

    from corral.environment.files import Entry, FileHalf
    from corral.files.access import AnyPath
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content


class FileMethods:
    """Paths are relative to the workspace, or absolute below a root. Each method does one thing or raises a typed error
    that is also the matching built-in; what it refused left nothing behind."""

    def _file_half(self) -> FileHalf:
        raise NotImplementedError

    @property
    def working_dir(self) -> str:
        return self._file_half().working_dir

    def read_file(self, path: AnyPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._file_half().read_file(path, encoding=encoding, errors=errors)

    def read_bytes(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        return self._file_half().read_bytes(path, limit=limit)

    def open(self, path: AnyPath, *, encoding: str = "utf-8") -> IO[str]:
        """A text file for reading. To write, :meth:`write_file` takes anything that can be read."""
        return self._file_half().open(path, "r", encoding=encoding)

    def write_file(
        self, path: AnyPath, content: Content, *, existing: Existing = "replace", links: Links = "refuse"
    ) -> int:
        """Whole or absent. ``existing`` "refuse": only a new file."""
        return self._file_half().write_file(path, content, existing=existing, links=links)

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

    def stat(self, path: AnyPath) -> os.stat_result:
        return self._file_half().stat(path)

    def glob(self, pattern: str) -> list[str]:
        return self._file_half().glob(pattern)
