"""Plan: the ordered kernel steps for one command. Pure data: it can be printed, compared, and carried out
without Python. Its language is the table in ``launcher/launch.h``."""

from __future__ import annotations

import os

from corral.errors import (
    CommandNotExecutable,
    CommandNotFound,
    CorralError,
    LaunchRefused,
    NotEnforceable,
    PolicyError,
)
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.jail.cgroups import Group
    from corral.jail.systemd import Carrier
    from corral.paths.places import Place

# One operation, its operands, and why it is there in a person's words.
Step = tuple[tuple[str, ...], str]

INLINE_LIMIT = 64 * 1024


class Draft:
    """A plan being written: hands out slots and takes steps down in order."""

    def __init__(self, first_slot: int = 0) -> None:
        self.steps: list[Step] = []
        self.passed: list[int] = []  # descriptors that must reach the launcher
        self._slots = first_slot

    def slot(self) -> str:
        self._slots += 1
        return str(self._slots - 1)

    def add(self, operation: str, *operands: object, why: str) -> None:
        self.steps.append(((operation, *map(str, operands)), why))

    def fill(self, operation: str, *operands: object, why: str) -> str:
        """A step that fills a new slot; returns the slot."""
        slot = self.slot()
        self.add(operation, slot, *operands, why=why)
        return slot

    def inherit(self, fd: int, why: str) -> str:
        self.passed.append(fd)
        return self.fill("fd", fd, why=why)

    def open_path(
        self, path: str, kind: int, why: str, device: object = "-", inode: object = "-", flags: int = 0
    ) -> str:
        return self.fill("open", "/", path, flags, kind, device, inode, why=why)

    def open_place(self, place: Place, why: str) -> str:
        """By path, and refused unless it is still the file or directory that was pinned."""
        return self.open_path(place.path, place.kind, why, place.device, place.inode)


class Plan(Record):
    """Steps and command, with what they do and do not hold. ``carrier``: what takes the launcher to where the steps are
    carried out, if it is not simply started. ``group``: the control group of this one run, if it has one."""

    backend: str
    steps: tuple[Step, ...]
    argv: tuple[str, ...]
    passed: tuple[int, ...] = ()
    covered: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    carrier: Carrier | None = None
    group: Group | None = None

    def words(self) -> list[str]:
        return [word for step, _ in self.steps for word in step] + ["--", *self.argv]

    def encode(self) -> bytes:
        """NUL-ended words, as the launcher reads them from a descriptor."""
        return os.fsencode("\0".join(self.words()) + "\0")

    def inline(self) -> list[str]:
        """The plan as arguments of the launcher: a snapshot, refused at launch if a place was replaced since.
        Every user can read it in the process list, so it holds no value of a variable."""
        if self.carrier is not None:
            raise NotEnforceable(
                "a systemd unit cannot be a prefix of a command; run the command through Corral"
            )
        if self.passed:
            raise PolicyError("a plan that inherits descriptors cannot be passed as arguments")
        words = self.words()
        if sum(len(os.fsencode(word)) + 1 for word in words) > INLINE_LIMIT:
            raise PolicyError(
                f"the plan is longer than {INLINE_LIMIT // 1024} KB; run the command through Corral"
            )
        return words

    def operations(self) -> list[str]:
        return [step[0] for step, _ in self.steps]

    def without(self, *operations: str) -> Plan:
        """The same plan with some operations left out: how tests show that each fence matters."""
        return self.replace(steps=tuple(s for s in self.steps if s[0][0] not in operations))

    def to_dict(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "argv": list(self.argv),
            "steps": [{"step": list(words), "why": why} for words, why in self.steps],
            "covered": list(self.covered),
            "not_covered": list(self.not_covered),
            "notes": list(self.notes),
            "carrier": list(self.carrier.arguments) if self.carrier is not None else [],
        }

    def refusal(self, step: int, errno: int) -> CorralError:
        """The typed error for a step that the launcher says failed."""
        text = os.strerror(errno)
        if step >= len(self.steps):
            return exec_error(self.argv[0], errno)
        words, why = self.steps[step]
        path = words[3] if words[0] == "open" else None
        detail = _EXPLAINED.get((words[0], errno)) or _EXPLAINED.get((words[0], 0)) or text
        return LaunchRefused(
            f"{why}: {detail.format(path=path)}; nothing was run", step=step, errno=errno, path=path
        )


def exec_error(program: str, errno: int) -> CorralError:
    if errno == 2:
        return CommandNotFound(f"{program}: not found inside the jail", path=program)
    return CommandNotExecutable(f"{program}: {os.strerror(errno)}", path=program)


# What an errno means where the system's own text would mislead. Second entry 0: any errno of that operation.
_EXPLAINED: dict[tuple[str, int], str] = {
    ("open", 2): "{path} is gone, or hidden inside the jail",
    ("open", 20): "{path} was replaced by something else",
    ("open", 24): "too many open files; raise the limit (ulimit -n) to 1024",
    ("open", 40): "{path} was replaced by a symbolic link",
    ("open", 116): "{path} was replaced since it was checked; open the environment anew",
    ("stdio", 2): "a file on standard input is not visible inside; use `cat FILE | corral run …`",
    ("stdio", 116): "a file on standard input is another one inside; use `cat FILE | corral run …`",
    ("stdio", 21): "a standard descriptor is a directory",
    ("stdio", 15): "a standard descriptor is a block device",
    ("stdio", 9): "a standard descriptor cannot be read or written (O_PATH)",
    ("namespaces", 1): "this host closes user namespaces to us",
    ("namespaces", 28): "the limit of user namespaces is reached (user.max_user_namespaces)",
    ("idmap", 22): "its file system cannot show files as another user's; use -m workspace-write",
    (
        "make",
        20,
    ): "something else lies there in the jail's own home; `corral changes` shows it, -j takes another jail",
    (
        "make",
        40,
    ): "a link lies there in the jail's own home; `corral changes` shows it, -j takes another jail",
    ("restrict", 7): "too many Landlock layers (16); corral is nested too deeply",
}


def describe(plan: Plan, *, width: int = 100) -> str:
    """The plan in words, one line a step."""
    import shlex

    lines = [f"backend    {plan.backend}", f"command    {shlex.join(plan.argv)}"]
    lines += [f"note       {note}" for note in plan.notes]
    if plan.carrier is not None:
        lines.append(f"through    {shlex.join(plan.carrier.arguments)}")
    shown: list[str] = []
    for words, why in plan.steps:
        operands = " ".join(w if len(w) <= 40 else w[:37] + "…" for w in words[1:])
        shown.append(f"  {why:<58.58} {words[0]} {operands}"[:width].rstrip())
    lines += ["steps", *shown]
    return "\n".join(lines)
