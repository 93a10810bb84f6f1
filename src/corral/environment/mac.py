"""A jail on macOS: `sandbox-exec` with the profile of the policy. Nobody has run this on a Mac yet.

There is no supervisor there. The command leads a process group, and that is ended with it; what leaves the group is
held by the profile, and lives on.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import time
from _thread import allocate_lock

from corral import claims as claim_table
from corral.environment.base import CommandResult, Posture
from corral.errors import NotEnforceable
from corral.jail import seatbelt
from corral.jail.spawn import Tail
from corral.jail.stdio import Attached
from corral.variables import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corral.policy import Policy

CHUNK = 1 << 16
LOOK_SECONDS = 0.05  # how often the clock, a cancel and the end are looked at


class SeatbeltJail:
    backend = seatbelt.NAME

    def __init__(self, policy: Policy, runner: Callable[..., int] | None) -> None:
        missing = seatbelt.missing()
        if missing and runner is None:
            raise NotEnforceable(f"seatbelt: {missing}")
        if policy.mode not in seatbelt.MODES:
            raise NotEnforceable(f"seatbelt has no mode {policy.mode}; it has {', '.join(seatbelt.MODES)}")
        lacking = [claim for claim in policy.demanded if claim not in seatbelt.claims(policy)]
        if lacking and policy.require:
            told = "; ".join(f"{claim_table.CLAIMS[claim]} ({claim})" for claim in lacking)
            raise NotEnforceable(f"seatbelt: {told}. Remedy: a policy with require=False accepts that")
        self.policy = policy
        self._runner = runner or os.posix_spawn
        self._demanded = policy.demanded if policy.require else ()
        self._lock = allocate_lock()
        self._cancels = 0
        self._proven = False

    def cancel(self) -> None:
        self._cancels += 1

    def start(
        self,
        argv: Sequence[str],
        root: str,
        policy: Policy,
        extra: Mapping[str, str],
        stdin: bytes | None,
        timeout: float | None,
        *,
        captured: bool,
    ) -> CommandResult:
        """One run to its end, in ``root``."""
        self._prove()
        scrubbed = scrub(policy.environment, os.environ)
        temp = os.path.realpath(tempfile.mkdtemp(prefix="corral-"))
        try:
            words = seatbelt.command(policy, os.path.realpath(root), argv, temp=temp)
            variables = {**scrubbed.variables, "TMPDIR": temp, "PWD": os.path.realpath(root), **extra}
            stdio = Attached(has_input=bool(stdin), captured=captured)
            begun, cancels = time.monotonic(), self._cancels
            output = Tail(policy.output_limit)
            wall = policy.limits.wall
            limit = wall if timeout is None else timeout if wall is None else min(wall, timeout)
            try:
                pid = self._spawn(words, root, variables, stdio)
                over, status = self._follow(pid, stdio, stdin or b"", output, limit, cancels)
            finally:
                stdio.close()
        finally:
            shutil.rmtree(temp, ignore_errors=True)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return CommandResult(
            argv=tuple(argv),
            exit_code=128 + number if number else os.WEXITSTATUS(status),
            signal=number,
            timed_out=over == "deadline",
            over=over,
            duration=time.monotonic() - begun,
            cpu_seconds=0.0,
            max_rss_kb=0,
            stdout_bytes=output.content(),
            stderr_bytes=b"",
            stdout_bytes_dropped=output.dropped,
            stderr_bytes_dropped=0,
            removed=scrubbed.removed,
            posture=self._posture(policy),
        )

    def _posture(self, policy: Policy) -> Posture:
        covered = seatbelt.claims(policy)
        return Posture(
            mode=policy.mode,
            mechanism=self.backend,
            network=str(policy.network),
            required=policy.require,
            demanded=policy.demanded,
            covered=tuple(claim for claim in claim_table.CLAIMS if claim in covered),
            not_covered=tuple(claim for claim in claim_table.CLAIMS if claim not in covered),
            enforcing=self._proven and not set(policy.demanded) - covered,
        )

    def _spawn(self, words: list[str], root: str, variables: Mapping[str, str], stdio: Attached) -> int:
        """posix_spawn has no working directory; a shell that does nothing else changes to it."""
        at = words.index("--") + 1
        enter = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', os.path.realpath(root)]
        argv = [*words[:at], *enter, *words[at:]]
        try:
            return self._runner(
                argv[0], argv, variables, file_actions=stdio.actions, setpgroup=0, setsigdef=(signal.SIGPIPE,)
            )
        finally:
            stdio.close_theirs()

    def _follow(
        self, pid: int, stdio: Attached, stdin: bytes, output: Tail, limit: float | None, cancels: int
    ) -> tuple[str, int]:
        """Until it is over: why we ended it, if we did, and its status. The group is ended either way."""
        deadline = None if limit is None else time.monotonic() + limit
        over, status, pending = "", None, memoryview(stdin)
        for fd in {stdio.input, stdio.output} - {-1}:
            os.set_blocking(fd, False)
        try:
            while status is None:
                pending = _exchange(stdio, pending, output)
                found, ended = os.waitpid(pid, os.WNOHANG)
                status = ended if found else None
                if deadline is not None and time.monotonic() >= deadline:
                    over = over or "deadline"
                if self._cancels != cancels:
                    over = over or "cancel"
                if over and status is None:
                    _end_group(pid)
        finally:
            _end_group(pid)
            if status is None:
                os.waitpid(pid, 0)
        while stdio.output >= 0 and _take(stdio.output, output):
            pass
        return over, status

    def _prove(self) -> None:
        """Tried once for each jail: all that is demanded where the system's own program is used, and in any case that a
        write inside lands and one outside does not."""
        with self._lock:
            if self._proven:
                return
            self._try_writes()
            if self._runner is os.posix_spawn:
                from corral.jail.seatbelt_probe import prove

                broken = [
                    f"{claim} ({why})" for claim, why in prove(self.policy).failed if claim in self._demanded
                ]
                if broken:
                    raise NotEnforceable(f"seatbelt: present but not enforcing: {'; '.join(broken)}")
            self._proven = True

    def _try_writes(self) -> None:
        with tempfile.TemporaryDirectory(prefix="corral-probe-", dir=os.path.expanduser("~")) as top:
            inside, outside = (os.path.join(os.path.realpath(top), name) for name in ("inside", "outside"))
            for path in (inside, outside):
                os.mkdir(path)
            policy = self.policy.replace(mode="workspace-write", roots=(), grants=(), writable=None)
            words = seatbelt.command(
                policy, inside, ["/bin/sh", "-c", ': > "$0/a"; : > "$1/b"', inside, outside]
            )
            null = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in (0, 1, 2)]
            pid = self._runner(words[0], words, {"PATH": "/usr/bin:/bin"}, file_actions=null)
            os.waitpid(pid, 0)
            if not os.path.exists(f"{inside}/a"):
                raise NotEnforceable("seatbelt: a command that must work does not; nothing was run")
            if os.path.exists(f"{outside}/b"):
                raise NotEnforceable("seatbelt: present but not enforcing: a write outside was not refused")


def _exchange(stdio: Attached, pending: memoryview, output: Tail) -> memoryview:
    """Wait a moment for something to read or write, and do it."""
    poll = select.poll()
    if stdio.output >= 0:
        poll.register(stdio.output, select.POLLIN)
    if stdio.input >= 0:
        poll.register(stdio.input, select.POLLOUT)
    for fd, _ in poll.poll(int(LOOK_SECONDS * 1000)):
        if fd == stdio.input:
            with contextlib.suppress(BlockingIOError):
                try:
                    pending = pending[os.write(fd, pending) :]
                except BrokenPipeError:
                    pending = memoryview(b"")
            if not pending:
                os.close(fd)
                stdio.input = -1
        elif not _take(fd, output):
            time.sleep(LOOK_SECONDS / 10)  # closed, and the command still runs
    return pending


def _take(fd: int, output: Tail) -> bool:
    try:
        chunk = os.read(fd, CHUNK)
    except BlockingIOError:
        return False
    output.add(chunk)
    return bool(chunk)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
