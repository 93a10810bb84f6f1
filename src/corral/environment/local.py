"""LocalEnvironment: commands on this machine, in the jail that the policy and the host allow."""

from __future__ import annotations

import os
import time
import warnings
from _thread import allocate_lock

from corral.environment.base import CommandResult, Posture
from corral.environment.temp import make_temp, remove_temp
from corral.errors import CommandFailed, CommandTimeout, PolicyError
from corral.jail.enclosure import Enclosure
from corral.jail.spawn import Run, Streams, reap_leaving
from corral.policy import Policy
from corral.variables import Scrubber

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Literal, Self

    from corral.jail.plan import Plan
    from corral.paths.places import Place

TEMP_VARIABLES = ("TMPDIR", "TMP", "TEMP")


class LocalEnvironment:
    """A workspace on this machine. Use it with ``with``, or call :meth:`close`."""

    def __init__(self, root: str | os.PathLike[str] = ".", policy: Policy | None = None) -> None:
        self.policy = policy if policy is not None else Policy.workspace_write()
        self._temp: tuple[Place, int] | None = None
        self._lock = allocate_lock()
        self._closed = True
        self._enclosure = Enclosure(os.fspath(root), self.policy)
        self._closed = False
        self._scrub = Scrubber(self.policy.environment)
        choice = self._enclosure.choice
        self.posture = Posture(
            mode=self.policy.mode,
            mechanism=choice.backend,
            network=str(self.policy.network),
            required=self.policy.require,
            demanded=self.policy.demanded,
            covered=choice.covered,
            not_covered=choice.not_covered,
        )

    @property
    def root(self) -> str:
        return self._enclosure.root.path

    def close(self) -> None:
        """End it: the private temp directory is removed. Harmless twice."""
        if self._closed:
            return
        self._closed = True
        reap_leaving(wait=True)
        self._enclosure.close()
        if self._temp is not None:
            remove_temp(*self._temp)
            self._temp = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        return f"<LocalEnvironment {self.root} {self.posture.mode} by {self.posture.mechanism}>"

    # ---- commands ----

    def plan(self, argv: Sequence[str], cwd: str | None = None) -> Plan:
        """What the kernel would be told for this command. Runs nothing."""
        self._check_open()
        return self._enclosure.plan(argv, cwd)

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
        """Run a command and return when its whole tree is gone.

        A non-zero exit and a time-out are results; ``check=True`` raises instead. ``env`` None means the caller's
        environment without what the policy drops; given, exactly that. ``extra_env`` is added as it is.
        """
        self._check_open()
        for name, value, known in (("keep", keep, ("tail",)), ("stderr", stderr, ("apart", "merged"))):
            if value not in known:
                raise PolicyError(f"{name} is {' or '.join(known)}, not {value!r}")
        limit = self.policy.output_limit if output_limit is None else output_limit
        if limit <= 0:
            raise PolicyError("output_limit must be above 0; output is never kept without bound")
        self._prepare_temp()
        variables, removed = self._variables(env, extra_env or {})
        streams = Streams(stdin.encode() if isinstance(stdin, str) else stdin, stderr == "merged", limit)
        started = time.monotonic()
        ground = self._enclosure.take_ground()
        try:
            plan, words = self._enclosure.launchable(argv, cwd, ground)
            outcome = Run(plan, words, variables, streams, self._deadline(timeout)).finish()
        finally:
            self._enclosure.give_back(ground)
        signal = outcome.wait_status & 0x7F
        result = CommandResult(
            argv=plan.argv,
            exit_code=128 + signal if signal else outcome.wait_status >> 8,
            signal=signal or None,
            timed_out=outcome.over == "deadline",
            over=outcome.over,
            duration=time.monotonic() - started,
            cpu_seconds=outcome.cpu_seconds,
            max_rss_kb=outcome.max_rss_kb,
            stdout_bytes=outcome.stdout.content(),
            stderr_bytes=outcome.stderr.content(),
            stdout_bytes_dropped=outcome.stdout.dropped,
            stderr_bytes_dropped=outcome.stderr.dropped,
            removed=removed,
            posture=self.posture,
        )
        if check:
            _raise_if_failed(result)
        return result

    def shell(
        self,
        line: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """One line for bash, never a login shell: no start-up file puts back what was scrubbed."""
        return self.run(
            ["bash", "-c", line],
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            check=check,
        )

    def exec_command(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """A program and its arguments: the same as :meth:`run`."""
        return self.run(
            [program, *args],
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            check=check,
        )

    # ---- parts ----

    def _check_open(self) -> None:
        if self._closed:
            raise PolicyError("this environment is closed")

    def _prepare_temp(self) -> None:
        with self._lock:
            if self._temp is None and self.posture.active:
                self._temp = make_temp()
                self._enclosure.use_temp(self._temp[0])

    def _deadline(self, timeout: float | None) -> float | None:
        wall = self.policy.limits.wall
        if timeout is not None and timeout < 0:
            raise PolicyError("timeout must not be negative; None means no limit")
        return wall if timeout is None else timeout if wall is None else min(wall, timeout)

    def _variables(
        self, env: Mapping[str, str] | None, extra: Mapping[str, str]
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        if env is not None:
            return {**env, **extra}, ()
        if not self.posture.active:
            return {**os.environ, **extra}, ()
        scrubbed = self._scrub(os.environ)
        variables = dict(scrubbed.variables)
        for name in TEMP_VARIABLES:
            variables.pop(name, None)
        if self.posture.mechanism == "landlock" and self._temp is not None:
            variables["TMPDIR"] = self._temp[0].path
        return {**variables, **extra}, scrubbed.removed


def _raise_if_failed(result: CommandResult) -> None:
    name = result.argv[0]
    if result.timed_out:
        raise CommandTimeout(f"{name}: command timed out after {result.duration:.3g}s", result=result)
    if result.exit_code:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        raise CommandFailed(f"{name}: {how}", result=result)
