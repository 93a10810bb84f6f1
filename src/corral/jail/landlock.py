"""The Landlock tier: no namespaces needed. Containers, and hosts that forbid them."""

from __future__ import annotations

import stat

from corral.jail import fence, kernel
from corral.jail.plan import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.fence import Rules
    from corral.jail.host import Host
    from corral.jail.site import Site
    from corral.paths.places import Place
    from corral.policy import Policy

NAME = "landlock"


def claims(policy: Policy, host: Host) -> set[str]:
    """What this tier holds, by ABI. Metadata, listing and reading outside are not Landlock's to refuse."""
    held = {"memory", "terminal-input", "ipc", "tree"}
    since = {"writes": 1, "truncate": 3, "devices": 5, "signals": 6, "abstract-sockets": 6}
    held |= {claim for claim, abi in since.items() if host.abi >= abi}
    if policy.network == "off":
        held |= {"tcp", "udp", "families"}
    if host.abi >= 9 or (policy.network == "off" and not policy.unix_sockets):
        held |= {"pathname-sockets", "control-sockets"}
    return held


def compile_plan(draft: Draft, policy: Policy, site: Site, host: Host, *, inline: bool = False) -> None:
    """Places come as descriptors; an inline plan opens them by path and compares."""
    rules: Rules = []

    def hold(place: Place, why: str) -> str:
        return draft.open_place(place, why) if inline else draft.inherit(place.fd, why)

    for place in site.writable:
        slot = hold(place, f"{place.path} is writable")
        rules.append((slot, kernel.WRITE, not place.is_directory))
    if site.temp is not None:
        rules.append((hold(site.temp, "a private temp directory"), kernel.WRITE, False))
    if policy.shared_memory:
        shm = draft.open_path("/dev/shm", stat.S_IFDIR, "shared memory, as the policy allows")
        rules.append((shm, kernel.SHARED_MEMORY, False))
    fence.add_devices(draft, rules, site.devices, inline=inline)
    kept = fence.add_streams(draft, site, rules)
    cwd = hold(site.cwd, "the working directory")
    draft.add("close", why="close every other descriptor")
    fence.add_limits(draft, policy, site.group)
    draft.add("supervise", int(host.abi >= 6), why="stay, and end the whole tree")
    fence.add_group(draft, site)
    draft.add("chdir", cwd, why=f"work in {site.cwd.path}")
    draft.add("stdio", 0, why="check the standard descriptors")
    for slot in kept:
        draft.add("keep", slot, why="a descriptor the caller leaves to the command")
    fence.add_readable(draft, host, rules)
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    fence.add_rules(draft, host, rules, tcp_closed=policy.network == "off")
    fence.add_privileges(draft, policy, host, own_network=False, shared_with_host=True)
