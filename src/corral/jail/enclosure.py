"""Enclosure: one policy on this host, everything it names pinned, ready to compile a plan for any command.

The compiled steps are kept and used again until something they stand on changes: a mount, or a directory that
holds a masked name.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from corral.errors import NotEnforceable, PolicyError
from corral.jail import fence, landlock, namespaces, scene
from corral.jail.footing import Footing
from corral.jail.ground import Ground, furnished_ground
from corral.jail.mountpoints import make_mount_points
from corral.jail.plan import Draft, Plan
from corral.jail.site import Site, is_below
from corral.jail.view import View
from corral.paths.places import Place, pin_beneath, pin_directory
from corral.state import homes as account_homes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.jail.cgroups import Group
    from corral.jail.fence import Rules
    from corral.jail.plan import Step
    from corral.jail.site import Masks
    from corral.jail.stage import Stage
    from corral.jail.systemd import Carrier
    from corral.policy import Policy

    # steps, descriptors they inherit, their words encoded
    Compiled = tuple[tuple[Step, ...], tuple[int, ...], bytes]

REPLACED = "an empty one instead"
BY_NAME = "by name"
GROUPED = ("namespaces", "landlock")  # a unit of systemd's has a control group of its own


class Enclosure(Footing):
    """``inherits_streams``: the command gets our own 0-2. ``kept``: descriptors left to it."""

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
        homes = account_homes() if homes is None else homes
        super().__init__(policy, homes, degraded=degraded, prove=prove, inherits_streams=inherits_streams)
        self.kept = kept
        self._summary: Place | None = None
        self._compiled: dict[tuple[str, bool, Ground | None, bool, str], Compiled] = {}
        self._lock = allocate_lock()  # one environment serves many threads
        self._stage: Stage | None = None
        try:
            self._survey(root)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._stop_watching()
        self._drop_layers()
        self.grounds.forget()
        if self._stage is not None:
            self.leave_stage()
        self._release()

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
        self,
        argv: Sequence[str],
        cwd: str | None = None,
        *,
        inline: bool = False,
        wrapped: bool = False,
        group: str = "",
    ) -> Plan:
        """The plan for one command. Nothing runs. ``inline``: to be passed as arguments. ``wrapped``: for a spawner
        that is not ours, whose environment is scrubbed by the launcher and whose death ends the run. ``group``: as
        if it had a control group of that kind; only to be shown."""
        plan = self._planned(argv, self._steps(cwd, inline or wrapped, None, group=group))
        if inline or wrapped:
            plan = self._without_group(plan)
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

    def _without_group(self, plan: Plan) -> Plan:
        """A plan that travels as arguments inherits nothing, and nobody would remove its control group."""
        if not self.wants_group() or "memory-limit" not in plan.covered:
            return plan
        if "memory-limit" in self.policy.demands:
            raise NotEnforceable(
                "a prefix of a command has no control group to count its memory (memory-limit); run the command "
                "through Corral"
            )
        covered = tuple(claim for claim in plan.covered if claim != "memory-limit")
        return plan.replace(covered=covered, not_covered=(*plan.not_covered, "memory-limit"))

    def launchable(
        self,
        argv: Sequence[str],
        cwd: str | None = None,
        ground: Ground | None = None,
        *,
        terminal: bool = False,
        group: Group | None = None,
    ) -> tuple[Plan, bytes]:
        """The plan, and its words as the launcher reads them; those of the steps are kept from run to run.
        ``terminal``: the command gets one of its own on 0-2. ``group``: its control group, of `new_group`."""
        compiled = self._steps(cwd, False, ground, terminal=terminal, group=_kind_of(group))
        plan = self._planned(argv, compiled, group)
        return plan, compiled[2] + os.fsencode("\0".join(("--", *plan.argv)) + "\0")

    def _planned(self, argv: Sequence[str], compiled: Compiled, group: Group | None = None) -> Plan:
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
            self._carrier() if choice.backend == "systemd-run" else None,
            group,
        )

    def _carrier(self) -> Carrier:
        from corral.jail import systemd

        with self._lock:
            return systemd.carrier(self.policy, self._site(self.root, None, False), self._current_masks())

    def wants_group(self) -> bool:
        return self.choice.backend in GROUPED and fence.wants_group(
            self.policy, self.host, self.choice.backend
        )

    def new_group(self) -> Group | None:
        """A control group for one run, which whoever asks must remove; None where it needs none or can have none."""
        if not self.wants_group():
            return None
        from corral.jail import cgroups

        return cgroups.new_group(self.policy.limits)

    def take_ground(self) -> Ground | None:
        """Namespaces to start from, for one run alone; None where there are none to spare."""
        if self.choice.backend != "namespaces":
            return None
        with self._lock:
            if not self._is_current():
                self._forget()
            kept = self.grounds.take()
            if kept is not None:
                return kept
            if not self._may_be_set() or not self.grounds.reserve():
                return self.staged_ground()  # this run sets its own scene
            generation = self.grounds.generation
            site = self._site(self.root, None, False)
            masks = self._current_masks()
        ground = self._set_scene(site, masks)
        self.grounds.add(ground, generation)
        return ground or self.staged_ground()

    def _may_be_set(self) -> bool:
        """A strict root leaves no process list behind, without which a run gets none of its own."""
        return self.policy.mode != "strict"

    def _set_scene(self, site: Site, masks: Masks) -> Ground | None:
        kinds = ["user", "mnt", *(["net"] if self.policy.network == "off" else [])]
        stage = self.staged_ground()
        if stage is not None:
            site = site.replace(ground=stage, stage=self.stage_top)

        rules: Rules = []

        def bring(draft: Draft) -> None:
            fence.add_devices(draft, rules, site.devices, inline=False)

        def furnish(draft: Draft) -> None:
            scene.add_scene(View(draft), self.policy, site, self.host, masks)
            namespaces.add_rules_for_later(draft, self.policy, site, self.host, rules)

        places = (scene.SHARED_MEMORY,) if scene.has_shared_memory(self.policy, self.host) else ()
        ground, _ = furnished_ground(self.host, kinds, furnish, places=places, on=stage, bring=bring)
        return ground

    def give_back(self, ground: Ground | None) -> None:
        if ground is None or self.is_staged(ground):
            return
        self.grounds.give_back(ground)

    # ---- the home that runs share ----

    @property
    def stage_places(self) -> dict[str, int]:
        """Descriptors of what the stage shows and the host does not: its /tmp, a copied home, a workspace in review."""
        return dict(self._stage.ground.places) if self._stage is not None else {}

    def enter_stage(self, began: Callable[[], None] = lambda: None) -> None:
        """Before the first run of a named jail. ``began`` is called if nobody else has a run in it."""
        if self.jail is None or self._stage is not None:
            return
        from corral.jail import named, stage

        home, masks, policy = self.home, self._current_masks(), self.policy
        copies = tuple(copy for copy in (home, self.review) if copy is not None and copy.copied)
        top = self.stage_top
        self._stage = stage.enter(
            self.jail,
            self.host,
            self._terms(),
            lambda draft: scene.add_stage(draft, policy, top, copies, masks),
            (f"{top}/tmp", *(copy.staged for copy in copies)),
            self._stage_kinds(),
            (home.uid, home.gid) if home is not None else None,
            began,
        )
        named.record(self.jail, policy.mode, self.root.path)

    def _stage_kinds(self) -> tuple[str, ...]:
        """Without a user namespace where strict has another user for the kernel too, and where the marks of a copy are
        of the kind that only the host's root may make."""
        home, review = self.home, self.review
        alone = (home is not None and home.owners >= 0) or (review is not None and review.marks == "trusted")
        return ("mnt",) if alone else ("user", "mnt")

    def leave_stage(self) -> None:
        """No run is under way. What is kept of it may be changed from outside until `enter_stage` is called again."""
        with self._lock:
            self._forget()
            if self._stage is not None:
                self._stage.close()
                self._stage = None

    @property
    def stage_top(self) -> str:
        """Below it, seen by nobody else, lies what the runs of one jail share; empty where no jail is named."""
        if self.review is not None and self.review.marks == "trusted":
            return os.path.dirname(self.review.staged)
        return self.jail.part("stage") if self.jail is not None else ""

    def staged_ground(self) -> Ground | None:
        return self._stage.ground if self._stage is not None else None

    def is_staged(self, ground: Ground | None) -> bool:
        return ground is not None and ground is self.staged_ground()

    def _terms(self) -> str:
        """What all runs in one jail must agree on, as one word."""
        from corral.digest import digest

        hidden = (*sorted(self.hidden), *sorted(self.policy.unhide))
        return digest(repr((self.policy.mode, self.policy.review, hidden)).encode("utf-8", "surrogateescape"))

    def _steps(
        self,
        cwd: str | None,
        inline: bool,
        ground: Ground | None,
        *,
        terminal: bool = False,
        group: str = "",
    ) -> Compiled:
        where = os.path.join(self.root.path, cwd) if cwd else self.root.path
        key = (where, inline, ground, terminal, group)
        with self._lock:
            if ground is None and not self._is_current():
                self._forget()
            found = self._compiled.get(key)
            if found is None:
                found = self._compiled[key] = self._compile(where, inline, ground, terminal, group)
            return found

    def _compile(
        self, where: str, inline: bool, ground: Ground | None, terminal: bool, group: str
    ) -> Compiled:
        held = len(self._pinned)
        cwd = self.root if where == self.root.path else self._hold(self._working_directory(where))
        draft = Draft()
        backend = self.choice.backend
        if backend == "none":
            _compile_unjailed(draft, cwd, inline=inline)
        else:
            site = self._site(cwd, ground, terminal).replace(group=group)
            if backend == "landlock":
                landlock.compile_plan(draft, self.policy, site, self.host, inline=inline)
            elif backend == "systemd-run":
                from corral.jail import systemd

                systemd.compile_plan(draft, self.policy, site, self.host)
            elif ground is not None and ground.is_jail:
                from corral.jail import joining

                joining.compile_plan(draft, self.policy, site, self.host)
            else:
                namespaces.compile_plan(
                    draft, self.policy, site, self.host, self._current_masks(), inline=inline
                )
        if inline or backend in (
            "namespaces",
            "systemd-run",
        ):  # the descriptor is not in the plan; its identity is
            while len(self._pinned) > held:
                self._pinned.pop().close()
        steps = tuple(draft.steps)
        words = "\0".join(word for step, _ in steps for word in step)
        return steps, tuple(draft.passed), os.fsencode(words + "\0")

    def _working_directory(self, where: str) -> Place:
        """One below /tmp that nobody put there lies in the jail's own."""
        top = next((top for top in scene.TEMPORARY if is_below(where, top) and where != top), None)
        if top is None or self.choice.backend != "namespaces":
            return pin_directory(where, "working directory")
        places = (*self.roots, *self.writable, *self.read_only, *self._home_places)
        if any(is_below(where, place.path) for place in places):
            return pin_directory(where, "working directory")
        temp = self._temp or self._staged_temp()
        found = pin_beneath(temp, where[len(top) + 1 :], create=False) if temp is not None else None
        if found is None:
            raise PolicyError(f"working directory {where}: it is not in the jail's own {top}", path=where)
        return found.replace(path=where)

    def _staged_temp(self) -> Place | None:
        fd = self.stage_places.get(f"{self.stage_top}/tmp")
        return self.root.replace(fd=fd, path="/tmp") if fd is not None else None

    def _site(self, cwd: Place, ground: Ground | None, terminal: bool) -> Site:
        if self._temp is not None and self.choice.backend == "namespaces":
            for top in scene.TEMPORARY:
                make_mount_points(self._temp, top, (*self.writable, *self.read_only, *self._home_places))
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
            home=self.home,
            review=self.review,
            stage=self.stage_top if self.is_staged(ground) else "",
            is_set=ground in self.grounds,
        )

    # ---- what is hidden ----

    def hidden_paths(self) -> dict[str, str]:
        """Each hidden path and how: by name in a layer over home, or by a mount over what is there now."""
        if self.choice.backend not in ("namespaces", "systemd-run"):
            return {}
        masks = self._current_masks()
        if self.choice.backend == "systemd-run":
            from corral.jail.systemd import hidden_homes

            homes = hidden_homes(self._site(self.root, None, False))
            return {**dict.fromkeys(homes, REPLACED), **dict.fromkeys(masks.covered, "over-mount")}
        layered = scene.layered_homes(self._home_places, self.writable, self.host)
        found = dict.fromkeys(masks.covered, "over-mount")
        own = self.home.place.path if self.home is not None and not self.home.copied else ""
        for home, names in masks.below_home.items():
            for name in names if home != own else ():  # an empty home has nothing to hide
                found[f"{home}/{name}"] = BY_NAME if home in layered else "over-mount"
        return found

    def hidden_count(self) -> int:
        return len(self.hidden_paths())

    # ---- parts ----

    def _forget(self) -> None:
        self.grounds.forget()
        self._masks = None
        self._drop_layers()
        self._compiled.clear()


def _kind_of(group: Group | None) -> str:
    return "" if group is None else "beside" if group.revocable else "alone"


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
