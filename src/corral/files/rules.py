"""What a policy says about files: the same object that the jail of the commands is made from.

Every answer is about names below an anchor that a walk has reached or is about to make, never about a string that
somebody resolves again.
"""

from __future__ import annotations

import os

from corral.errors import PathNotAllowed, SensitivePath
from corral.files.atomic import is_temporary
from corral.files.view import is_below, longest
from corral.paths.globs import matches
from corral.paths.names import leads_out
from corral.paths.opening import DIRECTORY
from corral.paths.sensitive import (
    KEY_MATERIAL,
    could_be_folded,
    folded_rule,
    folds_case,
    sensitive_rule,
    with_backups,
)
from corral.state import config_directory, homes, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corral.files.view import View
    from corral.paths.beneath import Anchor
    from corral.paths.names import Names
    from corral.policy import Policy

    # By anchor: names of a place, and the rule about it.
    Places = list[dict[Names, str]]

PROJECT_CONFIG = "corral.toml"


class FileRules:
    """``read_only`` and ``hidden``: absolute paths that the host adds to the policy's own. ``more``: further names
    that hold secrets, as patterns."""

    def __init__(
        self,
        anchors: Sequence[Anchor],
        policy: Policy,
        *,
        read_only: Iterable[str] = (),
        hidden: Iterable[str] = (),
        more: Iterable[str] = (),
        view: View | None = None,
    ) -> None:
        self.policy = policy
        self._view = view
        self.more = tuple(more)
        self._anchors = anchors
        self._folded = tuple(pattern.casefold() for pattern in self.more)
        self._hidden = self._places()
        self._granted = self._places()
        for path in (*hidden, *self._key_material(), config_directory(), state_directory()):
            self._put(self._hidden, path, f"hide {path}")
        for path in read_only:
            self._put(self._granted, path, f"ro {path}")
        self._put_grants()

    def _places(self) -> Places:
        return [{} for _ in self._anchors]

    def _key_material(self) -> list[str]:
        shown = self.policy.unhide
        return [os.path.join(home, name) for home in homes() for name in KEY_MATERIAL if name not in shown]

    def _put_grants(self) -> None:
        for grant in self.policy.grants:
            path = os.path.join(self._anchors[0].path, os.path.expanduser(grant.path))
            if grant.access == "hide":
                for name in with_backups((path,)):
                    self._put(self._hidden, name, f"hide {grant.path}")
            elif grant.access == "none":
                self._put(self._granted, os.path.realpath(path), "")
            else:
                self._put(self._granted, os.path.realpath(path), f"{grant.access} {grant.path}")

    def _put(self, places: Places, path: str, rule: str) -> None:
        for written in {os.path.normpath(path), os.path.realpath(path)}:
            for i, anchor in enumerate(self._anchors):
                top = anchor.path.rstrip("/")
                if written == anchor.path:
                    places[i][()] = rule
                elif written.startswith(top + "/"):
                    places[i][tuple(written[len(top) + 1 :].split("/"))] = rule

    # ---- what is shown beyond the roots ----

    def _check_shown(self, which: int, names: Names, path: str) -> None:
        """In a view: a path that goes into a place with an anchor of its own leads there, and what every jail has a
        private one of is not shown."""
        view, anchor = self._view, self._anchors[which]
        if view is None or not (anchor in view.readable or anchor in view.scratch):
            return
        full = anchor.path.rstrip("/") + "/" + "/".join(names)
        best = longest(full, self._anchors)
        if best is not None and best.path != anchor.path:
            raise leads_out(path, full)
        if any(is_below(full, place) and not is_below(anchor.path, place) for place in view.private):
            raise PathNotAllowed(f"{path} is not shown: every jail has its own", path=path, rule="private")

    # ---- names that hold secrets, and what is hidden ----

    def check_segments(self, names: Iterable[str], path: str) -> None:
        """A path as it was given, wherever it may lead."""
        for name in names:
            rule = sensitive_rule(name, self.more)
            if rule is not None:
                raise _sensitive(path, rule)

    def check_read(self, which: int, names: Names, path: str, seen: int = 0) -> None:
        """``seen``: so many of the names, from the first one on, were checked before."""
        self._check_shown(which, names, path)
        for i in range(seen, len(names)):
            name = names[i]
            if self.more or could_be_folded(name):
                rule = self._sensitive_rule(which, names[:i], name)
                if rule is not None:
                    raise _sensitive(path, rule)
        hidden = self._hidden[which]
        if hidden:
            for i in range(seen, len(names) + 1):
                rule = hidden.get(names[:i])
                if rule:
                    raise PathNotAllowed(f"{path} is hidden", path=path, rule=rule, grant=_unhide(rule))

    def secret_rule(self, which: int, above: Names, name: str) -> str | None:
        """The rule that keeps this entry from everybody, if there is one."""
        return sensitive_rule(name, self.more) or self._hidden[which].get((*above, name)) or None

    def _sensitive_rule(self, which: int, above: Names, name: str) -> str | None:
        rule = sensitive_rule(name, self.more)
        if rule is None:
            rule = folded_rule(name, self._folded)
            if rule is not None and not self._folds_case(which, above):
                return None
        return rule

    def _folds_case(self, which: int, names: Names) -> bool:
        anchor = self._anchors[which]
        while names:
            try:
                fd = anchor.opener(anchor.fd, "/".join(names), DIRECTORY)
            except OSError:
                names = names[:-1]  # not there yet: it will be as the one above it
                continue
            try:
                return folds_case(fd)
            finally:
                os.close(fd)
        return folds_case(anchor.fd)

    def leaves_out(self, which: int, above: Names, name: str) -> bool:
        """Whether a listing does not show this entry."""
        if (self.more or could_be_folded(name)) and (
            is_temporary(name) or self._sensitive_rule(which, above, name) is not None
        ):
            return True
        hidden = self._hidden[which]
        return bool(hidden) and bool(hidden.get((*above, name)))

    def left_out(self, which: int, above: Names, names: list[str]) -> set[str]:
        """Those of a directory's entries that a listing does not show, all asked about at once."""
        asked: Iterable[str] = names
        if not self.more and not any(place[:-1] == above for place in self._hidden[which]):
            together = "/" + "/".join(names)
            if "/." not in together and "~" not in together and together.isascii():
                return set()
            asked = filter(could_be_folded, names)
        return {name for name in asked if self.leaves_out(which, above, name)}

    # ---- changes ----

    def check_change(self, which: int, names: Names, path: str) -> None:
        self.check_read(which, names, path)
        if any(map(is_temporary, names)):
            raise PathNotAllowed(f"{path} has a name of Corral's own", path=path, rule="temporary")
        if names == (PROJECT_CONFIG,):
            raise PathNotAllowed(
                f"{path} is the project's own policy and stays as it is", path=path, rule="project-config"
            )
        self._check_grants(which, names, names, path)

    def check_removal(self, which: int, names: Names, path: str) -> None:
        """A place that is granted can be written, and not be taken away: that changes the directory it is in."""
        self.check_change(which, names, path)
        self._check_grants(which, names, names[:-1], path)

    def _check_grants(self, which: int, names: Names, place: Names, path: str) -> None:
        """``place``: from where upwards to look for a grant."""
        policy = self.policy
        rule = self._nearest_grant(which, place)
        if rule.startswith("ro "):
            raise PathNotAllowed(f"{path} is read-only", path=path, rule=rule, grant=f"--rw {rule[3:]}")
        if rule:
            return
        if self._view is not None and self._anchors[which] in self._view.scratch:
            return
        if self._view is not None and self._anchors[which] in self._view.readable:
            raise PathNotAllowed(f"{path} is read-only", path=path, rule="outside", grant=f"--rw {path}")
        if policy.mode == "read-only":
            raise PathNotAllowed(
                f"{path}: nothing may be written in mode read-only",
                path=path,
                rule="mode read-only",
                grant="-m workspace-write",
            )
        if policy.writable is None:
            return
        below = "/".join(names)
        if which or not any(matches(glob, below) for glob in policy.writable):
            raise PathNotAllowed(
                f"{path} is not in the writable globs {', '.join(policy.writable)}",
                path=path,
                rule="writable",
                grant=f"--writable {below}" if not which else f"--rw {self._anchors[which].path}",
            )

    def _nearest_grant(self, which: int, names: Names) -> str:
        granted = self._granted[which]
        if granted:
            for i in range(len(names), -1, -1):
                rule = granted.get(names[:i])
                if rule:
                    return rule
        return ""

    def check_nothing_kept_below(self, which: int, names: Names, path: str) -> None:
        """For what moves or removes a whole directory: a place with a rule of its own must not be in it."""
        for places in (self._hidden[which], self._granted[which]):
            for place, rule in places.items():
                if (
                    rule
                    and not rule.startswith("rw ")
                    and len(place) > len(names)
                    and place[: len(names)] == names
                ):
                    raise PathNotAllowed(
                        f"{path} has something in it that stays: {rule}", path=path, rule=rule
                    )


def _sensitive(path: str, rule: str) -> SensitivePath:
    return SensitivePath(f"sensitive path: {path}", path=path, rule=f"sensitive {rule}")


def _unhide(rule: str) -> str:
    return f"--unhide {rule.partition(' ')[2]}"
