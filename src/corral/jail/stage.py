"""Stage: what the runs of one named jail share while any of them lives: the copied home and /tmp.

Two overlays on one set of layers is undefined to the kernel, so the first run mounts them in a namespace of its own,
where nothing else is changed yet, and each run, the first too, starts from a copy of that. The namespaces are held by
descriptor, by every process that has a run; the last one to let go takes the mounts with it. No daemon, no mount that
the host sees.
"""

from __future__ import annotations

import os

from corral.errors import NotEnforceable
from corral.jail.ground import Ground, furnished_ground
from corral.jail.named import find, storage_directory
from corral.state import made_state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corral.jail.host import Host
    from corral.jail.named import NamedJail
    from corral.jail.plan import Draft

LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
HELD = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW  # for writing: NFS locks nothing else


class Holder:
    """A process that has runs in the jail: its lock lives as long as it does."""

    def __init__(self, pid: int, terms: str, held: tuple[int, ...], path: str) -> None:
        self.pid = pid
        self.terms = terms
        self.held = held
        self.path = path


class Stage:
    """``ground``: for runs to start from. ``close`` when there are no more of them. ``notices``: what tells others of
    us, each with its lock."""

    def __init__(self, jail: NamedJail, ground: Ground, notices: list[tuple[str, int]]) -> None:
        self.jail = jail
        self.ground = ground
        self._notices = notices

    def close(self) -> None:
        if not self._notices:
            return
        with _Locked(self.jail):
            self.ground.close()
            while self._notices:
                path, lock = self._notices.pop()
                os.unlink(path)
                os.close(lock)


def enter(
    jail: NamedJail,
    host: Host,
    terms: str,
    furnish: Callable[[Draft], None],
    places: tuple[str, ...],
    kinds: tuple[str, ...],
    inside: tuple[int, int] | None,
    began: Callable[[], None],
) -> Stage:
    """Join the jail, or set it up. ``terms``: what all its runs must agree on. ``places``: what of the stage is opened.
    ``began`` is called before the first run mounts anything."""
    with _Locked(jail):
        ground = _join(jail, terms, (*kinds, *places), len(kinds))
        if ground is None:
            began()
            ground, why = furnished_ground(host, list(kinds), furnish, inside, places)
            if ground is None:
                raise NotEnforceable(_refusal(jail, why), path=jail.path)
        held = " ".join(str(fd) for _, fd in (*ground.held, *ground.places))
        entered = Stage(jail, ground, [_announce(jail.part("holders"), terms, held)])
    try:
        entered._notices += _announce_elsewhere(jail)
        _check_storage(jail)
    except BaseException:
        entered.close()
        raise
    return entered


def _refusal(jail: NamedJail, why: str) -> str:
    """``why``: the launcher's own line, which names the step."""
    why = why.removeprefix("corral: ").removeprefix("refused: ").removesuffix("; nothing was run")
    if "(copy " not in why:
        return f"jail {jail.name} cannot be set up here ({why}); `corral doctor` says what is missing"
    return (
        f"jail {jail.name}: what is kept in {jail.part('changes')} cannot be mounted ({why}); "
        f"`corral down -j {jail.name} --set-aside` renames it and starts anew (nothing is deleted)"
    )


def _join(jail: NamedJail, terms: str, names: tuple[str, ...], kinds: int) -> Ground | None:
    """What a run that is there holds under these names; the first ``kinds`` are namespaces."""
    pid = 0
    for holder in living(jail):
        if holder.terms != terms:
            raise NotEnforceable(
                f"jail {jail.name} is in use by pid {holder.pid} with another mode or list of hidden paths; "
                "wait for it to end, or name another jail with -j"
            )
        pid = holder.pid
        held: list[tuple[str, int]] = []
        try:
            for name, fd in zip(names, holder.held, strict=True):
                how = os.O_RDONLY if len(held) < kinds else os.O_PATH
                held.append((name, os.open(f"/proc/{holder.pid}/fd/{fd}", how | os.O_CLOEXEC)))
        except OSError:
            Ground(tuple(held)).close()  # on its way out; another one may have them
            continue
        return Ground(tuple(held[:kinds]), tuple(held[kinds:]))
    if pid:
        raise NotEnforceable(
            f"jail {jail.name} is in use by pid {pid}, which cannot be joined; name another with -j"
        )
    return None


def _announce(top: str, terms: str, held: str) -> tuple[str, int]:
    name = f"{os.getpid()}-{os.urandom(4).hex()}"
    path, beside = os.path.join(top, name), os.path.join(top, f".{name}")
    fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    _flock(fd, LOCK_EX | LOCK_NB)
    os.write(fd, os.fsencode(f"{os.getpid()} {held}\n{terms}\n"))
    os.rename(beside, path)  # whoever lists them without the jail's lock sees it locked and whole
    return path, fd


# ---- one name, one place: jails that are kept elsewhere are also told of where all others are ----


def _elsewhere() -> str:
    return os.path.join(storage_directory(None), ".elsewhere")


def _is_elsewhere(jail: NamedJail) -> bool:
    return os.path.dirname(jail.path) != os.path.realpath(storage_directory(None))


def _announce_elsewhere(jail: NamedJail) -> list[tuple[str, int]]:
    if not _is_elsewhere(jail) or made_state_directory() is None:
        return []
    os.makedirs(_elsewhere(), 0o700, exist_ok=True)
    return [_announce(_elsewhere(), f"{jail.name} {jail.path}", "")]


def _check_storage(jail: NamedJail) -> None:
    """After it was announced: of two that start at the same moment at least one sees the other."""
    for holder in _living(_elsewhere()):
        name, _, path = holder.terms.partition(" ")
        if name == jail.name and path != jail.path:
            _refuse_storage(jail, holder, path)
    here = find(jail.name)
    if here is not None and here.path != jail.path:
        for holder in living(here):
            _refuse_storage(jail, holder, here.path)


def _refuse_storage(jail: NamedJail, holder: Holder, path: str) -> None:
    raise NotEnforceable(
        f"jail {jail.name} is in use by pid {holder.pid} with another storage ({os.path.dirname(path)}); "
        "wait for it to end, or name another jail with -j",
        path=path,
    )


# ---- who is there ----


def living(jail: NamedJail) -> Iterator[Holder]:
    """Who has runs in it now. What a killed process left behind is removed on the way."""
    return _living(jail.part("holders"))


def _living(top: str) -> Iterator[Holder]:
    try:
        names = sorted(os.listdir(top))
    except FileNotFoundError:
        return
    for name in names:
        if name.startswith("."):
            continue  # about to be one
        path = os.path.join(top, name)
        try:
            fd = os.open(path, HELD)
        except OSError:
            continue
        try:
            try:
                _flock(fd, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                first, _, terms = os.fsdecode(os.read(fd, 8192)).partition("\n")
                pid, *held = (int(word) for word in first.split())
                yield Holder(pid, terms.rstrip("\n"), tuple(held), path)
            else:
                os.unlink(path)
        finally:
            os.close(fd)


class _Locked:
    """One process at a time sets the jail up, joins it, or leaves it."""

    def __init__(self, jail: NamedJail) -> None:
        self._fd = os.open(jail.part("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _flock(self._fd, LOCK_EX)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _flock(fd: int, how: int) -> None:
    import fcntl

    fcntl.flock(fd, how)
