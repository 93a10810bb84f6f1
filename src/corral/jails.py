"""Jail: one way to run a command, whatever holds it.

    jail = open_jail("systemd-run", Policy.workspace_write())
    jail.run(RunOpts(workspace, ["claude", "-p", prompt], api_key=key))         # output to our own terminal
    draft = jail.run_capture(RunOpts(workspace, ["claude", "-p", "…"])).stdout_bytes

A command that fails is a result. What cannot be held is refused, and nothing ran.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from corral.environment.gate import Gate
from corral.errors import PolicyError, UnknownBackend
from corral.jail.spawn import Run, Streams
from corral.jail.stdio import Attached
from corral.policy import Policy
from corral.record import Record
from corral.variables import EnvRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.environment.base import CommandResult
    from corral.environment.gate import Entry
    from corral.jail.plan import Plan
    from corral.workspace import Workspace

API_KEY = "ANTHROPIC_API_KEY"
BACKENDS = ("namespaces", "landlock", "systemd-run", "seatbelt")


class RunOpts(Record):
    """One run. ``env``: KEY=VALUE, in order; what has no ``=`` is left out. ``stdin`` None: nothing to read.

    With a workspace the command starts in it, by way of its bootstrap; without one, where we are."""

    workspace: Workspace | None = None
    command: Sequence[str] = ()
    env: Iterable[str] = ()
    api_key: str = ""
    stdin: bytes | str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.command, str) or not self.command:
            raise PolicyError(
                "command is a list of at least one word; for a shell line: ['bash', '-c', LINE]"
            )
        if isinstance(self.env, str):
            raise PolicyError(
                f"env is a list of KEY=VALUE, not one string: [{self.env.partition('=')[0]!r}=…]"
            )
        given = self.env
        entries = (
            [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given
        )
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "env", tuple(entries))

    def variables(self) -> dict[str, str]:
        found = {
            name: value for name, is_set, value in (entry.partition("=") for entry in self.env) if is_set
        }
        for name, value in found.items():
            EnvRule("set", name, value)  # raises for what is no name
        return {**found, API_KEY: self.api_key} if self.api_key else found

    def __repr__(self) -> str:
        """Without values: this ends up in logs."""
        names = [entry.partition("=")[0] for entry in self.env]
        where = self.workspace.path if self.workspace is not None else None
        return f"RunOpts(workspace={where!r}, command={self.command!r}, env={names!r})"


class Runner(Protocol):
    """Starts a program as ``os.posix_spawn`` does, whose keywords it gets, and gives back its pid."""

    def __call__(self, path: str, argv: Sequence[str], env: Mapping[str, str], /, **how: object) -> int: ...


class Jail(Protocol):
    """``cancel``: from any thread, end all that runs in it now; those results say ``over`` "cancel"."""

    backend: str

    def run(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult: ...

    def run_capture(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult: ...

    def cancel(self) -> None: ...


def open_jail(
    backend: str,
    policy: Policy | None = None,
    *,
    runner: Runner | None = None,
    properties: Iterable[str] = (),
) -> Jail:
    """``runner``: starts the program that carries the jail, for tests that only want to see it. ``properties``: further
    ones for systemd-run, each ``Name=value``; what a user manager would ignore is refused by name."""
    if backend not in BACKENDS:
        raise UnknownBackend(backend, BACKENDS)
    properties = tuple(properties)
    if properties and backend != "systemd-run":
        raise PolicyError(f"properties are systemd-run's; the backend is {backend}")
    policy = policy if policy is not None else Policy.workspace_write()
    if backend == "seatbelt":
        return MacJail(policy, runner)
    return HostJail(policy.replace(backend=backend), runner, properties)


def _settled(opts: RunOpts, policy: Policy) -> tuple[str, Policy, tuple[str, ...]]:
    """Where it runs, under which policy, and the words: in a workspace those of its bootstrap."""
    # The key comes from the options or not at all.
    policy = policy.replace(environment=(*policy.environment, EnvRule("drop", API_KEY)))
    if opts.workspace is None:
        return ".", policy, tuple(opts.command)
    from corral.workspace import command_in, policy_for

    return opts.workspace.path, policy_for(opts.workspace, policy), command_in(opts.workspace, opts.command)


def _input(opts: RunOpts) -> bytes | None:
    return opts.stdin.encode() if isinstance(opts.stdin, str) else opts.stdin


class HostJail:
    """On the tiers of the ladder: each run has its own enclosure, so each is held by what its policy says now."""

    def __init__(self, policy: Policy, runner: Runner | None, properties: tuple[str, ...] = ()) -> None:
        self.backend: str = policy.backend
        self.policy = policy
        self._runner = runner
        self._properties = properties
        self._lock = allocate_lock()
        self._running: set[Run] = set()
        self._cancels = 0
        if properties:
            from corral.jail.properties import check_properties

            check_properties(properties)

    def run(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult:
        """Its output goes to our own terminal; the result has none."""
        return self._run(opts, timeout, captured=False)

    def run_capture(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult:
        """``stdout_bytes`` is what it printed, to the policy's limit; its standard error is ours."""
        return self._run(opts, timeout, captured=True)

    def cancel(self) -> None:
        with self._lock:
            self._cancels += 1
            for run in self._running:
                run.ask_to_end()

    def _run(self, opts: RunOpts, timeout: float | None, *, captured: bool) -> CommandResult:
        root, policy, argv = _settled(opts, self.policy)
        cancels = self._cancels
        gate = Gate(root, policy, "command")
        try:
            entry = gate.admit(argv, None, None, opts.variables(), timeout)
            try:
                run = self._start(entry, opts, gate.output_limit(None), captured)
                try:
                    with self._lock:
                        self._running.add(run)
                        if self._cancels != cancels:  # while it was being started
                            run.ask_to_end()
                    outcome = run.finish()
                finally:
                    with self._lock:
                        self._running.discard(run)
            finally:
                gate.release(entry)
            result = gate.result(entry, outcome)
        finally:
            gate.close()
        return result.replace(over="cancel") if self._cancels != cancels and not result.over else result

    def _start(self, entry: Entry, opts: RunOpts, limit: int, captured: bool) -> Run:
        stdin = _input(opts)
        stdio = Attached(has_input=bool(stdin), captured=captured)
        return Run(
            self._with_properties(entry.plan),
            entry.words,
            entry.variables,
            Streams(stdin, merged=False, limit=limit),
            entry.deadline,
            stdio=stdio,
            spawn=self._runner,
        )

    def _with_properties(self, plan: Plan) -> Plan:
        if not self._properties or plan.carrier is None:
            return plan
        from corral.jail.properties import with_properties

        return plan.replace(carrier=with_properties(plan.carrier, self._properties))


class MacJail:
    """By sandbox-exec; see :mod:`corral.environment.mac`."""

    def __init__(self, policy: Policy, runner: Runner | None) -> None:
        from corral.environment.mac import SeatbeltJail

        self.backend = "seatbelt"
        self._jail = SeatbeltJail(policy, runner)

    def run(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult:
        return self._run(opts, timeout, captured=False)

    def run_capture(self, opts: RunOpts, *, timeout: float | None = None) -> CommandResult:
        return self._run(opts, timeout, captured=True)

    def cancel(self) -> None:
        self._jail.cancel()

    def _run(self, opts: RunOpts, timeout: float | None, *, captured: bool) -> CommandResult:
        root, policy, argv = _settled(opts, self._jail.policy)
        return self._jail.start(
            argv, root, policy, opts.variables(), _input(opts), timeout, captured=captured
        )
