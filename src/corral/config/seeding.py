"""Files that an agent needs in a home of its own, put there before it starts.

We write from outside into a directory that was written from inside: a name there may be a link to anywhere. So
nothing below it is reached by its path; every step is one name in a directory that is held open, and no link is
followed.
"""

from __future__ import annotations

import contextlib
import os
import stat

from corral.config.outfit import is_in, located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.config.agents import Agent

LARGEST_COPY = 16 * 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def seed_private(agent: Agent, private: str, environ: Mapping[str, str] | None = None) -> None:
    """Fill the directory that stands in for the agent's own: links to what is shared, and to guarded directories,
    which cannot be written there; copies of guarded files. What was put in their place inside is left alone."""
    variables = os.environ if environ is None else environ
    os.makedirs(private, 0o700, exist_ok=True)
    top = os.open(private, _DIRECTORY)
    try:
        for variable, place, inside in agent.moves:
            for name in (*agent.shared, *agent.guarded):
                if not is_in(name, place):
                    continue
                source = located(agent, name, variables)
                parts = [variable, *inside.split("/"), *name[len(place) + 1 :].split("/")]
                target = [part for part in parts if part]
                if name in agent.shared or os.path.isdir(source):
                    _link(top, target, source)
                else:
                    _copy(top, target, source)
            _make_directories(top, [variable])
        _make_directories(top, ["tmp"])
    finally:
        os.close(top)


def seed_home(agent: Agent, home: str, environ: Mapping[str, str] | None = None) -> None:
    """Copies of the guarded files in a jail's own home, which is empty at first. Directories are granted."""
    variables = os.environ if environ is None else environ
    top = os.open(home, _DIRECTORY)
    try:
        for name in agent.guarded:
            source = located(agent, name, variables)
            if not os.path.isdir(source):
                _copy(top, name.split("/"), source)
    finally:
        os.close(top)


def _make_directories(top: int, names: list[str]) -> int | None:
    """A descriptor of the directory below ``top``, made where it is missing; None where a name is something else."""
    at = os.dup(top)
    for name in names:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=at)
            below = os.open(name, _DIRECTORY, dir_fd=at)
        except OSError:
            os.close(at)
            return None
        os.close(at)
        at = below
    return at


def _link(top: int, names: list[str], source: str) -> None:
    if not os.path.lexists(source):
        return
    parent = _make_directories(top, names[:-1])
    if parent is None:
        return
    try:
        if _target_of(parent, names[-1]) not in (None, source):
            os.unlink(
                names[-1], dir_fd=parent
            )  # a link of ours from when it was elsewhere, or one that was planted
        os.symlink(source, names[-1], dir_fd=parent)
    except OSError:
        return  # something of the agent's own is there
    finally:
        os.close(parent)


def _target_of(parent: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        return None


def _copy(top: int, names: list[str], source: str) -> None:
    """Unless there is a newer one: what the agent changed inside stays until the real file changes."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST_COPY:
            return
        parent = _make_directories(top, names[:-1])
        if parent is None:
            return
        try:
            if not _is_newer(parent, names[-1], info.st_mtime_ns):
                _write(parent, names[-1], os.read(fd, info.st_size), info.st_mtime_ns)
        finally:
            os.close(parent)
    finally:
        os.close(fd)


def _is_newer(parent: int, name: str, time: int) -> bool:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime_ns >= time
    except OSError:
        return False


def _write(parent: int, name: str, content: bytes, time: int) -> None:
    beside = f".corral-{os.getpid()}-{name}"
    try:
        fd = os.open(
            beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent
        )
    except OSError:
        return
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.utime(fd, ns=(time, time))
        os.rename(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=parent)
    finally:
        os.close(fd)
