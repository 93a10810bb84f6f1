"""Delegation: where, if anywhere, this process may make control groups (version 2) that count memory.

What runs is never moved to where it is bound by less than its caller: a group is made below the caller's own, or beside
it if that one has no limits. Looking changes nothing.
"""

from __future__ import annotations

import os

from corral.jail.site import is_below, unescape
from corral.record import Record

CONTROLLERS = ("memory", "pids")
# Limits of a caller's group that a group beside it would escape, and how each says that it does not limit.
BOUNDS = {"memory.max": "max", "memory.high": "max", "cpu.max": "max", "io.max": "", "cpuset.cpus": ""}


class Delegation(Record):
    """A directory that groups may be made in. ``controllers``: what it gives them; ``enable``: those that must be
    switched on first, for which the caller, alone in there, has to ``step_down``. ``revocable``: its manager has not
    promised to leave it alone, and may take a controller away. ``processes``: how many the caller's group may have."""

    directory: str
    controllers: tuple[str, ...]
    enable: tuple[str, ...] = ()
    step_down: bool = False
    revocable: bool = False
    processes: int | None = None


def find_delegation() -> tuple[Delegation | None, str]:
    """Where this process may make a group that counts memory; or why nowhere. Changes nothing."""
    own = _own_directory()
    if not own:
        return None, "control groups of version 2 are not mounted, or we are in none that is shown here"
    beside, why_not_beside = _beside(own)
    if beside is not None:
        return beside, ""
    below, why_not_below = _below(own)
    return below, "" if below is not None else f"{why_not_beside}; {why_not_below}"


def _own_directory() -> str:
    """The directory of this process's own group, where a tree of version 2 shows it; empty if none does."""
    try:
        with open("/proc/self/cgroup", "rb") as file:
            path = next(line[3:].rstrip(b"\n") for line in file if line.startswith(b"0::/"))
        with open("/proc/self/mountinfo", "rb") as file:
            mounts = [line.partition(b" - ") for line in file]
    except (OSError, StopIteration):
        return ""
    for left, _, right in mounts:
        if right.split(b" ")[0] != b"cgroup2":
            continue
        top, point = map(unescape, left.split(b" ")[3:5])
        if is_below(os.fsdecode(path), os.fsdecode(top)):
            found = os.path.join(point, path[len(top.rstrip(b"/")) :].lstrip(b"/"))
            return os.fsdecode(found).rstrip("/")
    return ""


def _beside(own: str) -> tuple[Delegation | None, str]:
    parent = os.path.dirname(own)
    given = [name for name in CONTROLLERS if name in words_of(f"{parent}/cgroup.subtree_control")]
    if "memory" not in given:
        return None, "the group above ours gives no memory controller"
    if not _is_ours(parent):
        return None, f"{parent} is not ours to write"
    bound = [name for name, free in BOUNDS.items() if (words_of(f"{own}/{name}") or [free])[0] != free]
    if bound:
        return None, f"our own group has a limit ({bound[0]}) that a group beside it would escape"
    most = words_of(f"{own}/pids.max")
    processes = int(most[0]) if most and most[0].isdecimal() else None
    return Delegation(parent, tuple(given), revocable=_is_managed(parent), processes=processes), ""


def _below(own: str) -> tuple[Delegation | None, str]:
    """The kernel gives no controllers to groups below one that has processes itself, unless it is the first of all."""
    there = [name for name in CONTROLLERS if name in words_of(f"{own}/cgroup.controllers")]
    if "memory" not in there:
        return None, "ours has none to give"
    if not _is_ours(own):
        return None, f"{own} is not ours to write"
    first = not os.path.exists(f"{own}/cgroup.type")
    if not first and words_of(f"{own}/cgroup.procs") != [str(os.getpid())]:
        return None, "other processes are in our own group"
    if not first and _is_managed(own):
        return None, "systemd did not delegate our own group (Delegate=yes in the unit)"
    missing = tuple(name for name in there if name not in words_of(f"{own}/cgroup.subtree_control"))
    return Delegation(own, tuple(there), missing, not first, revocable=_is_managed(own)), ""


def _is_ours(directory: str) -> bool:
    """To make a group there, and to move a process that is below it."""
    return os.access(directory, os.W_OK | os.X_OK) and os.access(f"{directory}/cgroup.procs", os.W_OK)


def _is_managed(directory: str) -> bool:
    """Whether a systemd manager sees to it, who marks what it leaves to others."""
    if not os.path.isdir("/run/systemd/system"):
        return False
    try:
        return os.getxattr(directory, "user.delegate") != b"1"
    except OSError:
        return True


def words_of(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


class Outlook(Record):
    """How memory would be held: ``group`` as `Site` has it, and ``words`` for a person."""

    group: str
    words: str


def outlook() -> Outlook:
    place, why_not = find_delegation()
    if place is None:
        return Outlook(
            "", f"each process's data, and a sum four times a second (no control group: {why_not})"
        )
    if place.revocable:
        return Outlook("beside", f"a control group in {place.directory}, and a sum four times a second")
    return Outlook("alone", f"a control group in {place.directory}")
