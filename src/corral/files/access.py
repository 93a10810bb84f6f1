"""Access: from a path that somebody gives to a descriptor that the policy allows, for reading and for changing."""

from __future__ import annotations

import errno
import os
import stat

from corral.errors import CorralError, HookError, LinkLoop, NotAFile, PathNotAllowed, SensitivePath
from corral.files.atomic import Pending, refuse_several_names, refuse_unless_file, sweep
from corral.files.changing import open_for_write, refuse_name_of_directory, remove_beneath
from corral.files.rules import FileRules
from corral.files.twins import Twins
from corral.files.view import is_below
from corral.paths.beneath import LINKS
from corral.paths.names import LeadsOut, components, escapes, plain_names
from corral.paths.opening import READ
from corral.paths.walking import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from corral.files.atomic import Existing, Links
    from corral.files.changing import OpenHook, OpenMode, RemoveHook
    from corral.files.stamps import Stamps
    from corral.paths.beneath import Anchor, Check
    from corral.paths.names import Names
    from corral.paths.parents import Parent
    from corral.paths.walking import LeavesOut

    AnyPath = str | os.PathLike[str]
    HardLinks = Literal["check", "refuse"]

SWEPT_AT_MOST = 10_000


class Spot:
    """A path as it was given, and where it is looked for: an anchor, and a path below it."""

    __slots__ = ("anchor", "below", "given", "which")

    def __init__(self, given: str, which: int, anchor: Anchor, below: str) -> None:
        self.given = given
        self.which = which
        self.anchor = anchor
        self.below = below

    def at(self, below: str) -> Spot:
        """Another one of the same anchor."""
        return Spot(below, self.which, self.anchor, below)


class Access:
    def __init__(
        self,
        anchors: Sequence[Anchor],
        rules: FileRules,
        hardlinks: HardLinks,
        stamps: Stamps | None,
        roots: int,
        opener: OpenHook | None = None,
        remover: RemoveHook | None = None,
    ) -> None:
        """``roots``: so many of the anchors are the environment's own, the others those of a view. ``opener`` and
        ``remover``: what the host does itself; the rules are asked all the same."""
        self.anchors = tuple(anchors)
        self._roots = roots
        self.rules = rules
        self.stamps = stamps
        self._hardlinks = hardlinks
        self._opener = opener
        self._remover = remover
        self._twins = Twins(self.anchors[:roots], rules)
        self._swept: set[tuple[int, int]] = set()

    def remembering(self, stamps: Stamps | None) -> Access:
        """The same, except for what was read."""
        other = object.__new__(Access)
        other.__dict__.update(self.__dict__)
        other.stamps = stamps
        return other

    def locate(self, path: AnyPath) -> Spot:
        given = os.fspath(path)
        if type(given) is not str:
            raise TypeError("a path is a str; bytes that are no text are spelled by os.fsdecode")
        wanted = os.path.expanduser(given) if given == "~" or given.startswith("~/") else given
        if not wanted.startswith("/"):
            if "." in wanted or self.rules.more:
                self.rules.check_segments(wanted.split("/"), given)
            return Spot(given, 0, self.anchors[0], wanted)
        tops = [
            (top, which, anchor)
            for which, anchor in enumerate(self.anchors)
            for top in (anchor.path, anchor.given)
            if is_below(wanted, top)
        ]
        if not tops:
            self.rules.check_segments(wanted.split("/"), given)
            raise escapes(given)
        top, which, anchor = max(tops, key=lambda found: len(found[0]))
        below = wanted[len(top) :].lstrip("/") or "."
        self.rules.check_segments(below.split("/"), given)
        return Spot(given, which, anchor, below)

    # ---- reading ----

    def reading(self, spot: Spot) -> Check:
        return lambda names, seen: self.rules.check_read(spot.which, names, spot.given, seen)

    def leaving_out(self, spot: Spot) -> LeavesOut:
        return lambda above, name: self.rules.leaves_out(spot.which, above, name)

    def open(self, spot: Spot, flags: int) -> tuple[int, Names]:
        """A descriptor and its names. In a view a link may lead to another anchor; then the spot is there."""
        for _ in range(LINKS):
            try:
                return spot.anchor.open(spot.below, flags, self.reading(spot))
            except LeadsOut as out:
                if len(self.anchors) == self._roots:
                    raise
                there = self.locate(out.target)
                spot.which, spot.anchor, spot.below = there.which, there.anchor, there.below
        raise LinkLoop(f"{spot.given}: too many symbolic links", path=spot.given, rule="links")

    def open_file(self, spot: Spot) -> tuple[int, Names, os.stat_result]:
        try:
            fd, names = self.open(spot, READ)
        except CorralError:
            raise
        except OSError as error:
            if error.errno == errno.ENXIO:  # what a socket says to whoever opens it
                raise NotAFile(
                    f"{spot.given} is not a regular file but a socket", path=spot.given, rule="regular file"
                ) from None
            raise
        try:
            info = os.fstat(fd)
            refuse_unless_file(info, spot.given)
            refuse_unless_readable(info, spot.given)
            self.check_links(info, spot.given)
        except BaseException:
            os.close(fd)
            raise
        return fd, names, info

    def check_links(self, info: os.stat_result, given: str) -> None:
        """Of a file with several names: is another of them sensitive?"""
        if info.st_nlink < 2 or not stat.S_ISREG(info.st_mode):
            return
        if self._hardlinks == "refuse":
            raise PathNotAllowed(f"{given} has {info.st_nlink} names", path=given, rule="hardlinks refuse")
        rule = self._twins.rule_for(info)
        if rule is not None:
            raise SensitivePath(
                f"sensitive path: {given}", path=given, rule=f"sensitive {rule}, by another name"
            )

    # ---- changing ----

    def changing(self, spot: Spot) -> Check:
        return lambda names, _: self.rules.check_change(spot.which, names, spot.given)

    def removing(self, spot: Spot) -> Check:
        return lambda names, _: self.rules.check_removal(spot.which, names, spot.given)

    def parent(self, spot: Spot, *, make: bool) -> Parent:
        """Of something that is to be put there (and then its directories are made) or taken away."""
        refuse_name_of_directory(spot.below, spot.given)
        check = self.changing(spot) if make else self.removing(spot)
        parent = spot.anchor.parent(spot.below, check, make=make)
        parent.path = spot.given
        return parent

    def pending(self, spot: Spot, existing: Existing, links: Links) -> Pending:
        """A new content for what is at a spot, or will be."""
        mode: OpenMode = "x" if existing == "refuse" else "w"
        if self._opener is None:
            pending = open_for_write(
                spot.anchor, spot.below, mode, check=self.changing(spot), given=spot.given
            )
        else:
            pending = self._opened_by_host(self._opener, spot, mode)
        try:
            self._sweep_once(pending.parent.fd)
            if pending.old is not None and links == "refuse":
                refuse_several_names(pending.old, spot.given)
            if self.stamps is not None:
                pending.verify = self.stamps.guard(self.key(spot, pending.parent.names), pending.parent)
                pending.verify()
        except BaseException:
            pending.discard()
            raise
        return pending

    def _opened_by_host(self, opener: OpenHook, spot: Spot, mode: OpenMode) -> Pending:
        names = self._allowed(spot, self.changing(spot))
        pending: object = opener(spot.anchor, spot.below, mode)
        if isinstance(pending, Pending) and pending.parent.names == names:
            return pending
        if isinstance(pending, Pending):
            pending.discard()
        raise HookError(
            f"the opener did not open {spot.given}: it returns what open_for_write returns for that path",
            path=spot.given,
            rule="opener",
        )

    def remove(self, spot: Spot) -> None:
        if self._remover is None:
            remove_beneath(spot.anchor, spot.below, check=self.removing(spot), given=spot.given)
        else:
            self._allowed(spot, self.removing(spot))
            self._remover(spot.anchor, spot.below)
        self.gone(spot)

    def refuse_to_remove(self, spot: Spot) -> None:
        """Raises if the rules say that it stays."""
        self._allowed(spot, self.removing(spot))

    def gone(self, spot: Spot) -> None:
        """What was remembered of it says nothing any more: it was us."""
        if self.stamps is not None:
            self.stamps.forget(self.key(spot, plain_names(spot.given, components(spot.below))))

    def _allowed(self, spot: Spot, check: Check) -> Names:
        """The names of something that a hook is about to change: no hook is asked about what the rules refuse."""
        refuse_name_of_directory(spot.below, spot.given)
        names = plain_names(spot.given, components(spot.below))
        if not names:
            raise escapes(spot.given, "is its root or above, and stays as it is")
        check(names, 0)
        return names

    @property
    def is_hooked(self) -> bool:
        return self._opener is not None or self._remover is not None

    def _sweep_once(self, fd: int) -> None:
        info = os.fstat(fd)
        directory = info.st_dev, info.st_ino
        if directory not in self._swept:
            if len(self._swept) >= SWEPT_AT_MOST:
                self._swept.clear()
            sweep(fd)
            self._swept.add(directory)

    def written(self, spot: Spot, pending: Pending, info: os.stat_result, digest: str | None) -> None:
        if self.stamps is not None:
            self.stamps.remember(self.key(spot, pending.parent.names), info, digest)

    def key(self, spot: Spot, names: Names) -> str:
        return "/".join((spot.anchor.path, *names))

    def tree(self, spot: Spot, names: Names) -> list[tuple[Names, list[str]]]:
        """Every directory from here down and what else is in it, each of them free to be changed. Nothing has
        been when one is not."""
        self.rules.check_nothing_kept_below(spot.which, names, spot.given)
        levels = []
        for above, directories, files in walk(spot.anchor, names, lambda _above, _name: False):
            for name in (*directories, *(name for name, _ in files)):
                self.rules.check_change(
                    spot.which, (*above, name), f"{spot.given}: {'/'.join((*above, name))}"
                )
            levels.append((above, [name for name, _ in files]))
        return levels


def refuse_unless_readable(info: os.stat_result, given: str) -> None:
    """Root may read everything; that is no reason to read what somebody closed by ``chmod -r``, and a command of
    root's cannot either: it has no capabilities."""
    if os.geteuid() == 0 and not info.st_mode & stat.S_IRUSR:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), given)
