"""The file methods of the async environment: the same names, awaited, in a worker thread."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, overload

import anyio
import anyio.to_thread

from corral.files.handles import WriteHandle

if TYPE_CHECKING:
    import os

    from corral.environment.files import Entry, Level, WriteMode
    from corral.environment.local import LocalEnvironment
    from corral.files.access import AnyPath
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content

P = ParamSpec("P")
T = TypeVar("T")


class AsyncWriteHandle:
    """As :class:`corral.files.handles.WriteHandle`: nothing of it is there before it is closed, all of it afterwards,
    and leaving its ``async with`` by an exception leaves the old content."""

    def __init__(self, handle: WriteHandle) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def closed(self) -> bool:
        return self._handle.closed

    async def write(self, content: str | bytes) -> int:
        return await _in_thread(self._handle.write, content)

    async def writelines(self, lines: Iterable[str | bytes]) -> None:
        await _in_thread(self._handle.writelines, lines)

    async def close(self) -> None:
        await _in_thread(self._handle.close)

    async def discard(self) -> None:
        await _in_thread(self._handle.discard)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            self._handle.discard()  # at once: a cancelled task may not wait for a thread


class AsyncFileMethods:
    """See :class:`corral.environment.base.ExecutionEnvironment` for what each does."""

    async def _opened(self) -> LocalEnvironment:
        raise NotImplementedError

    def _known(self) -> LocalEnvironment:
        raise NotImplementedError

    @property
    def working_dir(self) -> str:
        return self._known().working_dir

    async def read_file(self, path: AnyPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return await _in_thread((await self._opened()).read_file, path, encoding=encoding, errors=errors)

    async def read_bytes(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        return await _in_thread((await self._opened()).read_bytes, path, limit=limit)

    if TYPE_CHECKING:

        @overload
        async def open(
            self, path: AnyPath, mode: Literal["r"] = "r", *, encoding: str = "utf-8"
        ) -> anyio.AsyncFile[str]: ...
        @overload
        async def open(
            self, path: AnyPath, mode: Literal["rb"], *, encoding: str = "utf-8"
        ) -> anyio.AsyncFile[bytes]: ...
        @overload
        async def open(
            self, path: AnyPath, mode: WriteMode, *, encoding: str = "utf-8"
        ) -> AsyncWriteHandle: ...

    async def open(self, path: AnyPath, mode: Any = "r", *, encoding: str = "utf-8") -> Any:
        """``async with await environment.open(…) as file:``"""
        file: Any = await _in_thread((await self._opened()).open, path, mode, encoding=encoding)
        return AsyncWriteHandle(file) if isinstance(file, WriteHandle) else anyio.wrap_file(file)

    async def write_file(
        self,
        path: AnyPath,
        content: Content,
        *,
        existing: Existing = "replace",
        links: Links = "refuse",
        encoding: str = "utf-8",
    ) -> int:
        local = await self._opened()
        return await _in_thread(
            local.write_file, path, content, existing=existing, links=links, encoding=encoding
        )

    async def remove_file(self, path: AnyPath) -> None:
        await _in_thread((await self._opened()).remove_file, path)

    async def remove_tree(self, path: AnyPath) -> None:
        await _in_thread((await self._opened()).remove_tree, path)

    async def rename(self, source: AnyPath, target: AnyPath, *, existing: Existing = "replace") -> None:
        await _in_thread((await self._opened()).rename, source, target, existing=existing)

    async def make_dir(self, path: AnyPath) -> None:
        await _in_thread((await self._opened()).make_dir, path)

    async def list_dir(self, path: AnyPath = ".") -> list[Entry]:
        return await _in_thread((await self._opened()).list_dir, path)

    async def walk(self, path: AnyPath = ".") -> AsyncIterator[Level]:
        levels = (await self._opened()).walk(path)
        while (level := await _in_thread(next, levels, None)) is not None:
            yield level

    async def stat(self, path: AnyPath) -> os.stat_result:
        return await _in_thread((await self._opened()).stat, path)

    async def glob(self, pattern: str) -> list[str]:
        return await _in_thread((await self._opened()).glob, pattern)


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await anyio.to_thread.run_sync(functools.partial(call, *args, **kwargs))
