"""The Seatbelt tier, for macOS: a policy as the text of a sandbox profile and its parameters.

Nobody has run this on a Mac yet. It is tested as text, by an evaluator of the rules.

In a profile the last rule that matches decides. So places come in the order of their depth: what is said of a directory
is said before what is said of something in it. A path of the policy is never part of the text; it travels as a
parameter, and no character in it means anything.
"""

from __future__ import annotations

import os
import sys

from corral.errors import NotEnforceable, PolicyError
from corral.jail.site import find_masks, is_below
from corral.paths.globs import bound
from corral.record import Record
from corral.state import config_directory, homes, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.policy import Policy

NAME = "seatbelt"
SANDBOX_EXEC = "/usr/bin/sandbox-exec"
MODES = ("read-only", "workspace-write")
PROJECT_CONFIG = "corral.toml"

# Key material of this system, below home, beside the list for every system.
KEY_MATERIAL = (
    *("Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Messages", "Library/Mail"),
    *("Library/Application Support/Google/Chrome", "Library/Application Support/Firefox"),
    *("Library/Application Support/BraveSoftware", "Library/Application Support/com.apple.TCC"),
)
# Temporary directories of everybody, by their real names.
SHARED_TEMPORARY = ("/private/tmp", "/private/var/tmp", "/private/var/folders")

# Services of the system that ordinary programs ask. Each answers questions; none acts for its caller.
SERVICES = (
    "com.apple.system.opendirectoryd.libinfo",  # names of users and groups
    "com.apple.system.opendirectoryd.membership",
    "com.apple.system.notification_center",
    "com.apple.system.logger",
    "com.apple.logd",
    "com.apple.bsd.dirhelper",  # where the temp directory is
)
NETWORK_SERVICES = (
    "com.apple.SystemConfiguration.configd",
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.networkd",
    "com.apple.trustd.agent",  # whether a certificate is good
)

FOUNDATION = (
    "(version 1)",
    "(deny default)",
    # Not covered by the default.
    "(deny process-info*)",
    "(deny nvram*)",
    "(allow process-exec*)",
    "(allow process-fork)",
    "(allow process-info* (target same-sandbox))",
    "(allow signal (target same-sandbox))",
    # Facts about the machine; not the list of processes, nor their arguments and variables.
    "(allow sysctl-read)",
    '(deny sysctl-read (sysctl-name-prefix "kern.proc"))',
    "(allow ipc-posix-sem)",
    "(allow file-read*)",
    # Devices that keep nothing, and terminals of its own. No control of the caller's terminal: that types into it.
    '(deny file-read* (regex #"^/dev/tty"))',
    '(allow file-read* file-write-data (literal "/dev/tty"))',
    '(allow file-write-data (require-all (literal "/dev/null") (vnode-type CHARACTER-DEVICE)))',
    '(allow file-write-data (regex #"^/dev/(fd/[0-9]+|stdout|stderr)$"))',
    "(allow pseudo-tty)",
    '(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))',
    '(allow file-read* file-write* file-ioctl (require-all (extension "com.apple.sandbox.pty") (regex #"^/dev/ttys")))',
)
# Then no unix socket outside the writable places, but for names of hosts.
NETWORK_OPEN = (
    "(allow network*)",
    "(allow system-socket)",
    '(deny network-outbound (subpath "/"))',
    '(allow network-outbound (literal "/private/var/run/mDNSResponder"))',
)

# What is said of a place, by its kind. Unix sockets are a matter of paths too.
PLACE_RULES: dict[str, tuple[str, ...]] = {
    "WRITABLE_ROOT": ("(allow file-read* file-write* network-bind network-inbound network-outbound {})",),
    "READ_ONLY": ("(deny file-write* network-bind {})",),
    "SHOWN": ("(allow file-read* {})",),
    "HIDDEN": ("(deny file-read* file-write* network-bind network-inbound network-outbound {})",),
}


class Profile(Record):
    """Text and parameters, as `sandbox-exec` takes them."""

    text: str
    parameters: tuple[tuple[str, str], ...]

    def words(self) -> list[str]:
        return ["-p", self.text, *(f"-D{name}={value}" for name, value in self.parameters)]


def missing() -> str:
    """Empty, or why this tier is not there."""
    system: str = sys.platform
    if system != "darwin":
        return "macOS only"
    return "" if os.access(SANDBOX_EXEC, os.X_OK) else f"{SANDBOX_EXEC} is not there"


def claims(policy: Policy) -> set[str]:
    """What a profile can say. It cannot say that nothing outlives its run. There are no abstract sockets here."""
    held = {"writes", "truncate", "metadata", "keys", "hidden", "read-only-inside", "project-config"}
    held |= {"processes", "signals", "memory", "abstract-sockets", "control-sockets", "pathname-sockets"}
    held |= {"terminals", "terminal-input", "temp"}
    if not policy.shared_memory:
        held.add("ipc")
    if policy.network == "off":
        held |= {"tcp", "udp", "families"}
    if policy.limits.memory is None:
        held.add("memory-limit")  # there is none to escape
    return held


def prefix(policy: Policy, root: str, *, temp: str | None = None) -> list[str]:
    """Words to put in front of a command. Directories that the policy wants to be made are made."""
    for grant in policy.grants:
        if grant.missing == "create" and grant.access in ("rw", "ro"):
            os.makedirs(os.path.join(root, os.path.expanduser(grant.path)), exist_ok=True)
    return [SANDBOX_EXEC, *compile_profile(policy, root, temp=temp).words(), "--"]


def command(policy: Policy, root: str, argv: Sequence[str], *, temp: str | None = None) -> list[str]:
    return [*prefix(policy, root, temp=temp), *argv]


def compile_profile(
    policy: Policy, root: str, *, temp: str | None = None, own_homes: tuple[str, ...] | None = None
) -> Profile:
    """The profile for commands in ``root``. ``temp``: a private directory that is to be their temp directory."""
    if policy.mode not in MODES:
        raise NotEnforceable(f"Seatbelt holds the modes {' and '.join(MODES)}, not {policy.mode}")
    places = _places(policy, root, temp, homes() if own_homes is None else own_homes)
    lines = [*FOUNDATION, *(f'(allow mach-lookup (global-name "{name}"))' for name in _services(policy))]
    if policy.shared_memory:
        lines.append("(allow ipc-posix-shm*)")
    if policy.network == "open":
        lines += NETWORK_OPEN
    parameters: list[tuple[str, str]] = []
    counts: dict[str, int] = {}
    for path, kind in sorted(
        places.items(), key=lambda item: item[0].split("/")[1:] if item[0] != "/" else []
    ):
        number = counts[kind] = counts.get(kind, -1) + 1
        parameters.append((f"{kind}_{number}", path))
        lines += [rule.format(f'(subpath (param "{kind}_{number}"))') for rule in PLACE_RULES[kind]]
    for kind, rule, found in (
        ("WAY", "(allow file-read-metadata {})", _ways_through(places)),
        ("KEPT", "(deny file-write-unlink {})", _kept(places)),
    ):
        for number, path in enumerate(found):
            parameters.append((f"{kind}_{number}", path))
            lines.append(rule.format(f'(literal (param "{kind}_{number}"))'))
    return Profile("\n".join(lines) + "\n", tuple(parameters))


def _services(policy: Policy) -> tuple[str, ...]:
    return SERVICES + (NETWORK_SERVICES if policy.network == "open" else ())


def _places(policy: Policy, root: str, temp: str | None, own_homes: tuple[str, ...]) -> dict[str, str]:
    """Each place and what is said of it, by its real path: the system compares those."""
    root = os.path.realpath(root)
    granted: dict[str, str] = {}
    hidden = [config_directory(), state_directory()]
    hidden += [
        os.path.join(home, name) for home in own_homes for name in KEY_MATERIAL if name not in policy.unhide
    ]
    roots = [root, *(os.path.realpath(os.path.expanduser(path)) for path in policy.roots)]
    if policy.mode == "workspace-write" and policy.grant_root:
        inside = roots if policy.writable is None else [_bound(root, glob) for glob in policy.writable]
        granted.update(dict.fromkeys(inside, "WRITABLE_ROOT"))
    for path in roots:
        granted.setdefault(path, "READ_ONLY")
    for grant in policy.grants:
        path = os.path.join(root, os.path.expanduser(grant.path))
        if grant.access == "hide":
            hidden.append(path)
        elif grant.access == "none":
            granted.pop(os.path.realpath(path), None)
        elif not os.path.lexists(path) and grant.missing == "refuse":
            raise PolicyError(f"grant {path}: there is nothing; make it, or leave the grant out", path=path)
        elif os.path.lexists(path) or grant.missing == "create":
            granted[os.path.realpath(path)] = "WRITABLE_ROOT" if grant.access == "rw" else "READ_ONLY"
    if temp is not None:
        granted[os.path.realpath(temp)] = "WRITABLE_ROOT"
    for path in roots:
        if os.path.isfile(os.path.join(path, PROJECT_CONFIG)):
            granted[os.path.join(path, PROJECT_CONFIG)] = "READ_ONLY"
    for path, kind in granted.items():
        _refuse_own(path, kind)
    masks = find_masks(own_homes, hidden, policy.unhide, granted, as_root=False)
    covered = [
        *masks.covered,
        *(f"{home}/{name}" for home, names in masks.below_home.items() for name in names),
    ]
    places = dict.fromkeys((*SHARED_TEMPORARY, *covered), "HIDDEN")
    places |= granted
    for path, kind in granted.items():
        if kind == "READ_ONLY" and _said_of(os.path.dirname(path), places) == "HIDDEN":
            places[path] = "SHOWN"  # read-only where all around it is hidden
    return places


def _refuse_own(path: str, kind: str) -> None:
    if path == "/":
        raise PolicyError("the whole file system cannot be granted; name a directory", path=path)
    for own in map(os.path.realpath, (config_directory(), state_directory())):
        if is_below(path, own) or (kind == "WRITABLE_ROOT" and is_below(own, path)):
            raise PolicyError(f"{path} cannot be granted: Corral's own {own} is it, or lies in it", path=path)


def _bound(root: str, glob: str) -> str:
    return os.path.normpath(os.path.join(root, bound(glob)[0]))


def _ways_through(places: dict[str, str]) -> list[str]:
    """Directories between a hidden place and one in it that is not: programs look at them on the way."""
    ways: dict[str, None] = {}
    for path, kind in sorted(places.items()):
        if kind == "HIDDEN":
            continue
        above = os.path.dirname(path)
        while _said_of(above, places) == "HIDDEN":
            ways[above] = None
            above = os.path.dirname(above)
    return list(ways)


def _kept(places: dict[str, str]) -> list[str]:
    """Writable directories on the way to a place in them that is not writable. Rules go by path: whoever renames one of
    these moves what is in it out of its rule."""
    kept: dict[str, None] = {}
    for path, kind in sorted(places.items()):
        if kind == "WRITABLE_ROOT":
            continue
        above = os.path.dirname(path)
        while _said_of(above, places) == "WRITABLE_ROOT":
            kept[above] = None
            above = os.path.dirname(above)
    return list(kept)


def _said_of(path: str, places: dict[str, str]) -> str | None:
    """The kind of the nearest place at or above a path."""
    while path not in places and path != "/":
        path = os.path.dirname(path)
    return places.get(path)
