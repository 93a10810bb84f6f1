"""Gate: what every command of an environment passes on its way in, and what is given back when it is gone."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from contextlib import contextmanager

from corral.denials.summary import publish
from corral.environment.base import CommandResult, posture_of
from corral.environment.hooks import Command, Hooks
from corral.environment.temp import make_temp, remove_temp
from corral.errors import CommandFailed, CommandTimeout, PolicyError
from corral.jail.enclosure import Enclosure
from corral.jail.launch import reap_leaving
from corral.variables import Scrubber

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from corral.denials import Denial
    from corral.environment.files import FileHalf
    from corral.environment.keeping import Keeping
    from corral.files.stamps import Stamps
    from corral.jail.ground import Ground
    from corral.jail.joining import SharedJail
    from corral.jail.plan import Plan
    from corral.jail.spawn import Outcome
    from corral.paths.beneath import Anchor
    from corral.paths.places import Place
    from corral.policy import Policy

    Shown = Literal["roots", "view"]

TEMP_VARIABLES = ("TMPDIR", "TMP", "TEMP")
LIFETIMES = ("command", "environment")
FILES = ("roots", "view")


class Entry:
    """One command, ready to be launched."""

    __slots__ = ("cwd", "deadline", "ground", "plan", "removed", "started", "variables", "words")

    def __init__(
        self,
        plan: Plan,
        words: bytes,
        variables: dict[str, str],
        removed: tuple[str, ...],
        deadline: float | None,
        ground: Ground | None,
        started: float,
        cwd: str,
    ) -> None:
        self.plan = plan
        self.words = words
        self.variables = variables
        self.removed = removed
        self.deadline = deadline
        self.ground = ground
        self.started = started
        self.cwd = cwd


class Gate:
    """``lifetime`` "environment": all commands go into one jail, which lives until `close`. ``files`` "view": not only
    the roots, but whatever the commands see. ``stamps`` None: this gate's own; "off": none."""

    def __init__(
        self,
        root: str,
        policy: Policy,
        lifetime: str,
        *,
        files: Shown = "roots",
        stamps: Stamps | Literal["off"] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        check_choice("lifetime", lifetime, LIFETIMES)
        check_choice("files", files, FILES)
        self.policy = policy
        self._shown = files
        self._stamps = stamps
        self._hooks = hooks or Hooks()
        self._temp: tuple[Place, int] | None = None
        self._summary: str | None = None
        self._keeping: Keeping | None = None
        self._inside: set[Entry] = set()
        self._outgrown: list[Enclosure] = []
        self._anchors: list[Anchor] = []
        self._files: FileHalf | None = None
        self._lock = allocate_lock()
        self._shared: SharedJail | None = None
        # Absolute paths may go through the links that this one goes through.
        self._given = os.path.abspath(root)
        self.enclosure = Enclosure(root, policy)
        try:
            if files == "view":
                from corral.environment.viewing import check_view

                check_view(self.enclosure.choice.backend)
            if lifetime == "environment":
                from corral.jail.joining import SharedJail

                self._shared = SharedJail(self.enclosure)
        except BaseException:
            self.enclosure.close()
            raise
        self._scrub = Scrubber(policy.environment)
        self.posture = posture_of(policy, self.enclosure.choice)

    def files(self) -> FileHalf:
        """The file half, made when it is first asked for, from the very places that the commands are held to."""
        if self._shown == "view" or self.enclosure.review is not None:
            self._prepare_temp()
        with self._lock:
            if self._files is None:
                self._files = self._make_files()
            return self._files

    def _make_files(self) -> FileHalf:
        from corral.environment.files import FileHalf
        from corral.files.stamps import Stamps
        from corral.paths.beneath import Anchor

        enclosure, hidden, view = self.enclosure, list(self.enclosure.hidden), None
        roots = [Anchor(place.path, fd=self._root_descriptor(place)) for place in enclosure.roots]
        roots[0].given = self._given
        self._anchors += roots
        if self._shown == "view":
            from corral.environment.viewing import hidden_in_view, view_of

            view = view_of(enclosure, None if self._temp is None else self._temp[0])
            hidden += hidden_in_view(enclosure)
            self._anchors += (*view.readable, *view.scratch)
        if self._stamps is None:
            self._stamps = Stamps()
        return FileHalf(
            roots,
            self.policy,
            # A root is among these where a private directory covers it; its own globs say what may be written.
            read_only=[place.path for place in enclosure.read_only if place not in enclosure.roots],
            hidden=hidden,
            stamps=None if self._stamps == "off" else self._stamps,
            view=view,
            opener=self._hooks.opener,
            remover=self._hooks.remover,
        )

    def _root_descriptor(self, root: Place) -> int:
        """A workspace under review is its copy, to files as to commands."""
        review = self.enclosure.review
        if review is not None and root is self.enclosure.root:
            return self.enclosure.stage_places[review.staged]
        return root.fd

    def add_root(self, path: str) -> None:
        """One more root, from the next command on. For the host's side; nothing inside a jail can call it."""
        if self._shared is not None:
            raise PolicyError("a jail that all commands share cannot be widened; open a new environment")
        policy = self.policy.replace(roots=(*self.policy.roots, os.path.abspath(path)))
        wider = Enclosure(self.enclosure.root.path, policy)
        with self._lock:
            self._outgrown.append(self.enclosure)  # a launch under way may still need its descriptors
            self.policy, self.enclosure, self._files = policy, wider, None
            if self._temp is not None:
                self._furnish(self._temp[0])

    def _furnish(self, temp: Place) -> None:
        """The private temp directory, and beside it the summary that the jail shows."""
        self.enclosure.use_temp(temp)
        self._summary = publish(self.enclosure, os.path.dirname(temp.path))

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
            if self.enclosure.wants_group():
                from corral.jail.cgroups import remove_left

                remove_left()  # commands left something in theirs, which is gone with the jail
        reap_leaving(wait=True)
        for anchor in self._anchors:
            anchor.close()
        for enclosure in (*self._outgrown, self.enclosure):
            enclosure.close()
        if self._keeping is not None:
            self._keeping.close()
            self._keeping = None
        if self._temp is not None:
            remove_temp(*self._temp)
            self._temp = None

    def admit(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        extra_env: Mapping[str, str] | None,
        timeout: float | None,
        *,
        terminal: bool = False,
    ) -> Entry:
        """Whoever gets an entry must `release` it."""
        deadline = self._deadline(timeout)
        self._prepare_temp()
        variables, removed = self._variables(env, extra_env or {})
        enclosure = self.enclosure
        where = os.path.join(enclosure.root.path, cwd or "").rstrip("/") or "/"
        if self._hooks.wrapper is not None and not isinstance(argv, str):
            command = Command(list(argv), where, variables, deadline, terminal)
            self._hooks.wrap(command)
            argv, cwd, where, variables = command.argv, command.cwd, command.cwd, command.env
            deadline = self._deadline(command.timeout)
        started = time.monotonic()
        group, ground = enclosure.new_group(), None
        try:
            ground = enclosure.take_ground() if self._shared is None else self._shared.ground()
            plan, words = enclosure.launchable(argv, cwd, ground, terminal=terminal, group=group)
        except BaseException:
            if group is not None:
                group.remove()
            self._give_back(ground)
            raise
        entry = Entry(plan, words, variables, removed, deadline, ground, started, where)
        self._inside.add(entry)
        return entry

    def release(self, entry: Entry) -> None:
        self._inside.discard(entry)
        if entry.plan.group is not None:
            entry.plan.group.remove()
        self._give_back(entry.ground)
        entry.ground = None

    def _give_back(self, ground: Ground | None) -> None:
        if self._shared is None:
            self.enclosure.give_back(ground)

    def result(self, entry: Entry, outcome: Outcome) -> CommandResult:
        signal = outcome.wait_status & 0x7F
        exit_code = 128 + signal if signal else outcome.wait_status >> 8
        stdout, stderr = outcome.stdout.content(), outcome.stderr.content()
        return CommandResult(
            argv=entry.plan.argv,
            exit_code=exit_code,
            signal=signal or None,
            timed_out=outcome.over == "deadline",
            over=outcome.over,
            duration=time.monotonic() - entry.started,
            cpu_seconds=outcome.cpu_seconds,
            max_rss_kb=outcome.max_rss_kb,
            stdout_bytes=stdout,
            stderr_bytes=stderr,
            stdout_bytes_dropped=outcome.stdout.dropped,
            stderr_bytes_dropped=outcome.stderr.dropped,
            removed=entry.removed,
            posture=self.posture,
            denials=self._denials(entry, stdout, stderr, exit_code) if exit_code else (),
        )

    def _denials(self, entry: Entry, stdout: bytes, stderr: bytes, exit_code: int) -> tuple[Denial, ...]:
        """What of its output was ours: looked for only after a failure."""
        from corral.denials import find_denials

        return find_denials(stdout, stderr, self.enclosure, entry.cwd, entry.plan.argv, exit_code)

    def output_limit(self, asked: int | None) -> int:
        limit = self.policy.output_limit if asked is None else asked
        if limit <= 0:
            raise PolicyError("output_limit must be above 0; output is never kept without bound")
        return limit

    # ---- parts ----

    def _prepare_temp(self) -> None:
        with self._lock:
            if self.enclosure.jail is not None:
                self._enter_jail()
            elif self._temp is None and self.posture.active:
                self._temp = make_temp(self.enclosure.writable)
                self._furnish(self._temp[0])

    def _enter_jail(self) -> None:
        """A named jail has a /tmp of its own, shared by all its runs."""
        if self._keeping is None:
            from corral.environment.keeping import Keeping

            self._keeping = Keeping(self.enclosure)
            self._summary = publish(self.enclosure)

    @contextmanager
    def left(self) -> Iterator[None]:
        """Out of the named jail for a while; the next command enters it anew. Refused while something runs in it."""
        with self._lock:
            if self._shared is not None:
                raise PolicyError("a jail that all commands share is left by closing the environment")
            if self._inside:
                raise PolicyError("a command still runs in this environment; wait for it, or close it")
            reap_leaving(wait=True)  # a supervisor on its way out still has the copy mounted
            while self._anchors:
                self._anchors.pop().close()
            self._files = None
            self.enclosure.leave_stage()
            if self._keeping is not None:
                self._keeping.close()
                self._keeping = None
            yield

    def _deadline(self, timeout: float | None) -> float | None:
        wall = self.policy.limits.wall
        if timeout is not None and timeout < 0:
            raise PolicyError("timeout must not be negative; None means no limit")
        return wall if timeout is None else timeout if wall is None else min(wall, timeout)

    def variables(self) -> dict[str, str]:
        """What a command gets if no environment is given for it."""
        self._prepare_temp()
        return self._variables(None, {})[0]

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
        if self._summary is not None:
            variables["CORRAL"] = self._summary
        return {**variables, **extra}, scrubbed.removed


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PolicyError(f"{name} is {' or '.join(known)}, not {value!r}")


def raise_if_failed(result: CommandResult) -> None:
    name = result.argv[0]
    if result.timed_out:
        raise CommandTimeout(f"{name}: command timed out after {result.duration:.3g}s", result=result)
    if result.exit_code:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.exit_code}"
        raise CommandFailed(f"{name}: {how}", result=result)
