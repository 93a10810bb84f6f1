"""Control groups: the kernel counts the memory and the processes of a run as a whole, where delegation.py finds a place
for them. Memory in files that nobody maps counts there too.

A run gets two groups, one in the other: the outer has the limits, the inner the processes. A command that may mount a
tree of control groups of its own sees the inner one as its top, and no limit of ours that it could raise.
"""

from __future__ import annotations

import os

from corral.errors import NotEnforceable
from corral.jail.delegation import Delegation, find_delegation, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.policy import Limits

NAME = "corral-run-"
CALLER = "corral-caller"  # where the caller goes if its own group is to have groups below it
TRIES = 8

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

    def open_way_in(self) -> None:
        from corral.jail.launch import above_standard

        inner = f"{self.directory}/in"
        os.mkdir(inner)
        self.procs = above_standard(os.open(f"{inner}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))

    def passed_memory(self) -> bool:
        """Whether its own limit, and not a host without memory, had the kernel end processes in it."""
        words = words_of(f"{self.directory}/memory.events")
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
    """A group with these limits, or None where there is no place for one. What was promised and fails is refused."""
    remove_left()
    place = usable_delegation()
    try:
        return _make(place, limits) if place is not None else None
    except OSError as error:
        raise NotEnforceable(f"no control group can be made in {error.filename}: {error.strerror}") from error


def remove_left() -> None:
    """Groups that could not be removed before."""
    for _ in range(len(_leaving)):
        try:
            group = _leaving.pop(0)
        except IndexError:
            return  # another thread was faster
        group.remove()


def usable_delegation() -> Delegation | None:
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
        group.open_way_in()
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
