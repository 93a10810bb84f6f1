"""The namespaces tier: a file system view, processes, IPC and (network off) a network of its own, with Landlock
and the filter on top."""

from __future__ import annotations

import os
import stat

from corral.jail import fence, kernel
from corral.jail.site import is_below, submounts
from corral.jail.view import PRIVATE, READ_ONLY, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.fence import Rules
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Masks, Site
    from corral.paths.places import Place
    from corral.policy import Policy

NAME = "namespaces"

TEMPORARY = ("/tmp", "/var/tmp")
# What a jail that runs as root sees of /dev. Others see the host's, where their uid and Landlock hold them.
ROOT_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
# Parts of /proc that change the host when kernel uid 0 writes them, capabilities or not.
ROOT_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs")


def claims(policy: Policy, host: Host) -> set[str]:
    held = {"writes", "truncate", "metadata", "keys", "hidden", "read-only-inside", "signals", "memory"}
    held |= {"control-sockets", "terminals", "terminal-input", "ipc", "temp", "tree", "project-config"}
    if not host.no_proc:
        held.add("processes")
    if policy.network == "off":
        held |= {"tcp", "udp", "families", "abstract-sockets"}
    if host.abi >= 6:
        held.add("abstract-sockets")
    if host.abi >= 9:
        held.add("pathname-sockets")
    return held


def compile_plan(
    draft: Draft, policy: Policy, site: Site, host: Host, masks: Masks, *, inline: bool = False
) -> None:
    """Every place is opened by its path inside the new mount namespace, and compared with what was pinned."""
    rules: Rules = []
    kept = fence.add_streams(draft, site, rules)
    fence.add_devices(draft, rules, site.devices, inline=inline)
    draft.add("close", why="close every other descriptor")
    fence.add_limits(draft, policy)
    _add_namespaces(draft, policy, host)
    view = View(draft)
    homes = _add_sources(view, policy, site, host, masks, rules)
    devices = _take_devices(view) if host.is_root else {}
    draft.add("readonly", why="all that is mounted becomes read-only")
    covered = masks.covered + tuple(
        os.path.join(home, name)
        for home, names in masks.below_home.items()
        if home not in homes
        for name in names
    )
    empties = _add_empties(view) if covered else {}
    _add_temporary(view, policy, site, rules)
    _add_devices(view, policy, host, devices, rules)
    _add_run(view)
    view.put_waiting()
    _cover(view, covered, empties)
    _add_proc(view, policy, host)
    _add_process_limit(draft, policy)
    draft.add("init", why="a PID 1 that reaps and ends the tree")
    cwd = draft.open_path(site.cwd.path, stat.S_IFDIR, "the working directory, as the jail shows it")
    draft.add("chdir", cwd, why=f"work in {site.cwd.path}")
    draft.add("stdio", 1, why="check the standard descriptors, reopen files inside")
    for slot in kept:
        draft.add("keep", slot, why="a descriptor the caller leaves to the command")
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    rules.append((draft.open_path("/", stat.S_IFDIR, "everything else is readable"), kernel.READ, False))
    fence.add_rules(
        draft, host, rules, tcp_closed=False
    )  # the network namespace is empty; loopback works in it
    fence.add_privileges(draft, policy, host, own_network=policy.network == "off", shared_with_host=False)


def _add_namespaces(draft: Draft, policy: Policy, host: Host) -> None:
    kinds = ["user", "mnt", "pid", "ipc"] + (["net"] if policy.network == "off" else [])
    draft.add("namespaces", sum(kernel.CLONE_NEW[k] for k in kinds), why=f"namespaces: {', '.join(kinds)}")
    draft.add("ids", host.uid, host.uid, host.gid, host.gid, why="the same user and group inside")
    if policy.network == "off":
        draft.add("loopback", why="a network with nothing in it but itself")


def _add_process_limit(draft: Draft, policy: Policy) -> None:
    limit = policy.limits.processes
    if limit is not None:
        draft.add("rlimit", kernel.RLIMIT["processes"], limit, why=f"at most {limit} processes")


def _add_sources(view: View, policy: Policy, site: Site, host: Host, masks: Masks, rules: Rules) -> set[str]:
    """Clones of all that stays real. Returns the homes that a mask layer covers."""
    for place in site.writable:
        slot = view.take(place, PRIVATE, f"{place.path} is writable")
        rules.append((slot, kernel.WRITE, not place.is_directory))
    for place in site.read_only:
        view.take(place, READ_ONLY, f"{place.path} is visible, read-only")
    layered = layered_homes(site.homes, site.writable, host)
    for home in site.homes:
        if home.path in layered:
            _add_home(view, home, masks.below_home.get(home.path, ()), site.layers.get(home.path))
    if site.temp is not None:
        for path in TEMPORARY:
            slot = view.clone(site.temp, PRIVATE, f"a private {path}")
            view.wait(path, slot, stat.S_IFDIR, f"a private {path}")
            rules.append((slot, kernel.WRITE, False))
    if policy.network == "open" and site.resolver is not None:
        view.take(site.resolver, READ_ONLY, "the resolver's configuration")
    return layered


def layered_homes(homes: tuple[Place, ...], writable: tuple[Place, ...], host: Host) -> set[str]:
    """Homes that a mask layer can cover: not where home itself is writable, where something is mounted in it, or
    where the kernel refuses."""
    if host.no_overlay:
        return set()
    readable = (home.path for home in homes if not any(is_below(home.path, place.path) for place in writable))
    return {home for home in readable if not submounts(home)}


def _add_home(view: View, home: Place, names: tuple[str, ...], layer: Place | None) -> None:
    """Home under a layer of whiteouts: hidden by name, so a file that the host replaces meanwhile stays hidden."""
    draft, why = view.draft, "home, read-only, without what is hidden"
    bottom = draft.open_place(home, "home")
    top = draft.open_place(layer, f"{len(names)} names to hide") if layer else _add_layer(view, home, names)
    view.wait(home.path, draft.fill("overlay", top, bottom, READ_ONLY, why=why), stat.S_IFDIR, why)


def _add_layer(view: View, home: Place, names: tuple[str, ...]) -> str:
    draft = view.draft
    made = {"": view.tmpfs(f"mode={_mode_of(home.path):o}", "a layer of names to hide")}
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


def _add_empties(view: View) -> dict[int, str]:
    """An empty directory and an empty file to cover things with, on a mount that the private /tmp then covers."""
    draft, why = view.draft, "a place to keep an empty file and directory"
    mount = view.tmpfs("mode=755", why)
    draft.add("attach", mount, draft.open_path("/tmp", stat.S_IFDIR, why), why=why)
    return {
        stat.S_IFDIR: draft.fill("make", mount, "d", "dir", 0o555, why="an empty directory"),
        stat.S_IFREG: draft.fill("make", mount, "f", "file", 0o444, why="an empty file"),
    }


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


def _add_temporary(view: View, policy: Policy, site: Site, rules: Rules) -> None:
    if site.temp is not None:
        return  # a directory of the environment's, already waiting
    temp = view.tmpfs(f"mode=1777,nr_inodes=1048576{_size(policy)}", "a private /tmp")
    view.put_empty("/tmp", temp, "a private /tmp")
    source = view.draft.open_path("/tmp", stat.S_IFDIR, "/var/tmp is the same directory")
    again = view.draft.fill("tree", source, PRIVATE, why="/var/tmp is the same directory")
    view.put_empty("/var/tmp", again, "a private /var/tmp")
    rules.append((temp, kernel.WRITE, False))


def _size(policy: Policy) -> str:
    return f",size={policy.limits.memory}" if policy.limits.memory else ""


def _take_devices(view: View) -> dict[str, str]:
    """Only the mounts of these nodes leave out nodev, so only they are devices inside."""
    taken = {}
    for name in ROOT_DEVICES:
        opened = view.draft.open_path(f"/dev/{name}", stat.S_IFCHR, f"/dev/{name} stays usable")
        taken[name] = view.draft.fill("tree", opened, kernel.MOUNT_NOSUID, why=f"/dev/{name} stays usable")
    return taken


def _add_devices(view: View, policy: Policy, host: Host, devices: dict[str, str], rules: Rules) -> None:
    draft = view.draft
    if host.is_root:
        dev = view.tmpfs("mode=755", "a /dev with harmless devices only")
        view.put_empty("/dev", dev, "a /dev with harmless devices only")
        for name, slot in devices.items():
            view.put(f"/dev/{name}", slot, f"/dev/{name} stays usable", stat.S_IFCHR)
        for name, target in DEVICE_LINKS.items():
            draft.fill("make", dev, name, f"->{target}", 0, why=f"/dev/{name}")
    shm = view.tmpfs(f"mode=1777{_size(policy)}", "a private /dev/shm")
    terminals = draft.fill(
        "mount",
        "devpts",
        "newinstance,mode=620,ptmxmode=666",
        kernel.MOUNT_NOSUID,
        why="terminals of its own",
    )
    for path, slot, rights in (("/dev/shm", shm, kernel.WRITE), ("/dev/pts", terminals, kernel.TERMINALS)):
        if host.is_root or os.path.isdir(path):
            view.put(path, slot, f"a private {path}")
            rules.append((slot, rights, False))


def _add_run(view: View) -> None:
    """/run holds the sockets of everything that would do something for us outside."""
    for path in ("/run", "/var/run"):
        if os.path.isdir(path) and not os.path.islink(path):
            view.put_empty(path, view.tmpfs("mode=755", f"an empty {path}"), f"an empty {path}")


def _add_proc(view: View, policy: Policy, host: Host) -> None:
    if host.no_proc:
        return
    draft, why = view.draft, "a process list of its own"
    view.put("/proc", draft.fill("mount", "proc", "", PRIVATE | kernel.MOUNT_NOEXEC, why=why), why)
    if not host.is_root:
        return
    # RLIMIT_NPROC does not bind kernel uid 0; the namespace's own pid_max does. It came with 6.14.
    limit = policy.limits.processes
    if limit is not None and host.release >= (6, 14):
        draft.add("pids", max(limit, 301), why=f"at most {max(limit, 301)} processes")
    for name in ROOT_PROC:
        path = f"/proc/{name}"
        if os.path.exists(path):
            kind = stat.S_IFMT(os.stat(path).st_mode)
            opened = draft.open_path(path, kind, f"{path} is read-only")
            slot = draft.fill("tree", opened, READ_ONLY, why=f"{path} is read-only")
            draft.add("attach", slot, opened, why=f"{path} is read-only")
