"""Access: from a path that somebody gives to a descriptor that the policy allows, for reading and for changing."""

from __future__ import annotations

import errno
import os
import stat

from corral.errors import CorralError, LinkLoop, NotAFile, NotAFileButDirectory, PathNotAllowed, SensitivePath
from corral.files.atomic import Pending, refuse_unless_file, sweep
from corral.files.rules import FileRules
from corral.files.twins import Twins
from corral.files.view import is_below
from corral.paths.beneath import LINKS
from corral.paths.names import LeadsOut, components, escapes
from corral.paths.opening import READ
from corral.paths.walking import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from corral.files.atomic import Existing, Links
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


class Access:
    def __init__(
        self,
        anchors: Sequence[Anchor],
        rules: FileRules,
        hardlinks: HardLinks,
        stamps: Stamps | None,
        roots: int,
    ) -> None:
        """``roots``: so many of the anchors are the environment's own, the others those of a view."""
        self.anchors = tuple(anchors)
        self._roots = roots
        self.rules = rules
        self.stamps = stamps
        self._hardlinks = hardlinks
        self._twins = Twins(self.anchors[:roots], rules)
        self._swept: set[tuple[int, int]] = set()

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
        """Of something that is to be written (and then its directories are made) or taken away."""
        if spot.below.endswith(("/", "/.")) and components(spot.below):
            raise NotAFileButDirectory(
                f"{spot.given} names a directory", path=spot.given, rule="regular file"
            )
        check = self.changing(spot) if make else self.removing(spot)
        parent = spot.anchor.parent(spot.below, check, make=make)
        parent.path = spot.given
        return parent

    def pending(self, spot: Spot, parent: Parent, existing: Existing, links: Links) -> Pending:
        """A new content for what the parent names."""
        info = os.fstat(parent.fd)
        directory = info.st_dev, info.st_ino
        if directory not in self._swept:
            if len(self._swept) >= SWEPT_AT_MOST:
                self._swept.clear()
            sweep(parent.fd)
            self._swept.add(directory)
        stamps = self.stamps
        if stamps is None:
            return Pending(parent, existing=existing, links=links)
        key = self.key(spot, parent.names)
        stamps.refuse_if_stale(key, parent)
        return Pending(
            parent, existing=existing, links=links, verify=lambda: stamps.refuse_if_stale(key, parent)
        )

    def written(self, spot: Spot, parent: Parent, info: os.stat_result) -> None:
        if self.stamps is not None:
            self.stamps.remember(self.key(spot, parent.names), info)

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
