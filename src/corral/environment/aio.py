"""AsyncLocalEnvironment: the twin of LocalEnvironment, with the same names, awaited. On asyncio and on trio.

Commands are started in a few worker threads, never on the event loop; from then on the loop waits for one descriptor of
each. Cancelling a call ends the command's tree, and the cancellation arrives when that is gone.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

try:
    import anyio
    import anyio.to_thread
except ImportError:
    raise ImportError("the async environment needs anyio: pip install 'corral[async]'") from None

from corral.environment.afiling import AsyncFileMethods
from corral.environment.aloop import Loop, loop_here
from corral.environment.aprocess import AsyncJob, AsyncProcess, despite_cancellation
from corral.environment.base import CommandResult, Output, Posture
from corral.environment.gate import check_choice, raise_if_failed
from corral.environment.jobs import Job
from corral.environment.local import LocalEnvironment
from corral.environment.process import await_command
from corral.environment.streaming import PIPE, Streaming
from corral.errors import PolicyError
from corral.jail.foreign import spawn
from corral.jail.plan import Plan
from corral.policy import Policy

if TYPE_CHECKING:
    from corral.changes import Applied, Change
    from corral.environment.gate import Shown
    from corral.environment.hooks import WrapHook
    from corral.files.changing import OpenHook, RemoveHook
    from corral.files.stamps import Stamps

__all__ = ["PIPE", "AsyncJob", "AsyncLocalEnvironment", "AsyncProcess", "Output"]

T = TypeVar("T")

SPAWNING_THREADS = 6


class AsyncLocalEnvironment(AsyncFileMethods):
    """Use it with ``async with``, or await :meth:`close`. Built when it is entered, or first used. Hooks are called in
    a worker thread."""

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        policy: Policy | None = None,
        *,
        lifetime: Literal["command", "environment"] = "command",
        files: Shown = "roots",
        stamps: Stamps | Literal["off"] | None = None,
        command_wrapper: WrapHook | None = None,
        opener: OpenHook | None = None,
        remover: RemoveHook | None = None,
    ) -> None:
        self.policy = policy if policy is not None else Policy.workspace_write()
        self.lifetime = lifetime
        self._build = functools.partial(
            LocalEnvironment,
            root,
            self.policy,
            lifetime=lifetime,
            files=files,
            stamps=stamps,
            command_wrapper=command_wrapper,
            opener=opener,
            remover=remover,
        )
        self._local: LocalEnvironment | None = None
        self._closed = False
        self._opening = anyio.Lock()
        self._loop: Loop | None = None
        self._processes: set[AsyncProcess] = set()

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncLocalEnvironment {self.policy.mode} {'closed' if self._closed else 'open'}>"

    @property
    def root(self) -> str:
        return self._known().root

    @property
    def posture(self) -> Posture:
        return self._known().posture

    @property
    def jobs(self) -> dict[str, AsyncJob]:
        """All background jobs by name, also those that have ended."""
        return {name: AsyncJob(job) for name, job in self._known().jobs.items()}

    def _known(self) -> LocalEnvironment:
        if self._local is None:
            raise PolicyError("this environment is not open yet; enter it with `async with`")
        return self._local

    async def _opened(self) -> LocalEnvironment:
        if self._closed:
            raise PolicyError("this environment is closed; open a new one")
        if self._local is None:
            async with self._opening:
                if self._local is None:
                    self._local = await self._in_thread(self._build, LocalEnvironment.close)
        return self._local

    async def close(self) -> None:
        """End all that still runs in it, and come back when that is gone, cancelled or not. Harmless twice."""
        self._closed = True
        local, self._local = self._local, None
        if local is None:
            return
        for process in self._processes:
            process.ask_to_end()
        while self._processes:
            await despite_cancellation(self._processes.pop().close)

        def shut() -> None:
            local.close()
            if self._loop is not None:
                self._loop.close()

        await despite_cancellation(functools.partial(anyio.to_thread.run_sync, shut))

    # ---- commands ----

    async def add_root(self, path: str | os.PathLike[str]) -> None:
        """One more root, from the next command on. For the host's side; nothing inside a jail can call it."""
        local = await self._opened()
        await anyio.to_thread.run_sync(local.add_root, path)
        self.policy = local.policy

    async def variables(self) -> dict[str, str]:
        """What a command gets if no environment is given for it."""
        return (await self._opened()).variables()

    async def changes(self) -> list[Change]:
        """What was changed in the workspace under review, or in the copied home of casual, and waits to be applied."""
        local = await self._opened()
        return await anyio.to_thread.run_sync(local.changes)

    async def apply(self, paths: Sequence[str] | None = None, *, allow_exec: bool = False) -> Applied:
        """Make these changes real, or all of them: all that are chosen, or none. For the host's side."""
        local = await self._opened()
        chosen = functools.partial(local.apply, paths, allow_exec=allow_exec)
        return await anyio.to_thread.run_sync(chosen)

    async def discard(self, paths: Sequence[str] | None = None) -> list[Change]:
        """Throw these changes away, or all of them."""
        local = await self._opened()
        return await anyio.to_thread.run_sync(local.discard, paths)

    async def plan(self, argv: Sequence[str], cwd: str | None = None) -> Plan:
        """What the kernel would be told for this command. Runs nothing."""
        local = await self._opened()
        return await anyio.to_thread.run_sync(local.plan, argv, cwd)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        keep: Literal["tail"] = "tail",
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """As LocalEnvironment.run. Cancelled, it ends the whole tree first."""
        check_choice("keep", keep, ("tail",))
        process = await self._launched(
            argv,
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
        )
        try:
            result = await process.wait()
        finally:
            await self._let_go(process)
        if check:
            raise_if_failed(result)
        return result

    async def shell(self, line: str, **options: Any) -> CommandResult:
        """One line for bash, never a login shell. Takes the options of :meth:`run`."""
        return await self.run(["bash", "-c", line], **options)

    async def exec_command(self, program: str, args: Sequence[str] = (), **options: Any) -> CommandResult:
        """A program and its arguments: the same as :meth:`run`, with its options."""
        return await self.run([program, *args], **options)

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | int | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "apart",
        pty: bool = False,
    ) -> AsyncProcess:
        """As LocalEnvironment.start; use what it returns with ``async with``."""
        return await self._launched(
            argv,
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            pty=pty,
        )

    async def background(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | int | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "merged",
    ) -> AsyncJob:
        """As LocalEnvironment.background."""
        local = await self._opened()
        call = functools.partial(
            local.background,
            name,
            argv,
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            _spawn=spawn,
        )
        return AsyncJob(await self._in_thread(call, Job.stop))

    # ---- parts ----

    async def _launched(self, argv: Sequence[str], **options: Any) -> AsyncProcess:
        local = await self._opened()

        def launch() -> Streaming:
            streaming = local._start(argv, spawn=spawn, **options)
            await_command(streaming)  # here too: the loop need not be told that it runs
            return streaming

        streaming = await self._in_thread(launch, Streaming.close)
        process = AsyncProcess(streaming, self._here(), self._processes.discard)
        self._processes.add(process)
        return process

    async def _let_go(self, process: AsyncProcess) -> None:
        self._processes.discard(process)
        await process.close()

    def _here(self) -> Loop:
        if self._loop is None:
            self._loop = loop_here(SPAWNING_THREADS)
        return self._loop

    async def _in_thread(self, call: Callable[[], T], undo: Callable[[T], object]) -> T:
        """In a worker thread. Cancelled meanwhile, what was made is undone before the cancellation arrives."""
        errand = _Errand(call, undo)
        try:
            return await self._here().in_thread(errand.carry_out)
        except anyio.get_cancelled_exc_class():
            await despite_cancellation(functools.partial(anyio.to_thread.run_sync, errand.call_off))
            raise


class _Errand(Generic[T]):
    """Something made in a thread for a task that may be gone when it is there."""

    def __init__(self, call: Callable[[], T], undo: Callable[[T], object]) -> None:
        self._call, self._undo = call, undo
        self._lock = threading.Lock()
        self._called_off = False
        self._made: list[T] = []

    def carry_out(self) -> T:
        with self._lock:  # held throughout: whoever calls it off waits for the end
            if self._called_off:
                raise PolicyError("called off before it began")  # nobody is there to see it
            self._made.append(self._call())
            return self._made[0]

    def call_off(self) -> None:
        with self._lock:
            self._called_off = True
            while self._made:
                self._undo(self._made.pop())
