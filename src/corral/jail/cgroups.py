"""Control groups (version 2): the kernel counts the memory and the processes of a run as a whole, where somebody has
given this process a place to make groups in. Memory in files that nobody maps counts there too.

A run gets two groups, one in the other: the outer has the limits, the inner the processes. A command that may mount a
tree of control groups of its own sees the inner one as its top, and no limit of ours that it could raise.

What runs is never moved to where it is bound by less than its caller: a group is made below the caller's own, or beside
it if that one has no limits.
"""

from __future__ import annotations

import os

from corral.jail.site import is_below, unescape
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.policy import Limits

NAME = "corral-run-"
CALLER = "corral-caller"  # where the caller goes if its own group is to have groups below it
CONTROLLERS = ("memory", "pids")
# Limits of a caller's group that a group beside it would escape, and how each says that it does not limit.
BOUNDS = {"memory.max": "max", "memory.high": "max", "cpu.max": "max", "io.max": "", "cpuset.cpus": ""}
TRIES = 8


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


# ---- finding ----


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
    given = [name for name in CONTROLLERS if name in _words(f"{parent}/cgroup.subtree_control")]
    if "memory" not in given:
        return None, "the group above ours gives no memory controller"
    if not _is_ours(parent):
        return None, f"{parent} is not ours to write"
    bound = [name for name, free in BOUNDS.items() if (_words(f"{own}/{name}") or [free])[0] != free]
    if bound:
        return None, f"our own group has a limit ({bound[0]}) that a group beside it would escape"
    most = _words(f"{own}/pids.max")
    processes = int(most[0]) if most and most[0].isdecimal() else None
    return Delegation(parent, tuple(given), revocable=_is_managed(parent), processes=processes), ""


def _below(own: str) -> tuple[Delegation | None, str]:
    """The kernel gives no controllers to groups below one that has processes itself, unless it is the first of all."""
    there = [name for name in CONTROLLERS if name in _words(f"{own}/cgroup.controllers")]
    if "memory" not in there:
        return None, "ours has none to give"
    if not _is_ours(own):
        return None, f"{own} is not ours to write"
    first = not os.path.exists(f"{own}/cgroup.type")
    if not first and _words(f"{own}/cgroup.procs") != [str(os.getpid())]:
        return None, "other processes are in our own group"
    if not first and _is_managed(own):
        return None, "systemd did not delegate our own group (Delegate=yes in the unit)"
    missing = tuple(name for name in there if name not in _words(f"{own}/cgroup.subtree_control"))
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


def _words(path: str) -> list[str]:
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


# ---- making ----

_usable: tuple[int, Delegation | None] = (0, None)  # found and tried by the process of that pid
_leaving: list[Group] = []


class Group:
    """One run's own. ``procs``: descriptor of the file that takes its first process. Held by a lock until `remove`; a
    group that nobody holds was left by a caller that is gone."""

    def __init__(self, directory: str, revocable: bool) -> None:
        self.directory = directory
        self.revocable = revocable
        self.procs = -1
        self._lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def enter_by(self) -> None:
        """Make the inner group, and open the way in."""
        inner = f"{self.directory}/in"
        os.mkdir(inner)
        from corral.jail.launch import above_standard

        self.procs = above_standard(os.open(f"{inner}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))

    def passed_memory(self) -> bool:
        """Whether its own limit, and not a host without memory, had the kernel end processes in it."""
        words = _words(f"{self.directory}/memory.events")
        events = dict(zip(words[::2], words[1::2], strict=False))
        return all(int(events.get(name, "0")) > 0 for name in ("oom", "oom_kill"))

    def remove(self) -> None:
        """The run is over. What it left in a shared jail stays; then so does the group, until `remove_left`."""
        if self.procs >= 0:
            os.close(self.procs)
            self.procs = -1
        if not _removed(self.directory):
            _leaving.append(self)
        elif self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def new_group(limits: Limits) -> Group | None:
    """A group with these limits, or None where none can be made."""
    remove_left()
    place = _tried_delegation()
    try:
        return _make(place, limits) if place is not None else None
    except OSError:
        return None


def remove_left() -> None:
    """Groups that could not be removed before."""
    for _ in range(len(_leaving)):
        try:
            group = _leaving.pop(0)
        except IndexError:
            return  # another thread was faster
        group.remove()


def _tried_delegation() -> Delegation | None:
    """Found once in the life of a process, and seen to take one: the kernel has rules that no file tells of."""
    global _usable
    pid, place = _usable
    if pid != os.getpid():
        found, _ = find_delegation()
        place = _prepared(found) if found is not None else None
        _usable = (os.getpid(), place)
    return place


def _prepared(place: Delegation) -> Delegation | None:
    from corral.policy import Limits

    try:
        if place.enable:
            _enable(place)
        _sweep(place.directory)
        trial = _make(place, Limits())
        takes = _takes_one(trial.procs)
        trial.remove()
    except OSError:
        return None
    return place if takes else None


def _enable(place: Delegation) -> None:
    top = place.directory
    if place.step_down:
        os.makedirs(f"{top}/{CALLER}", exist_ok=True)
        _write(f"{top}/{CALLER}/cgroup.procs", str(os.getpid()))
    try:
        for controller in place.enable:
            _write(f"{top}/cgroup.subtree_control", f"+{controller}")
    except OSError:
        if place.step_down:
            _write(f"{top}/cgroup.procs", str(os.getpid()))
            os.rmdir(f"{top}/{CALLER}")
        raise


def _make(place: Delegation, limits: Limits) -> Group:
    group = _locked(place)
    try:
        directory = group.directory
        if limits.memory is not None:
            _write(f"{directory}/memory.max", str(limits.memory))
            _write(f"{directory}/memory.oom.group", "1")
            if os.path.exists(f"{directory}/memory.swap.max"):  # not there on a kernel that does not count it
                _write(f"{directory}/memory.swap.max", "0")
        processes = [most for most in (limits.processes, place.processes) if most is not None]
        if processes and "pids" in place.controllers:
            _write(f"{directory}/pids.max", str(int(min(processes))))
        group.enter_by()
    except BaseException:
        group.remove()
        raise
    return group


def _locked(place: Delegation) -> Group:
    """A new group that is held before anybody takes it for one that was left."""
    import fcntl

    for _ in range(TRIES):
        directory = f"{place.directory}/{NAME}{os.urandom(6).hex()}"
        os.mkdir(directory)
        try:
            group = Group(directory, place.revocable)
            fcntl.flock(group._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # swept away as soon as it was there
        return group
    raise OSError(f"no group can be held in {place.directory}")


def _takes_one(procs: int) -> bool:
    from corral.jail.host import launcher_path

    path = launcher_path()
    words = [path, "fd", "0", str(procs), "group", "0", "--", "/proc/self/exe", "--abi"]
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in (0, 1, 2)]
    actions.append((os.POSIX_SPAWN_DUP2, procs, procs))
    pid = os.posix_spawn(path, words, {}, file_actions=actions)
    return os.waitpid(pid, 0)[1] == 0


# ---- removing ----


def _sweep(directory: str) -> None:
    """Groups of callers that are gone: what still runs in one has lost its supervisor too."""
    import fcntl

    for entry in os.scandir(directory):
        if not entry.name.startswith(NAME) or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            continue
        try:
            fd = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _removed(entry.path):
                _write(f"{entry.path}/cgroup.kill", "1")  # from 5.14 on; removed by the next who looks
        except OSError:
            continue
        finally:
            os.close(fd)


def _removed(directory: str) -> bool:
    """With all below it, which a command may have made where it may mount a tree of its own."""
    try:
        below = [entry.path for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
        for path in below:
            _removed(path)
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
