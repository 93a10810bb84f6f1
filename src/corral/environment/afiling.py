"""The file methods of the async environment: the same names, awaited, in a worker thread."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import anyio.to_thread

if TYPE_CHECKING:
    import os
    from typing import IO

    from corral.environment.files import Entry
    from corral.environment.local import LocalEnvironment
    from corral.files.access import AnyPath
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content

P = ParamSpec("P")
T = TypeVar("T")


class AsyncFileMethods:
    """See :class:`corral.environment.filing.FileMethods` for what each does."""

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

    async def open(self, path: AnyPath, *, encoding: str = "utf-8") -> IO[str]:
        return await _in_thread((await self._opened()).open, path, encoding=encoding)

    async def write_file(
        self, path: AnyPath, content: Content, *, existing: Existing = "replace", links: Links = "refuse"
    ) -> int:
        local = await self._opened()
        return await _in_thread(local.write_file, path, content, existing=existing, links=links)

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

    async def stat(self, path: AnyPath) -> os.stat_result:
        return await _in_thread((await self._opened()).stat, path)

    async def glob(self, pattern: str) -> list[str]:
        return await _in_thread((await self._opened()).glob, pattern)


async def _in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await anyio.to_thread.run_sync(functools.partial(call, *args, **kwargs))
