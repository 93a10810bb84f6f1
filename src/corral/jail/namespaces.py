"""The namespaces tier: a file system view, processes, IPC and (network off) a network of its own, with Landlock
and the filter on top."""

from __future__ import annotations

import os
import stat

from corral.jail import fence, kernel
from corral.jail.ground import add_held, add_on, add_own
from corral.jail.scene import SHARED_MEMORY, TEMPORARY, add_scene, has_own_devices
from corral.jail.view import PRIVATE, READ_ONLY, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.fence import Rules
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Masks, Site
    from corral.policy import Policy

NAME = "namespaces"

# Parts of /proc that change the host when kernel uid 0 writes them, capabilities or not.
ROOT_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs")


def claims(policy: Policy, host: Host) -> set[str]:
    held = {"writes", "truncate", "metadata", "keys", "hidden", "read-only-inside", "signals", "memory"}
    held |= {"control-sockets", "terminals", "terminal-input", "ipc", "temp", "tree", "project-config"}
    if not host.no_proc:
        held.add("processes")
    if policy.network == "off":
        held |= {"tcp", "udp", "families", "abstract-sockets"}
    has_file_rules = fence.has_file_rules(policy, host)
    if host.abi >= 5 and has_file_rules:
        held.add("devices")
    if host.abi >= 6:
        held.add("abstract-sockets")
    if host.abi >= 9 and has_file_rules:
        held.add("pathname-sockets")
    return held


def compile_plan(
    draft: Draft, policy: Policy, site: Site, host: Host, masks: Masks, *, inline: bool = False
) -> None:
    """The scene, unless the ground has it, then what is this run's own, then the fence."""
    rules: Rules = []
    kept = fence.add_streams(draft, site, rules)
    made = ""
    if site.ground is not None and site.ground.rules >= 0 and not rules:
        made = draft.inherit(site.ground.rules, "Landlock rules of ours")
    else:
        fence.add_devices(draft, rules, site.devices, inline=inline)
    held = add_held(draft, site.ground)
    owners = site.home.owners if site.home is not None else -1
    owned = draft.inherit(owners, "whose the places are inside") if owners >= 0 else ""
    draft.add("close", why="close every other descriptor")
    fence.add_limits(draft, policy, site.group)
    _enter_namespaces(draft, policy, site, host, held)
    fence.add_group(draft, site)
    view = View(draft)
    view.owners = owned
    # A strict root has no process list to be seen, and then the kernel gives no other: it is made before.
    proc = _make_proc(draft) if policy.mode == "strict" and not host.no_proc else ""
    root = add_scene(view, policy, site, host, masks) if not site.is_set else ""
    if not host.no_proc:
        _add_proc(draft, policy, host, proc or _make_proc(draft))
    if root:
        draft.add("attributes", root, READ_ONLY, why="nothing is added to the root")
    if policy.limits.processes is not None:
        limit = policy.limits.processes
        draft.add("rlimit", kernel.RLIMIT["processes"], limit, why=f"at most {limit} processes")
    draft.add("init", why="a PID 1 that reaps and ends the tree")
    where = site.cwd.path
    if root and not view.shows(where):
        where = site.home.place.path if site.home else "/"
    add_fence(draft, policy, site, host, rules, kept, where, fence.ALL_SCOPES, made)


def add_rules_for_later(draft: Draft, policy: Policy, site: Site, host: Host, rules: Rules) -> None:
    """Those of every run that starts from this scene, made once and handed to us. ``rules``: on what was brought in by
    descriptor."""
    if fence.has_file_rules(policy, host) and host.abi >= 1:
        _add_all_places(draft, policy, site, host, rules)
        fence.add_rules(draft, host, rules, tcp_closed=False, for_later=True)


def _enter_namespaces(
    draft: Draft, policy: Policy, site: Site, host: Host, held: list[tuple[str, str]]
) -> None:
    kinds = ["mnt", "pid", "ipc"]
    if policy.network == "off" and "net" not in dict(held):
        kinds.append("net")
    home = site.home
    if home is None or home.owners < 0:
        kinds = ["user", *kinds]
    if held:
        add_on(draft, host, held, kinds)
    else:
        add_own(draft, host, kinds, (home.uid, home.gid) if "user" in kinds and home is not None else None)


def _make_proc(draft: Draft) -> str:
    return draft.fill("mount", "proc", "", PRIVATE | kernel.MOUNT_NOEXEC, why="a process list of its own")


def _add_proc(draft: Draft, policy: Policy, host: Host, proc: str) -> None:
    why = "a process list of its own"
    draft.add("attach", proc, draft.open_path("/proc", stat.S_IFDIR, why), why=why)
    if not host.is_root:
        return
    limit = policy.limits.processes
    if limit is not None and host.release >= fence.PID_MAX_SINCE:
        draft.add("pids", max(limit, 301), why=f"at most {max(limit, 301)} processes")
    for name in ROOT_PROC:
        path = f"/proc/{name}"
        if os.path.exists(path):
            kind = stat.S_IFMT(os.stat(path).st_mode)
            opened = draft.open_path(path, kind, f"{path} is read-only")
            slot = draft.fill("tree", opened, READ_ONLY, why=f"{path} is read-only")
            draft.add("attach", slot, opened, why=f"{path} is read-only")


def add_fence(
    draft: Draft,
    policy: Policy,
    site: Site,
    host: Host,
    rules: Rules,
    kept: list[str],
    where: str,
    scopes: int,
    made: str = "",
) -> None:
    """From the last mount to the exec. ``rules``: on what came in by descriptor. ``kept``: slots the command gets.
    ``made``: the slot of rules that were made before."""
    cwd = draft.open_path(where, stat.S_IFDIR, "the working directory, as the jail shows it")
    draft.add("chdir", cwd, why=f"work in {where}")
    draft.add("stdio", 1, why="check the standard descriptors, reopen files inside")
    for slot in kept:
        draft.add("keep", slot, why="a descriptor the caller leaves to the command")
    if site.home is not None and site.home.owners >= 0:
        draft.add("become", site.home.uid, site.home.gid, why="another user, for the kernel too")
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    nests = fence.leaves_nesting_open(policy, host)
    if not fence.has_file_rules(policy, host):
        fence.add_scopes(draft, host, scopes)
    elif made:
        draft.add("rules", made, why="the Landlock rules of this environment")
        draft.add("restrict", why="enter the Landlock domain")
    else:
        _add_all_places(draft, policy, site, host, rules)
        # The network namespace is empty where the network is off; loopback works in it.
        fence.add_rules(draft, host, rules, tcp_closed=False, scopes=scopes)
    own_network = policy.network == "off"
    fence.add_privileges(draft, policy, host, own_network=own_network, shared_with_host=False, nesting=nests)


def _add_all_places(draft: Draft, policy: Policy, site: Site, host: Host, rules: Rules) -> None:
    _add_places(draft, policy, site, host, rules)
    rules.append((draft.open_path("/", stat.S_IFDIR, "everything else is readable"), kernel.READ, False))


def _add_places(draft: Draft, policy: Policy, site: Site, host: Host, rules: Rules) -> None:
    """What may be written, opened by its path inside, and compared with what was pinned."""
    copies = [copy.place for copy in (site.home, site.review) if copy is not None]
    for place in site.writable:
        if place not in copies:
            slot = draft.open_place(place, f"{place.path} is writable")
            rules.append((slot, kernel.WRITE, not place.is_directory))
    for place in copies:
        slot = draft.open_path(place.path, stat.S_IFDIR, f"{place.path}, the jail's own")
        rules.append((slot, kernel.WRITE, False))
    known = (site.temp.device, site.temp.inode) if site.temp is not None else ()
    slot = draft.open_path(TEMPORARY[0], stat.S_IFDIR, "the private /tmp, /var/tmp too", *known)
    rules.append((slot, kernel.WRITE, False))
    own = has_own_devices(policy, host)
    for path, rights in ((SHARED_MEMORY, kernel.WRITE), ("/dev/pts", kernel.TERMINALS)):
        if own or os.path.isdir(path):
            rules.append((draft.open_path(path, stat.S_IFDIR, f"the private {path}"), rights, False))
