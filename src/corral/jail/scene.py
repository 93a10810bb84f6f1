"""Scene: the file system that a command sees, but for the process list, which each run has of its own.

It can be set up once, in a mount namespace that is kept, and copied by each run.
"""

from __future__ import annotations

import os
import stat

from corral.jail import kernel
from corral.jail.root import add_root
from corral.jail.site import is_below, submounts
from corral.jail.standing import directories_to_hold
from corral.jail.view import PRIVATE, READ_ONLY, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Home, Masks, Site
    from corral.paths.places import Place
    from corral.policy import Policy

TEMPORARY = ("/tmp", "/var/tmp")
STAGED_TEMP = "40%"  # of memory, for the /tmp of a named jail
SHARED_MEMORY = "/dev/shm"
# Of an overlay, by where it marks what was done (`Home.marks`).
COPY_OPTIONS = {"user": "userxattr", "trusted": "redirect_dir=on"}
SUMMARY_INSIDE = "/run/corral/summary.json"
# What a jail with a /dev of its own has in it. Others see the host's, where their uid and Landlock hold them.
OWN_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def has_own_devices(policy: Policy, host: Host) -> bool:
    return host.is_root or policy.mode == "strict"


def has_shared_memory(policy: Policy, host: Host) -> bool:
    return has_own_devices(policy, host) or os.path.isdir(SHARED_MEMORY)


def add_scene(view: View, policy: Policy, site: Site, host: Host, masks: Masks) -> str:
    """Every place is opened by its path inside the new mount namespace, and compared with what was pinned. Returns the
    slot of a strict jail's root, to be closed when all is in place; empty in other modes."""
    draft = view.draft
    homes = _add_sources(view, policy, site, host, masks)
    devices = _take_devices(view) if has_own_devices(policy, host) else {}
    # Where the kernel gives no process list of its own, programs still need one: the host's, as in other modes.
    root = add_root(view, ("/proc",) if host.no_proc else ()) if policy.mode == "strict" else ""
    if not root:
        draft.add("readonly", why="all that is mounted becomes read-only")
    covered = masks.covered + tuple(
        os.path.join(home, name)
        for home, names in masks.below_home.items()
        if home not in homes
        for name in names
    )
    own = site.home
    if own is not None and own.copied and own.place.path in homes:
        from corral.jail.homes import copies_to_cover

        covered += copies_to_cover(own, masks.below_home.get(own.place.path, ()), starts=bool(site.stage))
    scratch = _Scratch(view, policy)
    empties = {}
    if covered:
        empties = {
            stat.S_IFDIR: scratch.make("d", "dir", 0o555),
            stat.S_IFREG: scratch.make("f", "file", 0o444),
        }
    if devices:
        _add_own_devices(view, scratch, devices)
    emptied = _add_run(scratch) if not root else []
    _add_temporary(scratch, site)
    view.put_waiting()
    for slot in emptied:
        draft.add("attributes", slot, READ_ONLY, why="nothing is added to it")
    _cover(view, covered, empties)
    _add_terminals(draft, has_own_devices(policy, host))
    if has_shared_memory(policy, host):
        _add_memory(draft, policy)
    return root


def _add_sources(view: View, policy: Policy, site: Site, host: Host, masks: Masks) -> set[str]:
    """Clones of all that stays real. Returns the homes that a mask layer covers."""
    review = site.review
    for place in site.writable:
        if review is not None and place.path == review.place.path:
            continue
        slot = view.take(place, PRIVATE, f"{place.path} is writable")
    for path in directories_to_hold(site, masks):
        view.take_path(path, PRIVATE, f"{path} stays where it is, for what lies in it")
    if review is not None:
        slot = _add_copy(view, review, (), bool(site.stage), "/var/tmp")
        view.wait(review.place.path, slot, stat.S_IFDIR, f"{review.place.path}, as it is reviewed")
    for place in site.read_only:
        view.take(place, READ_ONLY, f"{place.path} is visible, read-only")
    if site.temp is not None or site.stage:
        for path in TEMPORARY:
            slot = _clone_temp(view, site, path)
            view.wait_private(path, slot, f"a private {path}")
            if site.stage:
                view.growing[path] = slot
    if site.summary is not None:
        why = "a summary of this jail for whoever asks inside"
        view.wait(SUMMARY_INSIDE, view.clone(site.summary, READ_ONLY, why), stat.S_IFREG, why)
    if policy.network == "open" and site.resolver is not None:
        view.take(site.resolver, READ_ONLY, "the resolver's configuration")
    return _add_homes(view, policy, site, host, masks)


def _clone_temp(view: View, site: Site, path: str) -> str:
    why = f"a private {path}"
    if site.stage:
        staged = view.draft.open_path(f"{site.stage}/tmp", stat.S_IFDIR, why)
        return view.draft.fill("tree", staged, PRIVATE, why=why)
    assert site.temp is not None
    return view.clone(site.temp, PRIVATE, why)


def _add_homes(view: View, policy: Policy, site: Site, host: Host, masks: Masks) -> set[str]:
    """Returns those in which nothing needs a cover: a layer hides what is hidden, or they are the jail's own."""
    own, draft = site.home, view.draft
    others = tuple(home for home in site.homes if own is None or home.path != own.place.path)
    layered = layered_homes(others, site.writable, host) if policy.mode != "strict" else set()
    homes = [home for home in others if home.path in layered]
    opened = {home.path: _open_home(draft, home, site.layers.get(home.path)) for home in homes}
    if own is not None and not _is_granted(site, own.place):
        names = masks.below_home.get(own.place.path, ())
        slot = (
            _add_copy(view, own, names, bool(site.stage), "/tmp")
            if own.copied
            else view.clone(own.layers[0], PRIVATE, "a home of the jail's own")
        )
        wait = view.wait_private if not own.copied else view.wait_directory
        wait(own.place.path, slot, "home, the jail's own")
        view.growing[own.place.path] = slot
        layered |= {own.place.path}
    if own is not None:
        for path, place in own.over:
            view.wait(
                path, view.clone(place, READ_ONLY, f"{path}, for the user inside"), stat.S_IFREG, f"{path}"
            )
    for home in homes:  # last: a layer made here is kept below /tmp, and covers what lies there
        _add_home(view, home, masks.below_home.get(home.path, ()), *opened[home.path])
    return layered


def _is_granted(site: Site, home: Place) -> bool:
    """Whether the real home was asked for by name; as the directory of the run it is the jail's own."""
    places = (*site.writable, *site.read_only)
    return any(place.path == home.path and place not in site.roots for place in places)


def layered_homes(homes: tuple[Place, ...], writable: tuple[Place, ...], host: Host) -> set[str]:
    """Homes that a mask layer can cover: not where home itself is writable, where something is mounted in it, or
    where the kernel refuses."""
    if host.no_overlay:
        return set()
    readable = (home.path for home in homes if not any(is_below(home.path, place.path) for place in writable))
    return {home for home in readable if not submounts(home)}


def _open_home(draft: Draft, home: Place, layer: Place | None) -> tuple[str, str]:
    """Slots of home and of a layer that stands ready, empty if there is none."""
    return draft.open_place(home, "home"), draft.open_place(layer, "names to hide") if layer else ""


def _add_home(view: View, home: Place, names: tuple[str, ...], bottom: str, layer: str) -> None:
    """Home under a layer of whiteouts: hidden by name, so a file that the host replaces meanwhile stays hidden."""
    draft, why = view.draft, "home, read-only, without what is hidden"
    top = layer or _add_layer(view, home, names)
    view.wait(home.path, draft.fill("overlay", top, bottom, READ_ONLY, why=why), stat.S_IFDIR, why)


def _add_copy(view: View, copy: Home, names: tuple[str, ...], staged: bool, beside: str) -> str:
    """A directory that is copied where it is written to, without ``names``: what the stage has, or made here."""
    draft = view.draft
    why = f"{copy.place.path}, copied where it is written to"
    if staged:
        return draft.fill("tree", draft.open_path(copy.staged, stat.S_IFDIR, why), PRIVATE, why=why)
    bottom = draft.open_place(copy.place, why)
    upper, work = (draft.open_place(layer, f"what was changed in {copy.place.path}") for layer in copy.layers)
    top = _add_layer(view, copy.place, names, beside) if names else "-"
    return draft.fill("copy", top, bottom, upper, work, COPY_OPTIONS[copy.marks], PRIVATE, why=why)


def add_stage(draft: Draft, policy: Policy, top: str, copies: tuple[Home, ...], masks: Masks) -> None:
    """What the runs of one jail share, put where only they can find it."""
    view = View(draft)
    why = "a /tmp for all runs of this jail"
    size = policy.limits.memory or STAGED_TEMP
    temp = view.tmpfs(f"mode=1777,nr_inodes=1048576,size={size}", why)
    draft.add("attach", temp, draft.open_path(f"{top}/tmp", stat.S_IFDIR, why), why=why)
    for copy in copies:
        slot = _add_copy(view, copy, masks.below_home.get(copy.place.path, ()), False, f"{top}/masks")
        why = f"{copy.place.path}, copied where it is written to"
        draft.add("attach", slot, draft.open_path(copy.staged, stat.S_IFDIR, why), why=why)


def _add_layer(view: View, home: Place, names: tuple[str, ...], beside: str = "/tmp") -> str:
    draft = view.draft
    why = "a layer of names to hide"
    made = {"": view.tmpfs(f"mode={_mode_of(home.path):o}", why)}
    # Before 6.15 a layer must be mounted where the overlay is made; the private /tmp covers it later.
    draft.add("attach", made[""], draft.open_path(beside, stat.S_IFDIR, why), why=why)
    for name in names:
        *parents, leaf = name.split("/")
        for depth, parent in enumerate(parents, 1):
            path = "/".join(parents[:depth])
            if path not in made:
                above = made["/".join(parents[: depth - 1])]
                mode = _mode_of(f"{home.path}/{path}")
                made[path] = draft.fill(
                    "make", above, parent, "dir", mode, why=f"~/{path}, without what is hidden"
                )
        draft.add("whiteout", made["/".join(parents)], leaf, why=f"~/{name} is hidden")
    return made[""]


def _mode_of(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return 0o700


class _Scratch:
    """One file system for every private directory, on a mount that the private /tmp then covers: making one costs
    more than putting pieces of it in several places."""

    def __init__(self, view: View, policy: Policy) -> None:
        size = f",size={policy.limits.memory}" if policy.limits.memory else ""
        why = "a file system for private directories"
        self.view = view
        self.mount = view.tmpfs(f"mode=755,nr_inodes=1048576{size}", why)
        view.draft.add("attach", self.mount, view.draft.open_path("/tmp", stat.S_IFDIR, why), why=why)

    def make(self, name: str, kind: str, mode: int) -> str:
        return self.view.draft.fill("make", self.mount, name, kind, mode, why=f"an empty {kind} for later")

    def put(self, path: str, source: str, why: str) -> str:
        """A directory of the scratch file system at this path. Returns what was put there."""
        slot = self.view.draft.fill("tree", source, PRIVATE, why=why)
        self.view.put_empty(path, slot, why)
        return slot


def _cover(view: View, covered: tuple[str, ...], empties: dict[int, str]) -> None:
    """Hide by an over-mount what no layer can hide. A file the host replaces by rename meanwhile comes back."""
    for path in covered:
        try:
            kind = stat.S_IFMT(os.lstat(path).st_mode)
        except OSError:
            continue
        if stat.S_ISLNK(kind) or not view.shows(path):
            continue
        why = f"{path} is hidden"
        empty = empties[stat.S_IFDIR if stat.S_ISDIR(kind) else stat.S_IFREG]
        slot = view.draft.fill("tree", empty, READ_ONLY, why=why)
        view.draft.add("attach", slot, view.draft.open_path(path, kind, why), why=why)


def _add_temporary(scratch: _Scratch, site: Site) -> None:
    if site.temp is not None or site.stage:
        return  # a directory of the environment's or the jail's, already waiting
    source = scratch.make("tmp", "dir", 0o1777)
    for path in TEMPORARY:  # the same directory twice
        scratch.put(path, source, f"a private {path}")


def _take_devices(view: View) -> dict[str, str]:
    """Only the mounts of these nodes leave out nodev, so only they are devices inside."""
    taken = {}
    for name in OWN_DEVICES:
        opened = view.draft.open_path(f"/dev/{name}", stat.S_IFCHR, f"/dev/{name} stays usable")
        taken[name] = view.draft.fill("tree", opened, kernel.MOUNT_NOSUID, why=f"/dev/{name} stays usable")
    return taken


def _add_run(scratch: _Scratch) -> list[str]:
    """/run holds the sockets of everything that would do something for us outside. Returns what was put there."""
    return [
        scratch.put(path, scratch.make(path[1:].replace("/", "-"), "dir", 0o755), f"an empty {path}")
        for path in ("/run", "/var/run")
        if os.path.isdir(path) and not os.path.islink(path)
    ]


def _add_terminals(draft: Draft, own: bool) -> None:
    """Not the host's. They are gone with the processes that hold them, so the next run finds none."""
    if own or os.path.isdir("/dev/pts"):
        options, why = "newinstance,mode=620,ptmxmode=666", "terminals of its own"
        terminals = draft.fill("mount", "devpts", options, kernel.MOUNT_NOSUID, why=why)
        draft.add("attach", terminals, draft.open_path("/dev/pts", stat.S_IFDIR, why), why=why)


def _add_memory(draft: Draft, policy: Policy) -> None:
    """Shared memory of no other run. Whoever keeps the scene sees to it that the next run finds nothing there."""
    size = f",size={policy.limits.memory}" if policy.limits.memory else ""
    why = f"a private {SHARED_MEMORY}"
    shm = draft.fill("mount", "tmpfs", f"mode=1777,nr_inodes=1048576{size}", PRIVATE, why=why)
    draft.add("attach", shm, draft.open_path(SHARED_MEMORY, stat.S_IFDIR, why), why=why)


def _add_own_devices(view: View, scratch: _Scratch, devices: dict[str, str]) -> None:
    source = scratch.make("dev", "dir", 0o755)
    scratch.put("/dev", source, "a /dev with harmless devices only")
    for name, slot in devices.items():
        view.put(f"/dev/{name}", slot, f"/dev/{name} stays usable", stat.S_IFCHR)
    for name, target in DEVICE_LINKS.items():
        view.draft.fill("make", source, name, f"->{target}", 0, why=f"/dev/{name}")
    for name in ("shm", "pts"):
        view.draft.fill("make", source, name, "dir", 0o755, why=f"a mount point for /dev/{name}")
