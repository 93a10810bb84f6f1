"""`with no_leaks(directory, ...)`: what a block began, it also ended.

Five kinds are compared before and after: descriptors, processes, namespaces, mounts, and the files below the given
directories. What is still on its way out gets a second.

Other programs on the host start processes and namespaces too, so only ours count: descendants, and whatever carries
our mark. The mark is an odd soft RLIMIT_RTTIME, a limit that only real-time processes feel. Unlike a parent, a session
or a variable, a resource limit survives double forks, setsid, a cleaned environment and every namespace.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTLE_SECONDS = 1.0
POLL_SECONDS = 0.01
NAMESPACES = ("mnt", "pid", "net", "user", "ipc", "uts")

# By kind: what tells two things apart, and the text to show for it.
Snapshot = dict[str, dict[str, str]]


class LeakFoundError(AssertionError):
    """`leaked` has, by kind, what is there now and was not there before."""

    def __init__(self, leaked: dict[str, list[str]]) -> None:
        self.leaked = leaked
        super().__init__("\n".join(f"leaked {kind}: {', '.join(things)}" for kind, things in leaked.items()))


@contextlib.contextmanager
def no_leaks(*directories: Path) -> Iterator[None]:
    """Raise LeakFoundError if the block leaves something behind; an exception of the block itself goes first."""
    with marked_children() as mark:
        before = take_snapshot(mark, directories)
        yield
        leaked = what_stays(before, mark, directories)
    if leaked:
        raise LeakFoundError(leaked)


def what_stays(before: Snapshot, mark: int, directories: tuple[Path, ...]) -> dict[str, list[str]]:
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        leaked = new_things(before, take_snapshot(mark, directories))
        if not leaked or time.monotonic() > deadline:
            return leaked
        time.sleep(POLL_SECONDS)


def new_things(before: Snapshot, now: Snapshot) -> dict[str, list[str]]:
    leaked = {
        kind: [text for key, text in things.items() if key not in before[kind]]
        for kind, things in now.items()
    }
    return {kind: texts for kind, texts in leaked.items() if texts}


@contextlib.contextmanager
def marked_children() -> Iterator[int]:
    """All processes started in the block inherit the yielded number as their soft limit of real-time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    mark = 1 << 41 | secrets.randbits(40)
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, hard))
    try:
        yield mark
    finally:
        resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))


def take_snapshot(mark: int, directories: tuple[Path, ...]) -> Snapshot:
    ours = our_processes(mark)
    own_descriptors = descriptors_of("self")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    namespaces = {
        *namespaces_of(["self", *(process.pid for process in ours)]),
        *namespaces_named(own_descriptors, mounts, *(descriptors_of(process.pid) for process in ours)),
    }
    return {
        "descriptors": {text: text for text in own_descriptors},
        "processes": {
            f"{process.pid} {process.started}": f"{process.pid} {process.name}" for process in ours
        },
        "namespaces": {text: text for text in sorted(namespaces)},
        "mounts": {text: text for text in mounts},
        "files": {path: path for directory in directories for path in entries_below(directory)},
    }


@dataclass(frozen=True)
class Process:
    pid: str
    parent: str
    started: str
    name: str


def our_processes(mark: int) -> list[Process]:
    """Our descendants, zombies too, and all that carry the mark."""
    processes = list(all_processes())
    parents = {process.pid: process.parent for process in processes}
    me = str(os.getpid())
    return [
        process
        for process in processes
        if process.pid != me and (descends_from(me, process.pid, parents) or carries_mark(process.pid, mark))
    ]


def all_processes() -> Iterator[Process]:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
            # The name, in brackets, may hold anything; the fields behind the last bracket are plain.
            name = stat[stat.index("(") : stat.rindex(")") + 1]
            state, parent, *more = stat[stat.rindex(")") + 2 :].split()
            yield Process(pid, parent, started=more[17], name=f"{name} zombie" if state == "Z" else name)


def descends_from(ancestor: str, pid: str, parents: dict[str, str]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def carries_mark(pid: str, mark: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        limits = Path(f"/proc/{pid}/limits").read_text()
        return re.search(rf"^Max realtime timeout +{mark} ", limits, re.MULTILINE) is not None
    return False


def namespaces_of(pids: list[str]) -> Iterator[str]:
    for pid in pids:
        for kind in NAMESPACES:
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/ns/{kind}")


def namespaces_named(*places: list[str]) -> Iterator[str]:
    """Namespaces that live without a process: by an open descriptor, or by a bind mount of one."""
    for text in itertools.chain(*places):
        yield from re.findall(rf"\b(?:{'|'.join(NAMESPACES)}):\[\d+\]", text)


def descriptors_of(pid: str) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(f"{fd} -> {os.readlink(f'/proc/{pid}/fd/{fd}')}")
    return found


def entries_below(directory: Path) -> Iterator[str]:
    for parent, directories, files in os.walk(directory):
        yield from (f"{parent}/{name}" for name in (*directories, *files))
