"""What both Linux tiers share: the steps from the last mount to the exec, and the limits before the first."""

from __future__ import annotations

import os
import stat

from corral.jail import kernel, seccomp
from corral.paths.sensitive import ROOT_KEY_MATERIAL
from corral.policy import LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.host import Host
    from corral.jail.plan import Draft
    from corral.jail.site import Site
    from corral.paths.places import Place
    from corral.policy import Policy

# A slot, the rights it gets, and whether it is a file (which takes fewer).
Rules = list[tuple[str, tuple[str, ...], bool]]

# RLIMIT_NPROC does not bind kernel uid 0; a PID namespace's own pid_max does.
PID_MAX_SINCE = (6, 14)

# Devices that a command may open for writing; nothing it writes there stays.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")


# Filled for each run with the way into its control group, where it has one.
GROUP_SLOT = "1021"


def wants_group(policy: Policy, host: Host, backend: str) -> bool:
    """Whether a control group would hold a limit better than what the tier has; it costs a launch milliseconds."""
    limits = policy.limits
    if limits.memory is not None:
        return True
    lowered = limits.processes is not None and limits.processes < (LIMITS["processes"][1] or 0)
    counted = backend == "namespaces" and (not host.is_root or host.release >= PID_MAX_SINCE)
    return lowered and not counted


def add_limits(draft: Draft, policy: Policy, group: str = "") -> None:
    """Limits that hold from the start; the one on processes waits for the user namespace (it then counts only
    what is inside). ``group``: a control group is there, as `Site` has it."""
    limits = policy.limits
    for name, value in (("cpu", limits.cpu), ("file_size", limits.file_size)):
        if value is not None:
            draft.add(
                "rlimit", kernel.RLIMIT[name], int(value), why=f"limit {name.replace('_', '-')} to {value}"
            )
    if limits.memory is not None:
        draft.add("rlimit", kernel.RLIMIT["data"], limits.memory, why="limit the data of each process")
        if group != "alone":
            draft.add("memory", limits.memory, why="limit what the whole tree keeps in memory")
        draft.add("oom", 1000, why="go first when the host runs out of memory")


def add_group(draft: Draft, site: Site) -> None:
    """From here on what runs is counted by the kernel as a whole; the supervisor is not."""
    if site.group:
        draft.add("group", GROUP_SLOT, why="into the control group of this run")


ALL_SCOPES = kernel.SCOPE_ABSTRACT | kernel.SCOPE_SIGNAL


def add_rules(
    draft: Draft,
    host: Host,
    rules: Rules,
    *,
    tcp_closed: bool,
    scopes: int = ALL_SCOPES,
    for_later: bool = False,
) -> None:
    """Landlock: everything is handled, and each slot gets its rights. ``scopes``: what reaches nobody outside.
    ``for_later``: they are handed to us instead of being entered."""
    if host.abi < 1:
        return
    scopes = scopes if host.abi >= 6 else 0
    net = kernel.NET_TCP if tcp_closed and host.abi >= 4 else 0
    size = kernel.ruleset_size(host.abi)
    draft.add(
        "ruleset", kernel.all_fs_rights(host.abi), net, scopes, size, why="a Landlock ruleset for all of it"
    )
    granted: dict[str, int] = {}
    for slot, rights, on_file in rules:
        granted[slot] = granted.get(slot, 0) | kernel.fs_rights(rights, host.abi, on_file=on_file)
    for slot, bits in granted.items():
        draft.add("allow", slot, bits, why="allow this place its rights")
    if for_later:
        draft.add("hand", why="keep the Landlock rules for every run")
    else:
        draft.add("restrict", why="enter the Landlock domain")


def leaves_nesting_open(policy: Policy, host: Host) -> bool:
    """Rules on files forbid every mount inside, so where a sandbox may be nested there are none: the mounts alone hold.
    Root's jails always have them."""
    return policy.mode in ("casual", "bare") and not host.is_root


def has_file_rules(policy: Policy, host: Host) -> bool:
    """In the namespaces tier the mounts hold files anyway; rules on top would forbid what must work in a jail that is
    in another one without such rules."""
    return not leaves_nesting_open(policy, host) and (
        not host.no_refer or host.is_root or policy.mode == "strict"
    )


def add_scopes(draft: Draft, host: Host, scopes: int = ALL_SCOPES) -> None:
    """Landlock without rules on files: nobody outside is reached by signal or abstract socket."""
    if host.abi >= 6 and scopes:
        size = kernel.ruleset_size(host.abi)
        draft.add("ruleset", 0, 0, scopes, size, why="a Landlock domain that keeps signals and sockets in")
        draft.add("restrict", why="enter the Landlock domain")


def add_readable(draft: Draft, host: Host, rules: Rules) -> None:
    """Everything, but for root: it owns raw disks and password files, and Landlock cannot subtract. There each
    directory on the way to such a path is granted entry by entry."""
    root = draft.open_path("/", stat.S_IFDIR, "everything is readable")
    if not host.is_root:
        rules.append((root, kernel.READ, False))
        return
    rules.append((root, ("read-dir",), False))
    closed = _closed_to_root()
    for directory in listed_for_root():
        with os.scandir(directory) as found:
            entries = list(found)
        for entry in entries:
            if (
                entry.path in closed
                or entry.is_symlink()
                or any(p.startswith(entry.path + "/") for p in closed)
            ):
                continue
            try:
                kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
            except FileNotFoundError:
                continue  # a lock file of somebody's, gone by now
            slot = draft.open_path(entry.path, kind, f"{entry.path} is readable", flags=kernel.MAY_BE_MISSING)
            rules.append((slot, kernel.READ, kind != stat.S_IFDIR))


def _closed_to_root() -> set[str]:
    return {path for path in (*ROOT_KEY_MATERIAL, "/dev") if os.path.lexists(path)}


def listed_for_root() -> list[str]:
    """Directories that are granted entry by entry; what they hold decides the plan."""
    return sorted({parent for path in _closed_to_root() for parent in _parents(path)})


def _parents(path: str) -> list[str]:
    parts = path.split("/")[1:-1]
    return ["/", *("/" + "/".join(parts[: n + 1]) for n in range(len(parts)))]


def add_devices(draft: Draft, rules: Rules, devices: tuple[Place, ...], *, inline: bool) -> None:
    for device in devices:
        why = f"{device.path} stays usable"
        slot = draft.open_place(device, why) if inline else draft.inherit(device.fd, why)
        rules.append((slot, kernel.DEVICE, True))


def add_streams(draft: Draft, site: Site, rules: Rules) -> list[str]:
    """A terminal or file that the caller put on 0-2 may be opened again as /dev/stderr and the like. Returns the
    slots of further descriptors that the command keeps."""
    if site.terminal:
        slot = draft.fill("fd", 0, why="its terminal may be opened again by name")
        rules.append((slot, kernel.DEVICE, True))
    seen: set[tuple[int, int]] = set()
    for fd in (0, 1, 2) if site.inherits_streams else ():
        try:
            info = os.fstat(fd)
        except OSError:
            continue
        is_terminal = stat.S_ISCHR(info.st_mode) and os.isatty(fd)
        if not (is_terminal or (stat.S_ISREG(info.st_mode) and fd)) or (info.st_dev, info.st_ino) in seen:
            continue
        seen.add((info.st_dev, info.st_ino))
        slot = draft.fill("fd", fd, why="a standard stream may be opened again by name")
        rules.append((slot, kernel.DEVICE, True))
    return [draft.inherit(fd, "a descriptor the caller leaves to the command") for fd in site.kept]


def filter_families(
    policy: Policy, host: Host, *, own_network: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Socket families that are allowed, and those refused as forbidden rather than unknown."""
    inet = (seccomp.AF_INET, seccomp.AF_INET6)
    if policy.network == "open":
        return (seccomp.AF_UNIX, *inet, seccomp.AF_NETLINK), ()
    if own_network:
        return (seccomp.AF_UNIX, *inet), ()
    unix_is_fenced = host.abi >= 9 or policy.unix_sockets
    return ((seccomp.AF_UNIX,), inet) if unix_is_fenced else ((), (seccomp.AF_UNIX, *inet))


def add_privileges(
    draft: Draft,
    policy: Policy,
    host: Host,
    *,
    own_network: bool,
    shared_with_host: bool,
    nesting: bool = False,
) -> None:
    files = policy.limits.open_files
    if files is not None:  # here and not before: the steps above need descriptors of their own
        draft.add("rlimit", kernel.RLIMIT["open_files"], int(files), why=f"limit open-files to {files}")
    draft.add("nocaps", why="empty every capability set")
    allowed, refused = filter_families(policy, host, own_network=own_network)
    program = seccomp.build_filter(
        host.machine,
        families=allowed,
        refused_families=refused,
        shared_with_host=shared_with_host,
        nesting=nesting,
        # Whoever reaches such a file outside, where nothing is nosuid, would be root.
        set_id=not host.is_root,
    )
    draft.add("seccomp", program.hex(), why="refuse the system calls of the baseline filter")
