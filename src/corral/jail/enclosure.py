"""Enclosure: one policy on this host, everything it names pinned, ready to compile a plan for any command.

The compiled steps are kept and used again until something they stand on changes: a mount, or a directory that
holds a masked name.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from _thread import allocate_lock

from corral.errors import NotEnforceable, PolicyError
from corral.jail import fence, landlock, namespaces
from corral.jail.ground import Ground, make_ground
from corral.jail.host import this_host
from corral.jail.ladder import choose
from corral.jail.layer import Layer, make_layer
from corral.jail.plan import Draft, Plan
from corral.jail.site import Site, find_masks, is_below, is_current, stamp_of
from corral.paths.globs import bound
from corral.paths.places import Place, pin, pin_beneath, pin_directory
from corral.state import config_directory, made_state_directory, state_directory
from corral.state import homes as account_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.jail.plan import Step
    from corral.jail.proofs import Proof
    from corral.jail.site import Masks
    from corral.policy import Policy

    # steps, descriptors they inherit, their words encoded
    Compiled = tuple[tuple[Step, ...], tuple[int, ...], bytes]

# Directories that a jail replaces by private ones; what is granted below them has to be put back.
PRIVATE_PLACES = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm")
GROUNDS = 8  # runs at once that need not make a network of their own
PROJECT_CONFIG = "corral.toml"


class Enclosure:
    """``inherits_streams``: the command gets our own 0-2. ``kept``: descriptors left to it. ``degraded``: a person
    accepts the best tier there is, though it lacks something the policy demands."""

    def __init__(
        self,
        root: str,
        policy: Policy,
        *,
        inherits_streams: bool = False,
        kept: tuple[int, ...] = (),
        degraded: bool = False,
        homes: tuple[str, ...] | None = None,
        prove: bool = True,
    ) -> None:
        self.policy = policy
        self.inherits_streams = inherits_streams
        self.kept = kept
        self.degraded = degraded
        self.homes = account_homes() if homes is None else homes
        self._prove = prove
        self.bounds: dict[str, str] = {}
        self.notices: list[str] = []
        self._pinned: list[Place] = []
        self._temp: Place | None = None
        self._summary: Place | None = None
        self._compiled: dict[tuple[str, bool, Ground | None, bool], Compiled] = {}
        self._lock = allocate_lock()  # one environment serves many threads
        self._grounds: list[Ground] = []
        self._grounds_made = 0
        self._masks: Masks | None = None
        self._layers: dict[str, Layer] = {}
        self._mounts = -1
        self._listed: tuple[tuple[str, int, int], ...] = ()
        try:
            self._survey(root)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._mounts >= 0:
            os.close(self._mounts)
            self._mounts = -1
        self._drop_layers()
        while self._grounds:
            self._grounds.pop().close()
        while self._pinned:
            self._pinned.pop().close()

    # ---- what the policy names, pinned ----

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
        self.hidden: tuple[str, ...] = (config_directory(), state_directory())
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
            path = os.path.realpath(os.path.join(self.root.path, os.path.expanduser(grant.path)))
            if grant.access == "none":
                granted.pop(path, None)
            elif grant.access == "hide":
                self.hidden += (os.path.join(self.root.path, os.path.expanduser(grant.path)),)
            elif os.path.lexists(path) or grant.missing != "skip":
                if grant.missing == "create":
                    os.makedirs(path, exist_ok=True)
                granted[path] = (grant.access, self._hold(pin(path, "grant")))
        writable = [place for access, place in granted.values() if access == "rw" and place]
        if policy.mode == "workspace-write":
            writable = [*self._writable_in_roots(), *writable]
        covered = [r for r in self.roots if not any(is_below(r.path, w.path) for w in writable)]
        covered = [r for r in covered if any(is_below(r.path, top) for top in PRIVATE_PLACES)]
        self.writable = tuple(_without_nested(writable))
        self.read_only = (
            *covered,
            *(place for access, place in granted.values() if access == "ro" and place),
        )
        for place in (*self.writable, *self.read_only):
            self._refuse_trust_anchors(place, is_writable=place in self.writable)

    def _refuse_trust_anchors(self, place: Place, *, is_writable: bool) -> None:
        """A jail that may write its own policy, or all there is, is none. Covering config and state is not enough:
        who may move their parents away may put others in their place."""
        if place.path == "/":
            raise PolicyError("the whole file system cannot be granted; name a directory", path="/")
        for own in (os.path.realpath(config_directory()), os.path.realpath(state_directory())):
            if is_below(place.path, own):
                raise PolicyError(f"{place.path} is Corral's own and cannot be granted", path=place.path)
            if is_writable and is_below(own, place.path):
                raise PolicyError(
                    f"{place.path} cannot be writable: Corral's own {own} lies in it; work in a directory below it, "
                    "or set CORRAL_CONFIG_DIR and CORRAL_STATE_DIR to places outside it",
                    path=place.path,
                )

    def _protect_prefix(self) -> None:
        """The interpreter and this package run outside the jail next time; a jail that can write them is no jail."""
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        for path in dict.fromkeys(map(os.path.realpath, (sys.prefix, package))):
            if not any(is_below(path, place.path) for place in self.writable):
                continue
            if any(is_below(path, place.path) for place in self.read_only):
                continue
            if self.choice.backend != "namespaces":
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

    def use_temp(self, temp: Place) -> None:
        """A directory of the caller's to be /tmp; without one each run has its own."""
        self._temp = temp
        self._compiled.clear()

    def use_summary(self, summary: Place) -> None:
        """A file that says, inside, what this jail is; see SUMMARY_INSIDE for where it is put."""
        self._summary = self._hold(summary)
        self._compiled.clear()

    # ---- compiling ----

    def plan(
        self, argv: Sequence[str], cwd: str | None = None, *, inline: bool = False, wrapped: bool = False
    ) -> Plan:
        """The plan for one command. Nothing runs. ``inline``: to be passed as arguments. ``wrapped``: for a spawner
        that is not ours, whose environment is scrubbed by the launcher and whose death ends the run."""
        plan = self._planned(argv, self._steps(cwd, inline or wrapped, None))
        if not wrapped:
            return plan
        front: list[Step] = [(("parent",), "end with whoever started us")]
        verbs = {"drop": "unset", "keep": "retain", "set": "retain"}
        scrubbing = [((verbs[rule.verb], rule.name), "the environment") for rule in self.policy.environment]
        # A temp directory of the spawner's is read-only inside, or not there; ours comes by wrap_env, or is /tmp.
        own = ("TMP", "TEMP") if self.choice.backend == "landlock" else ("TMPDIR", "TMP", "TEMP")
        given = {rule.name for rule in self.policy.environment if rule.verb == "set"}
        scrubbing += [(("unset", name), "the environment") for name in own if name not in given]
        return plan.replace(steps=(*front, *scrubbing, *plan.steps))

    def launchable(
        self,
        argv: Sequence[str],
        cwd: str | None = None,
        ground: Ground | None = None,
        *,
        terminal: bool = False,
    ) -> tuple[Plan, bytes]:
        """The plan, and its words as the launcher reads them; those of the steps are kept from run to run.
        ``terminal``: the command gets one of its own on 0-2."""
        compiled = self._steps(cwd, False, ground, terminal=terminal)
        plan = self._planned(argv, compiled)
        return plan, compiled[2] + os.fsencode("\0".join(("--", *plan.argv)) + "\0")

    def _planned(self, argv: Sequence[str], compiled: Compiled) -> Plan:
        if isinstance(argv, str):
            raise TypeError("argv is a list of words; for a shell line use .shell(line)")
        words = tuple(os.fspath(word) for word in argv)
        if not words or any("\0" in word for word in words):
            raise PolicyError("a command is at least one word, without NUL bytes")
        choice = self.choice
        return Plan(
            choice.backend,
            compiled[0],
            words,
            compiled[1],
            choice.covered,
            choice.not_covered,
            choice.passed_over,
        )

    def take_ground(self) -> Ground | None:
        """Namespaces to stand on, for one run alone; None where there are none to spare."""
        if self.choice.backend != "namespaces":
            return None
        with self._lock:
            if self._grounds:
                return self._grounds.pop()
            if self._grounds_made == GROUNDS:
                return None  # other runs have them; this one makes its own
            self._grounds_made += 1
        return make_ground(self.host, ["user", "net"] if self.policy.network == "off" else ["user"])

    def give_back(self, ground: Ground | None) -> None:
        if ground is not None:
            self._grounds.append(ground)

    def _steps(
        self, cwd: str | None, inline: bool, ground: Ground | None, *, terminal: bool = False
    ) -> Compiled:
        where = os.path.join(self.root.path, cwd) if cwd else self.root.path
        key = (where, inline, ground, terminal)
        with self._lock:
            if not self._is_current():
                self._forget()
            found = self._compiled.get(key)
            if found is None:
                found = self._compiled[key] = self._compile(where, inline, ground, terminal)
            return found

    def _compile(self, where: str, inline: bool, ground: Ground | None, terminal: bool) -> Compiled:
        held = len(self._pinned)
        cwd = self.root if where == self.root.path else self._hold(pin_directory(where, "working directory"))
        draft = Draft()
        backend = self.choice.backend
        if backend == "none":
            _compile_unjailed(draft, cwd, inline=inline)
        else:
            site = self._site(cwd, ground, terminal)
            if backend == "landlock":
                landlock.compile_plan(draft, self.policy, site, self.host, inline=inline)
            elif ground is not None and ground.is_jail:
                from corral.jail import joining

                joining.compile_plan(draft, self.policy, site, self.host)
            else:
                namespaces.compile_plan(
                    draft, self.policy, site, self.host, self._current_masks(), inline=inline
                )
        if inline or backend == "namespaces":  # the descriptor is not in the plan; its identity is
            while len(self._pinned) > held:
                self._pinned.pop().close()
        steps = tuple(draft.steps)
        words = "\0".join(word for step, _ in steps for word in step)
        return steps, tuple(draft.passed), os.fsencode(words + "\0")

    def _site(self, cwd: Place, ground: Ground | None, terminal: bool) -> Site:
        if self._temp is not None and self.choice.backend == "namespaces":
            self._make_mount_points(self._temp)
        return Site(
            roots=self.roots,
            writable=self.writable,
            read_only=self.read_only,
            hidden=self.hidden,
            homes=self._home_places,
            cwd=cwd,
            devices=self.devices,
            temp=self._temp,
            summary=self._summary,
            resolver=self.resolver,
            inherits_streams=self.inherits_streams,
            terminal=terminal,
            kept=self.kept,
            ground=ground,
            layers={home: layer.place for home, layer in self._current_layers().items()},
        )

    def _make_mount_points(self, temp: Place) -> None:
        """What is granted below /tmp or /var/tmp needs a place to stand in the directory that covers them."""
        for place in (*self.writable, *self.read_only, *self._home_places):
            top = next((t for t in namespaces.TEMPORARY if is_below(place.path, t)), None)
            if top is None or place.path == top:
                continue
            relative = place.path[len(top) + 1 :]
            directory = relative if place.is_directory else os.path.dirname(relative)
            made = pin_beneath(temp, directory, create=True)
            if made is None:
                raise NotEnforceable(f"{temp.path}/{directory} cannot be made", path=place.path)
            if not place.is_directory:
                flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(os.path.basename(relative), flags, 0o600, dir_fd=made.fd))
            made.close()

    # ---- what is hidden ----

    def hidden_paths(self) -> dict[str, str]:
        """Each hidden path and how: by name in a layer over home, or by a mount over what is there now."""
        if self.choice.backend != "namespaces":
            return {}
        masks = self._current_masks()
        layered = namespaces.layered_homes(self._home_places, self.writable, self.host)
        found = dict.fromkeys(masks.covered, "over-mount")
        for home, names in masks.below_home.items():
            for name in names:
                found[f"{home}/{name}"] = "by name" if home in layered else "over-mount"
        return found

    def hidden_count(self) -> int:
        return len(self.hidden_paths())

    # ---- what the compiled steps stand on ----

    def _current_masks(self) -> Masks:
        if self._masks is None:
            taken = tuple(place.path for place in (*self.writable, *self.read_only))
            self._masks = find_masks(
                self.homes, self.hidden, self.policy.unhide, taken, as_root=self.host.is_root
            )
        return self._masks

    def _current_layers(self) -> dict[str, Layer]:
        if not self._layers and self._temp is not None and self.choice.backend == "namespaces":
            beside = os.path.dirname(self._temp.path)
            for home, names in self._current_masks().below_home.items():
                if self._is_exposed(beside, home):
                    continue  # made inside each run instead
                layer = make_layer(beside, home, names)
                if layer is not None:
                    self._layers[home] = layer
        return self._layers

    def _is_exposed(self, beside: str, home: str) -> bool:
        """A layer may not lie in what it covers (the kernel refuses), nor where a command can take names out of it."""
        places = (home, *(place.path for place in self.writable))
        return any(is_below(beside, place) or is_below(place, beside) for place in places)

    def _drop_layers(self) -> None:
        while self._layers:
            self._layers.popitem()[1].place.close()

    def _is_current(self) -> bool:
        if self.inherits_streams or self.choice.backend == "none":
            return True  # compiled once, run once
        if self.choice.backend == "landlock":
            seen = stamp_of(fence.listed_for_root()) if self.host.is_root else ()
            was, self._listed = self._listed, seen
            return was == seen
        if self._mounts < 0:
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self._watch = select.poll()
            self._watch.register(self._mounts, select.POLLPRI | select.POLLERR)
            self._watch.poll(0)
            return False
        if self._watch.poll(0):
            return False
        whole = all(layer.is_whole() for layer in self._layers.values())
        return whole and (self._masks is None or is_current(self._masks))

    def _forget(self) -> None:
        self._masks = None
        self._drop_layers()
        self._compiled.clear()


def _is_device(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.lstat(path).st_mode)
    except OSError:
        return False


def _without_nested(places: list[Place]) -> list[Place]:
    """Writable places inside writable places add nothing."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda p: p.path.split("/")):
        if not any(is_below(place.path, other.path) for other in kept):
            kept.append(place)
    return kept


def _compile_unjailed(draft: Draft, cwd: Place, *, inline: bool) -> None:
    """Mode off: no fence, and still nothing outlives its run."""
    slot = (
        draft.open_place(cwd, "the working directory")
        if inline
        else draft.inherit(cwd.fd, "the working directory")
    )
    draft.add("close", why="close every other descriptor")
    draft.add("supervise", 0, why="stay, and end the whole tree")
    draft.add("chdir", slot, why=f"work in {cwd.path}")
    draft.add("stdio", 0, why="check the standard descriptors")
