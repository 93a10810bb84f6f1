"""Ground: namespaces that are kept for the next run, held by descriptor, without a process.

Making a network namespace is a quarter of a launch. Nothing in one outlives a run, so one run after another may stand
on the same ground; two at once never do. The ground of a named jail (stage.py) has mounts, and its runs share it.
"""

from __future__ import annotations

import os
import sys

from corral.jail.host import launcher_path
from corral.jail.kernel import CLONE_NEW
from corral.jail.plan import Draft, Plan
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.jail.host import Host


# The launcher itself, by a name that no mount can cover: it holds the namespaces until its input ends.
WAITING = ("/proc/self/exe", "--wait")


class Ground(Record):
    """Descriptors of the namespaces, by kind, of directories that only they show, by path, and of the Landlock rules on
    what they show, -1 if there are none."""

    held: tuple[tuple[str, int], ...]
    places: tuple[tuple[str, int], ...] = ()
    rules: int = -1

    @property
    def is_jail(self) -> bool:
        """Whether all of a jail stands there already, mounts and processes too: others may join it at any time."""
        return any(kind == "pid" for kind, _ in self.held)

    # Each is one of its kind, and known by nothing else.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def close(self) -> None:
        for _, fd in (*self.held, *self.places):
            os.close(fd)
        if self.rules >= 0:
            os.close(self.rules)


def add_own(draft: Draft, host: Host, kinds: list[str], inside: tuple[int, int] | None = None) -> None:
    """Steps into new namespaces of these kinds, as ourselves, or as the user and group ``inside``."""
    _add_new(draft, host, kinds, inside)
    if "mnt" in kinds and "user" not in kinds:
        draft.add("private", why="what is mounted here is not mounted on the host")


def _add_new(draft: Draft, host: Host, kinds: list[str], inside: tuple[int, int] | None) -> None:
    draft.add("namespaces", sum(CLONE_NEW[k] for k in kinds), why=f"namespaces: {', '.join(kinds)}")
    if "user" in kinds:
        uid, gid = inside or (host.uid, host.gid)
        who = "another user and group inside" if inside else "the same user and group inside"
        draft.add("ids", uid, host.uid, gid, host.gid, why=who)
    if "net" in kinds:
        draft.add("loopback", why="a network with nothing in it but itself")


def add_held(draft: Draft, ground: Ground | None) -> list[tuple[str, str]]:
    """Slots of a ground's namespaces, by kind; they come in as descriptors."""
    held = ground.held if ground is not None else ()
    return [(kind, draft.inherit(fd, f"a {kind} namespace of ours")) for kind, fd in held]


def add_on(draft: Draft, host: Host, held: list[tuple[str, str]], kinds: list[str]) -> None:
    """Steps onto a ground, and into new namespaces of these kinds; a user namespace only where the ground has none."""
    for kind, slot in held:
        draft.add("enter", slot, CLONE_NEW[kind], why=f"into a {kind} namespace of ours")
    _add_new(draft, host, [kind for kind in kinds if kind != "user" or "user" not in dict(held)], None)


def furnished_ground(
    host: Host,
    kinds: list[str],
    furnish: Callable[[Draft], None] | None = None,
    inside: tuple[int, int] | None = None,
    places: tuple[str, ...] = (),
    on: Ground | None = None,
    owners: tuple[int, int] | None = None,
    bring: Callable[[Draft], None] | None = None,
) -> tuple[Ground | None, str]:
    """Start a process in new namespaces, open them, let it go; or why that failed. ``furnish`` adds what is to be
    mounted there, and may have rules handed to us; ``bring`` adds descriptors that it takes along for that. ``places``
    are opened as they are seen there. ``on``: a ground it starts from. ``owners``: whom a user namespace maps our own
    ids to, in place of ourselves."""
    import _socket

    draft = Draft()
    held = add_held(draft, on)
    if bring is not None:
        bring(draft)
    draft.add("close", why="close every other descriptor")
    if held:
        add_on(draft, host, held, kinds)
    elif owners is not None:
        draft.add("namespaces", CLONE_NEW["user"], why="a user namespace for mounts")
    else:
        add_own(draft, host, kinds, inside)
    if furnish is not None:
        furnish(draft)
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    draft.add("nocaps", why="empty every capability set")
    path = launcher_path()
    words = Plan("namespaces", tuple(draft.steps), WAITING).words()
    stdin, keep = os.pipe()
    up, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    stdout = theirs.detach()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, stdin, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, stdout, n) for n in (1, 2)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in draft.passed]
    pid = os.posix_spawn(path, [path, *words], {}, file_actions=actions)
    os.close(stdin)
    os.close(stdout)
    rules = -1
    try:
        said = b""
        while not said.endswith(b"\n"):  # a refusal comes in pieces
            more, handed, _, _ = up.recvmsg(4096, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
            rules = int.from_bytes(handed[0][2], sys.byteorder) if handed else rules
            said += more
            if not more:
                break
        if said.strip(b"\0") != b"\n":
            return None, said.decode("ascii", "replace").strip("\0\n ")
        if owners is not None:
            _map_owners(_child_of(pid), host, owners)
        ground = _open_namespaces(pid, kinds, places, rules)
        rules = -1
        return ground, "its namespaces could not be opened"
    finally:
        if rules >= 0:
            os.close(rules)
        os.close(keep)
        up.close()
        os.waitpid(pid, 0)


def owners_ground(host: Host, uid: int, gid: int) -> Ground | None:
    """A user namespace that tells a mount: what is ours on disk is this user's inside, and the other way round. For
    root, who may write such a map from outside."""
    return furnished_ground(host, ["user"], owners=(uid, gid))[0]


def _open_namespaces(supervisor: int, kinds: list[str], places: tuple[str, ...], rules: int) -> Ground | None:
    held: list[tuple[str, int]] = []
    opened: list[tuple[str, int]] = []
    try:
        child = _child_of(supervisor)
        for kind in kinds:
            held.append((kind, os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)))
        for path in places:
            opened.append((path, os.open(f"/proc/{child}/root{path}", os.O_PATH | os.O_CLOEXEC)))
    except (OSError, IndexError):
        Ground(tuple(held), tuple(opened), rules).close()
        return None
    return Ground(tuple(held), tuple(opened), rules)


def _map_owners(child: str, host: Host, owners: tuple[int, int]) -> None:
    for name, ours, theirs in (("uid", host.uid, owners[0]), ("gid", host.gid, owners[1])):
        with open(f"/proc/{child}/{name}_map", "w") as file:
            file.write(f"{ours} {theirs} 1")


def _child_of(pid: int) -> str:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()[0]
