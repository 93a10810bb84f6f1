"""LocalEnvironment: commands on this machine, in the jail that the policy and the host allow."""

from __future__ import annotations

import os
import warnings
from _thread import allocate_lock

from corral.environment import reviewing
from corral.environment.filing import FileMethods
from corral.environment.gate import Gate, check_choice, raise_if_failed
from corral.environment.hooks import Hooks
from corral.errors import PolicyError
from corral.jail.spawn import Run, Streams
from corral.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from corral.changes import Applied, Change
    from corral.environment.base import CommandResult
    from corral.environment.files import FileHalf
    from corral.environment.gate import Shown
    from corral.environment.hooks import WrapHook
    from corral.environment.jobs import Job, Jobs
    from corral.environment.process import Process
    from corral.environment.streaming import Streaming
    from corral.files.changing import OpenHook, RemoveHook
    from corral.files.stamps import Stamps
    from corral.jail.plan import Plan

STDERR = ("apart", "merged")


class LocalEnvironment(FileMethods):
    """A workspace on this machine. Use it with ``with``, or call :meth:`close`.

    ``lifetime`` "command": nothing outlives its call. "environment": all commands and jobs share one jail, and what
    they leave running lives until :meth:`close`.

    ``files`` "roots": the file methods reach what lies below the roots. "view": whatever the commands see, as they see
    it. ``stamps``: what remembers which files were read, so that none is written over that has changed since; None:
    this environment does; "off": nobody.

    ``command_wrapper``, ``opener``, ``remover``: what the host does itself (see :mod:`corral.environment.hooks`)."""

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
        self._closed = True
        self._running: set[Streaming] = set()
        self._jobs: Jobs | None = None
        self._lock = allocate_lock()
        hooks = Hooks(command_wrapper, opener, remover)
        self._gate = Gate(os.fspath(root), self.policy, lifetime, files=files, stamps=stamps, hooks=hooks)
        self._closed = False
        self.posture = self._gate.posture

    @property
    def root(self) -> str:
        return self._gate.enclosure.root.path

    def close(self) -> None:
        """End it: all that still runs in it ends, and the private temp directory is removed. Harmless twice."""
        if self._closed:
            return
        self._closed = True
        if self._jobs is not None:
            self._jobs.close()
        running = list(self._running)
        for streaming in running:
            streaming.ask_to_end()  # all at once, then one after the other until they are gone
        for streaming in running:
            streaming.close()
        self._gate.close()

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        return f"<LocalEnvironment {self.root} {self.posture.mode} by {self.posture.mechanism}>"

    # ---- commands ----

    def _file_half(self) -> FileHalf:
        self._check_open()
        return self._gate.files()

    def add_root(self, path: str | os.PathLike[str]) -> None:
        """One more root, from the next command on. For the host's side; nothing inside a jail can call it."""
        self._check_open()
        self._gate.add_root(os.fspath(path))
        self.policy = self._gate.policy

    def variables(self) -> dict[str, str]:
        """What a command gets if no environment is given for it."""
        self._check_open()
        return self._gate.variables()

    # ---- review ----

    def changes(self) -> list[Change]:
        """What was changed in the workspace under review, or in the copied home of casual, and waits to be applied."""
        self._check_open()
        return reviewing.changes(self._gate)

    def apply(self, paths: Sequence[str] | None = None, *, allow_exec: bool = False) -> Applied:
        """Make these changes real, or all of them: all that are chosen, or none. For the host's side."""
        self._check_open()
        return reviewing.apply(self._gate, paths, allow_exec=allow_exec)

    def discard(self, paths: Sequence[str] | None = None) -> list[Change]:
        """Throw these changes away, or all of them."""
        self._check_open()
        return reviewing.discard(self._gate, paths)

    def plan(self, argv: Sequence[str], cwd: str | None = None) -> Plan:
        """What the kernel would be told for this command. Runs nothing."""
        self._check_open()
        return self._gate.enclosure.plan(argv, cwd)

    def run(
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
        self._check_open()
        check_choice("keep", keep, ("tail",))
        check_choice("stderr", stderr, STDERR)
        gate = self._gate
        limit = gate.output_limit(output_limit)
        streams = Streams(stdin.encode() if isinstance(stdin, str) else stdin, stderr == "merged", limit)
        entry = gate.admit(argv, cwd, env, extra_env, timeout)
        try:
            outcome = Run(entry.plan, entry.words, entry.variables, streams, entry.deadline).finish()
        finally:
            gate.release(entry)
        result = gate.result(entry, outcome)
        if check:
            raise_if_failed(result)
        return result

    # ---- commands that are talked to, or left alone ----

    def start(
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
    ) -> Process:
        """Start a command and talk to it. Use it with ``with``; it ends with the block, and with the environment.

        ``stdin=PIPE`` keeps its input open for `write`. ``pty``: a terminal of its own, for input too.
        """
        from corral.environment.process import Process

        return Process(
            self._start(
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
        )

    def background(
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
        _spawn: Callable[..., int] | None = None,
    ) -> Job:
        """Start a command and leave it alone: its output is taken and kept, to the limit. It ends with the
        environment. A name is free again when its job has ended."""
        from corral.environment.jobs import Jobs

        with self._lock:
            if self._jobs is None:
                self._jobs = Jobs()

        def started() -> Streaming:
            return self._start(
                argv,
                cwd=cwd,
                env=env,
                extra_env=extra_env,
                stdin=stdin,
                timeout=timeout,
                output_limit=output_limit,
                stderr=stderr,
                spawn=_spawn,
            )

        return self._jobs.add(name, started)

    @property
    def jobs(self) -> dict[str, Job]:
        """All background jobs by name, also those that have ended."""
        return {} if self._jobs is None else self._jobs.by_name()

    # ---- parts ----

    def _check_open(self) -> None:
        if self._closed:
            raise PolicyError("this environment is closed; open a new one")

    def _start(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        extra_env: Mapping[str, str] | None,
        stdin: bytes | str | int | None,
        timeout: float | None,
        output_limit: int | None,
        stderr: str,
        pty: bool = False,
        spawn: Callable[..., int] | None = None,
    ) -> Streaming:
        from corral.environment.streaming import Streaming

        self._check_open()
        check_choice("stderr", stderr, STDERR)
        gate = self._gate
        limit = gate.output_limit(output_limit)
        entry = gate.admit(argv, cwd, env, extra_env, timeout, terminal=pty)
        try:
            streaming = Streaming(
                gate,
                entry,
                stdin=stdin,
                merged=stderr == "merged",
                pty=pty,
                limit=limit,
                spawn=spawn,
                ended=self._running.discard,
            )
        except BaseException:
            gate.release(entry)
            raise
        self._running.add(streaming)
        return streaming
