"""Survey: what a policy names on this host, each place pinned: writable, read-only, hidden, and where home is."""

from __future__ import annotations

import os
import stat
import sys

from corral.errors import NotEnforceable, PolicyError
from corral.jail import fence
from corral.jail.host import this_host
from corral.jail.ladder import choose
from corral.jail.named import storage_directory
from corral.jail.site import is_below
from corral.paths.globs import bound
from corral.paths.places import Place, links_on_the_way, pin, pin_beneath, pin_directory
from corral.policy import HOME_MODES
from corral.state import config_directory, made_state_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.jail.ground import Ground
    from corral.jail.named import NamedJail
    from corral.jail.proofs import Proof
    from corral.jail.site import Home
    from corral.policy import Policy

# Directories that a jail replaces by private ones; what is granted below them has to be put back.
PRIVATE_PLACES = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm")
PROJECT_CONFIG = "corral.toml"


class Survey:
    """``degraded``: a person accepts the best tier there is, though it lacks something the policy demands."""

    def __init__(self, policy: Policy, homes: tuple[str, ...], *, degraded: bool, prove: bool) -> None:
        self.policy = policy
        self.homes = homes
        self.degraded = degraded
        self._prove = prove
        self.bounds: dict[str, str] = {}
        self.notices: list[str] = []
        self.jail: NamedJail | None = None
        self.home: Home | None = None
        self.review: Home | None = None
        self._pinned: list[Place] = []
        self._grounds_held: list[Ground] = []

    def _release(self) -> None:
        while self._grounds_held:
            self._grounds_held.pop().close()
        while self._pinned:
            self._pinned.pop().close()

    def _hold(self, place: Place) -> Place:
        self._pinned.append(place)
        return place

    def _survey(self, root: str) -> None:
        policy = self.policy
        self.root = self._hold(pin_directory(root, "workspace"))
        state = made_state_directory()
        self.host = this_host(self.homes[0] if self.homes else "/", state)
        self.roots = (
            self.root,
            *(self._hold(pin_directory(os.path.expanduser(path), "root")) for path in policy.roots),
        )
        self.writable: tuple[Place, ...] = ()
        self.read_only: tuple[Place, ...] = ()
        self.own: tuple[str, ...] = (config_directory(), state_directory())
        if policy.storage is not None:
            self.own += (os.path.realpath(storage_directory(policy.storage)),)
        if policy.mode in HOME_MODES or policy.review:
            self._check_own_home()
        self.hidden: tuple[str, ...] = self.own
        demanded = policy.demanded
        if policy.mode != "off":
            self._survey_grants()
            if self._narrows():
                demanded = (*demanded, "read-only-inside")
        prover = self._prover(state) if self._prove and policy.mode != "off" else None
        self.choice = choose(policy, self.host, ("writes",) if self.degraded else demanded, prover)
        if policy.mode != "off" and not policy.trust_prefix:
            self._protect_prefix()
        if self.choice.backend != "landlock":
            self._protect_project_config()
        if policy.mode != "off":
            self._home_places = tuple(self._hold(pin_directory(home)) for home in self.homes)
            self.resolver = self._find_resolver()
            self.devices = tuple(self._hold(pin(path)) for path in fence.DEVICES if _is_device(path))
        if self.choice.backend == "namespaces" and self.host.no_proc:
            self.notices.append(
                f"processes outside can be listed: no /proc of its own ({self.host.no_proc}); see corral doctor"
            )
        if self.choice.backend == "namespaces" and (policy.mode in HOME_MODES or policy.review):
            self._survey_jail()

    def _prover(self, state: str | None) -> Callable[[str, tuple[str, ...]], Proof]:
        from corral.jail.proofs import proven

        def ask(backend: str, claims: tuple[str, ...]) -> Proof:
            return proven(self.policy, backend, claims, state)

        return ask

    def _narrows(self) -> bool:
        """Whether something inside a writable place must stay read-only."""
        return any(is_below(inner.path, outer.path) for inner in self.read_only for outer in self.writable)

    def _survey_grants(self) -> None:
        policy = self.policy
        granted: dict[str, tuple[str, Place | None]] = {}
        for grant in policy.grants:
            given = os.path.join(self.root.path, os.path.expanduser(grant.path))
            path = os.path.realpath(given)
            if grant.access in ("rw", "ro") and path != given:
                tops = [place.path for access, place in granted.values() if access == "rw" and place]
                _refuse_planted(given, path, [*(root.path for root in self.roots), *tops])
            if grant.access == "none":
                granted.pop(path, None)
            elif grant.access == "hide":
                self.hidden += (os.path.join(self.root.path, os.path.expanduser(grant.path)),)
            elif os.path.lexists(path) or grant.missing != "skip":
                if grant.missing == "create":
                    os.makedirs(path, exist_ok=True)
                granted[path] = (grant.access, self._hold(pin(path, "grant")))
        writable = [place for access, place in granted.values() if access == "rw" and place]
        if policy.grant_root and policy.mode in ("workspace-write", *HOME_MODES):
            writable = [*self._writable_in_roots(), *writable]
        covered = [r for r in self.roots if not any(is_below(r.path, w.path) for w in writable)]
        covered = [r for r in covered if any(is_below(r.path, top) for top in PRIVATE_PLACES)]
        self.read_only = (
            *covered,
            *(place for access, place in granted.values() if access == "ro" and place),
        )
        self.writable = tuple(_without_nested(writable, self.read_only))
        for place in (*self.writable, *self.read_only):
            self._refuse_trust_anchors(place, is_writable=place in self.writable)

    def _refuse_trust_anchors(self, place: Place, *, is_writable: bool) -> None:
        """A jail that may write its own policy, or all there is, is none. Covering config and state is not enough:
        who may move their parents away may put others in their place."""
        if place.path == "/":
            raise PolicyError("the whole file system cannot be granted; name a directory", path="/")
        for own in map(os.path.realpath, self.own):
            if is_below(place.path, own):
                raise PolicyError(f"{place.path} is Corral's own and cannot be granted", path=place.path)
            if is_writable and is_below(own, place.path):
                raise PolicyError(
                    f"{place.path} cannot be writable: Corral's own {own} lies in it; work in a directory below it, "
                    "or set CORRAL_CONFIG_DIR and CORRAL_STATE_DIR to places outside it",
                    path=place.path,
                )

    def _check_own_home(self) -> None:
        """A home of the jail's own protects nothing if the real one is writable beside it."""
        from corral.jail.homes import check_caller, check_copies, check_root

        if self.policy.mode in HOME_MODES:
            check_caller(self.policy, self.host, degraded=self.degraded)
            if self.policy.grant_root:
                check_root(self.root, self.homes)
        check_copies(self.policy, self.host, self.root.path, self.homes)

    def _survey_jail(self) -> None:
        from corral.jail import homes, named

        self.jail = named.make(self.policy.jail or named.default_name(self.root.path), self.policy.storage)
        if self.policy.mode in HOME_MODES:
            self.home = homes.survey_home(self, self.jail)
        if self.policy.review:
            self.review = homes.survey_review(self, self.jail)

    def _protect_prefix(self) -> None:
        """The interpreter and this package run outside the jail next time; a jail that can write them is no jail."""
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        for path in dict.fromkeys(map(os.path.realpath, (sys.prefix, package))):
            if not any(is_below(path, place.path) for place in self.writable):
                continue
            if any(is_below(path, place.path) for place in self.read_only):
                continue
            if self.choice.backend not in ("namespaces", "systemd-run"):
                raise NotEnforceable(
                    f"{path} runs Corral itself and lies in a writable place, which Landlock cannot narrow. Install "
                    "Corral elsewhere (uv tool install, pipx), or set trust-prefix = true in your own config",
                    path=path,
                )
            self.read_only = (*self.read_only, self._hold(pin(path)))
            self.notices.append(f"{path} runs Corral itself and is read-only inside")

    def _writable_in_roots(self) -> list[Place]:
        if self.policy.writable is None:
            return list(self.roots)
        return [self._bound_of(glob) for glob in self.policy.writable]

    def _bound_of(self, glob: str) -> Place:
        """The directory, or the existing file, that a command is bound to by this glob."""
        relative, is_literal = bound(glob)
        self.bounds[glob] = relative if is_literal else f"{relative}/ and all below it"
        if self.policy.wide_globs and (relative == "." or (is_literal and not self._is_file(relative))):
            return self._directory_of(glob, relative)
        if relative == ".":
            raise PolicyError(
                f"writable glob {glob!r} would make the whole workspace writable for commands; "
                "name a directory (like out/**), or leave writable out",
                path=glob,
                rule="writable",
            )
        place = pin_beneath(self.root, relative, create=not is_literal)
        if is_literal and (place is None or place.is_directory):
            if place is not None:
                place.close()
            kind = "a directory" if place is not None else "not there yet"
            raise PolicyError(
                f"writable glob {glob!r} is {kind}, and a command cannot be bound to it; did you mean {glob}/** ?",
                path=glob,
                rule="writable",
            )
        if place is None:
            raise PolicyError(
                f"writable glob {glob!r}: {relative} cannot be made", path=glob, rule="writable"
            )
        return self._hold(place)

    def _is_file(self, relative: str) -> bool:
        place = pin_beneath(self.root, relative, create=False)
        if place is not None:
            place.close()
        return place is not None and not place.is_directory

    def _directory_of(self, glob: str, relative: str) -> Place:
        """Where the policy says that a wider bound is meant: the directory that the glob's path lies in."""
        above = os.path.dirname(relative) or "."
        self.bounds[glob] = f"{above}/ and all below it"
        place = pin_beneath(self.root, above, create=True)
        if place is None:
            raise PolicyError(f"writable glob {glob!r}: {above} cannot be made", path=glob, rule="writable")
        return self._hold(place)

    def _protect_project_config(self) -> None:
        """The project's own policy stays as it is while something runs that it is meant to bind."""
        for root in self.roots:
            place = pin_beneath(root, PROJECT_CONFIG, create=False)
            if place is None:
                continue
            self._hold(place)
            if stat.S_ISREG(place.kind) and any(is_below(place.path, w.path) for w in self.writable):
                self.read_only = (*self.read_only, place)

    def _find_resolver(self) -> Place | None:
        target = os.path.realpath("/etc/resolv.conf")
        if is_below(target, "/run") and os.path.isfile(target):
            return self._hold(pin(target))
        return None


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.lstat(path).st_mode)
    except OSError:
        return False


def _refuse_planted(given: str, path: str, tops: list[str]) -> None:
    """A link in a place that commands may write was perhaps left there by one of them, to have the next grant widened:
    it may not lead out."""
    for link in links_on_the_way(given):
        for top in tops:
            if is_below(link, top) and link != top and not is_below(path, top):
                raise PolicyError(
                    f"{given} leads to {path} by way of a link in {top}, which commands may write; if you mean that "
                    "place, name it",
                    path=link,
                    rule="links",
                    grant=path,
                )


def _without_nested(writable: list[Place], read_only: tuple[Place, ...]) -> list[Place]:
    """Writable places inside writable places add nothing, unless a read-only one lies between."""
    narrowed = {place.path for place in read_only}
    kept: list[Place] = []
    for place in sorted(writable, key=lambda p: p.path.split("/")):
        above = [path for path in (*narrowed, *(other.path for other in kept)) if is_below(place.path, path)]
        nearest = max(above, key=len, default="")
        if not nearest or (nearest in narrowed and nearest != place.path):
            kept.append(place)
    return kept
