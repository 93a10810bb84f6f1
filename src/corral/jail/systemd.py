"""The systemd-run tier: the user's own manager starts a transient unit with a file system view of its own, and in it
the launcher adds the filter, Landlock and the limits, and ends the tree.

A user manager drops what it cannot do without a word, as long as nothing in a unit needs a mount namespace for certain.
So every unit has a user namespace, temporary file systems and a bind to another place: what cannot be made is refused.
"""

from __future__ import annotations

import os
import stat

from corral.jail import fence, kernel
from corral.jail.host import launcher_path
from corral.jail.properties import (
    CONTROLLED,
    delegated,
    expansion_free,
    is_odd,
    nested_word,
    runtime_directory,
    word,
)
from corral.jail.scene import SHARED_MEMORY, SUMMARY_INSIDE, TEMPORARY
from corral.jail.site import is_below
from corral.jail.standing import directories_to_hold
from corral.paths.places import kernel_device
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.fence import Rules
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Masks, Site
    from corral.policy import Policy

NAME = "systemd-run"
PROGRAMS = ("/usr/bin/systemd-run", "/bin/systemd-run")

# The launcher, as a unit shows it. Nothing is at this path outside: a plan for a unit that is carried out anywhere else
# stops at its first step.
INSIDE = "/run/corral/launch"

# What every unit has, whatever the policy.
ALWAYS = (
    ("PrivateUsers", "yes"),
    ("ProtectSystem", "strict"),
    ("ReadOnlyPaths", "-/home -/root"),  # which the line above leaves as they are
    ("PrivateTmp", "yes"),
    ("NoNewPrivileges", "yes"),
    ("TemporaryFileSystem", "/run:mode=0755"),
    ("TemporaryFileSystem", "/run/user:mode=0755"),
    ("TemporaryFileSystem", f"{SHARED_MEMORY}:mode=1777"),
    ("KillMode", "control-group"),
    ("KillSignal", "SIGKILL"),  # the launcher has asked nicely by then
    ("IgnoreSIGPIPE", "no"),
    # What would run code of the manager's environment before ours; all of it is dropped right after.
    ("UnsetEnvironment", "BASH_ENV LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH"),
)

# The program that looks around comes through the socket on descriptor 0.
DOOR = "import _socket as s; door = s.socket(fileno=0); exec(door.recv(1 << 17))"


class Carrier(Record):
    """What takes the launcher into a unit, and what has to be seen there before anything runs.

    ``hidden_home``: a directory that must be gone inside. ``limits``: control files and their values. ``odd``: a path
    in it that some versions of systemd cannot take."""

    arguments: tuple[str, ...]
    hidden_home: str
    writable: tuple[str, ...]
    own_network: bool
    limits: tuple[tuple[str, str], ...] = ()
    filtered: bool = False
    odd: str = ""

    def argv(self, unit: str, seconds: float | None) -> list[str]:
        """With the name of the unit, which is new for every run, and the time after which its manager ends it."""
        program, *rest = self.arguments
        at_most = ["-p", f"RuntimeMaxSec={seconds:.3f}"] if seconds is not None else []
        return [program, f"--unit={unit}", *at_most, *rest]


def claims(policy: Policy, host: Host) -> set[str]:
    held = {"writes", "truncate", "metadata", "keys", "hidden", "read-only-inside", "project-config"}
    held |= {"memory", "control-sockets", "terminal-input", "ipc", "temp", "tree"}
    since = {"terminals": 1, "devices": 5, "signals": 6, "abstract-sockets": 6, "pathname-sockets": 9}
    held |= {claim for claim, abi in since.items() if host.abi >= abi}
    if policy.network == "off":
        held |= {"tcp", "udp", "families", "abstract-sockets"}
    return held


def program() -> str:
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), "")


def missing() -> str:
    """Empty, or why no unit can be asked for here. Whether one holds is another question."""
    if not program():
        return "systemd-run is not installed"
    directory = runtime_directory()
    if not os.path.exists(os.path.join(directory, "systemd", "private")):
        return f"no systemd user manager runs for this user ({directory}/systemd/private is not there)"
    if not os.path.exists(os.path.join(directory, "bus")):
        return f"the user has no message bus ({directory}/bus is not there; install dbus-user-session)"
    return ""


# ---- the plan that the launcher carries out in the unit ----


def compile_plan(draft: Draft, policy: Policy, site: Site, host: Host) -> None:
    """Places are opened by their paths inside, and compared with what was pinned: a descriptor of the host's own mount
    would be a way around all that the unit shows read-only."""
    rules: Rules = []
    _add_mark(draft)
    optional = _optional(policy, site)
    for place in (*site.writable, *site.read_only):
        flags = kernel.MAY_BE_MISSING if place.path in optional else 0
        is_writable = place in site.writable
        why = f"{place.path} is writable" if is_writable else f"{place.path} is visible, read-only"
        slot = draft.open_path(place.path, place.kind, why, place.device, place.inode, flags)
        if is_writable:
            rules.append((slot, kernel.WRITE, not place.is_directory))
    for path in (*TEMPORARY, SHARED_MEMORY, *hidden_homes(site)):
        rules.append((draft.open_path(path, stat.S_IFDIR, f"a private {path}"), kernel.WRITE, False))
    fence.add_devices(draft, rules, site.devices, inline=True)
    kept = fence.add_streams(draft, site, rules)
    cwd = draft.open_place(site.cwd, "the working directory")
    draft.add("close", why="close every other descriptor")
    fence.add_limits(draft, policy)
    if policy.limits.processes is not None:
        limit = policy.limits.processes
        draft.add("rlimit", kernel.RLIMIT["processes"], limit, why=f"at most {limit} processes")
    draft.add("supervise", int(host.abi >= 6), why="stay, and end the whole tree")
    draft.add("chdir", cwd, why=f"work in {site.cwd.path}")
    draft.add("stdio", 1, why="check the standard descriptors, reopen files inside")
    for slot in kept:
        draft.add("keep", slot, why="a descriptor the caller leaves to the command")
    fence.add_readable(draft, host, rules)
    draft.add("nonewprivs", why="set-uid programs gain nothing")
    fence.add_rules(draft, host, rules, tcp_closed=False)
    fence.add_privileges(draft, policy, host, own_network=policy.network == "off", shared_with_host=True)


def _add_mark(draft: Draft) -> None:
    info = os.stat(launcher_path())
    device = kernel_device(info.st_dev)
    draft.open_path(INSIDE, stat.S_IFREG, "be in a unit that was made for this", device, info.st_ino)


def _optional(policy: Policy, site: Site) -> set[str]:
    """Grants that may be missing: gone by the time the unit is made, they are left out."""
    root = site.roots[0].path
    return {
        os.path.realpath(os.path.join(root, os.path.expanduser(grant.path)))
        for grant in policy.grants
        if grant.missing == "skip"
    }


def hidden_homes(site: Site) -> list[str]:
    """Homes that an empty directory covers. Not where home itself, or what it lies in, is granted: there the key
    material is covered path by path."""
    granted = [place.path for place in (*site.writable, *site.read_only)]
    return [home.path for home in site.homes if not any(is_below(home.path, path) for path in granted)]


# ---- the arguments of systemd-run ----


def carrier(policy: Policy, site: Site, masks: Masks) -> Carrier:
    homes = hidden_homes(site)
    properties = [("TemporaryFileSystem", f"{nested_word(home)}:mode=0755") for home in homes]
    properties += ALWAYS
    properties += _binds(policy, site)
    properties += [("BindPaths", word(path)) for path in directories_to_hold(site, masks)]
    properties += [("InaccessiblePaths", word(f"-{path}")) for path in masks.covered]
    if policy.network == "off":
        properties.append(("PrivateNetwork", "yes"))
    limits = _limits(policy)
    properties += [(name, value) for name, _, value in limits]
    arguments = ["systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet"]
    arguments.append("--description=a command in a corral")
    for name, value in properties:
        arguments += ["-p", f"{name}={value}"]
    return Carrier(
        arguments=(*arguments, "--", "/bin/bash", "-c", expansion_free(_script())),
        hidden_home=homes[0] if homes else runtime_directory(),
        writable=tuple(place.path for place in site.writable if place.path not in _optional(policy, site)),
        own_network=policy.network == "off",
        limits=tuple((file, value) for _, file, value in limits),
        odd=next(filter(is_odd, (*(p.path for p in (*site.writable, *site.read_only)), *masks.covered)), ""),
    )


def _binds(policy: Policy, site: Site) -> list[tuple[str, str]]:
    optional = _optional(policy, site)
    found = []
    for name, places in (("BindPaths", site.writable), ("BindReadOnlyPaths", site.read_only)):
        for place in places:
            found.append((name, word(f"-{place.path}" if place.path in optional else place.path)))
    inside = [(launcher_path(), INSIDE)]
    if site.summary is not None:
        inside.append((site.summary.path, SUMMARY_INSIDE))
    if policy.network == "open" and site.resolver is not None:
        inside.append((site.resolver.path, site.resolver.path))
    for prefix in _interpreter()[1]:
        if not any(is_below(prefix, place.path) for place in (*site.writable, *site.read_only)):
            inside.append((prefix, prefix))
    return found + [("BindReadOnlyPaths", f"{word(source)}:{word(onto)}") for source, onto in inside]


def _script() -> str:
    """Never a value of the caller's: the arguments of systemd-run are there for everybody to read."""
    interpreter = _interpreter()[0].replace("'", "'\\''")
    return f"exec -c '{interpreter}' -I -S -c '{DOOR}'"


def _interpreter() -> tuple[str, tuple[str, ...]]:
    """One that a unit shows, and what has to be shown for it: the system's needs nothing."""
    import sys

    if os.access("/usr/bin/python3", os.X_OK):
        return "/usr/bin/python3", ()
    prefixes = dict.fromkeys(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix))
    return sys.executable, tuple(prefixes)


def _limits(policy: Policy) -> list[tuple[str, str, str]]:
    """Property, control file and value of each limit whose controller is delegated; the launcher holds the others."""
    wanted = (("MemoryMax", policy.limits.memory), ("TasksMax", policy.limits.processes))
    there = delegated() if any(value is not None for _, value in wanted) else frozenset()
    return [
        (name, CONTROLLED[name][0], str(value))
        for name, value in wanted
        if value is not None and CONTROLLED[name][1] in there
    ]
