"""Ground: a network namespace, and the user namespace it belongs to, kept for the next run.

Making a network namespace is a quarter of a launch. Nothing in them outlives a run, so one run after another may stand
on the same ground; two at once never do. They are held by descriptor, without a process.
"""

from __future__ import annotations

import os

from corral.jail.host import launcher_path
from corral.jail.kernel import CLONE_NEW
from corral.jail.plan import Draft, Plan
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.jail.host import Host


class Ground(Record):
    """Descriptors of the namespaces, by kind."""

    held: tuple[tuple[str, int], ...]

    @property
    def is_jail(self) -> bool:
        """Whether all of a jail stands there already, mounts and processes too: others may join it at any time."""
        return any(kind == "pid" for kind, _ in self.held)

    def close(self) -> None:
        for _, fd in self.held:
            os.close(fd)


def add_own(draft: Draft, host: Host, kinds: list[str]) -> None:
    """Steps into new namespaces of these kinds, as ourselves."""
    draft.add("namespaces", sum(CLONE_NEW[k] for k in kinds), why=f"namespaces: {', '.join(kinds)}")
    draft.add("ids", host.uid, host.uid, host.gid, host.gid, why="the same user and group inside")
    if "net" in kinds:
        draft.add("loopback", why="a network with nothing in it but itself")


def add_held(draft: Draft, ground: Ground | None) -> list[tuple[str, str]]:
    """Slots of a ground's namespaces, by kind; they come in as descriptors."""
    held = ground.held if ground is not None else ()
    return [(kind, draft.inherit(fd, f"a {kind} namespace of ours")) for kind, fd in held]


def add_on(draft: Draft, held: list[tuple[str, str]], kinds: list[str]) -> None:
    """Steps onto a ground, and into new namespaces of these kinds."""
    for kind, slot in held:
        draft.add(
            "enter", slot, CLONE_NEW[kind], why=f"into a {kind} namespace of ours, empty since the last run"
        )
    draft.add("namespaces", sum(CLONE_NEW[k] for k in kinds), why=f"namespaces: {', '.join(kinds)}")


def make_ground(host: Host, kinds: list[str]) -> Ground | None:
    """Start a process in new namespaces, open them, let it go. None if that fails: each run then makes its own."""
    draft = Draft()
    draft.add("close", why="close every other descriptor")
    add_own(draft, host, kinds)
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    draft.add("nocaps", why="empty every capability set")
    path = launcher_path()
    words = Plan("namespaces", tuple(draft.steps), (path, "--wait")).inline()
    stdin, keep = os.pipe()
    up, stdout = os.pipe()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
    actions.append((os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0))
    pid = os.posix_spawn(path, [path, *words], {}, file_actions=actions)
    os.close(stdin)
    os.close(stdout)
    try:
        return _open_namespaces(pid, kinds) if os.read(up, 1) else None
    finally:
        os.close(keep)
        os.close(up)
        os.waitpid(pid, 0)


def _open_namespaces(supervisor: int, kinds: list[str]) -> Ground | None:
    held: list[tuple[str, int]] = []
    try:
        with open(f"/proc/{supervisor}/task/{supervisor}/children") as file:
            child = file.read().split()[0]
        for kind in kinds:
            held.append((kind, os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)))
    except (OSError, IndexError):
        Ground(tuple(held)).close()
        return None
    return Ground(tuple(held))
