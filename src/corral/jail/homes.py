"""The home of casual, bare and strict: a copy of the real one, or an empty one; and who the command is in it."""

from __future__ import annotations

import os
import stat

from corral.errors import NotEnforceable, PolicyError
from corral.jail import named
from corral.jail.ground import owners_ground
from corral.jail.mountpoints import make_mount_points
from corral.jail.site import Home, is_below, submounts
from corral.paths.places import Place, pin, pin_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.host import Host
    from corral.jail.named import NamedJail
    from corral.jail.survey import Survey
    from corral.policy import Policy

# Who a command is in strict: nobody's account, so that what is yours looks like the jail's and nothing else does.
STRICT_ID = 60999

# Where the stage of the host's root is put: not below home, which no layer could hide names in if something of another
# owner's namespace were mounted there. The same for all jails, each in a mount namespace of its own.
ROOTS_STAGE = "/run/corral/stage"

# What else a person can do where no copy can be made.
INSTEAD_OF_A_COPY = "use -m bare or -m workspace-write"
INSTEAD_OF_A_REVIEW = "run without --review"


def check_caller(policy: Policy, host: Host, *, degraded: bool) -> None:
    """Kernel uid 0 owns too much of the host to be let in without file rules, which nested sandboxes cannot bear."""
    if policy.mode != "strict" and host.is_root and is_initial_root():
        raise NotEnforceable(
            f"mode {policy.mode} does not run as root; use `sudo -u USER corral run …`, -m strict, or "
            "-m workspace-write"
        )
    if policy.mode == "strict" and host.abi < 1 and host.namespaces and policy.require and not degraded:
        raise NotEnforceable(
            "strict holds its list of places twice, by mounts and by Landlock, and this kernel has no Landlock; use "
            "a kernel from 5.13 on with landlock in its lsm= list, or --degraded to do without the second"
        )


def is_initial_root() -> bool:
    """Whether our uid 0 is the host's, not a container's."""
    with open("/proc/self/uid_map") as file:
        return os.getuid() == 0 and file.read().split() == ["0", "0", "4294967295"]


def check_root(root: Place, homes: tuple[str, ...]) -> None:
    for home in homes:
        if is_below(home, root.path):
            what = "home" if home == root.path else f"{root.path}, which holds home,"
            raise PolicyError(
                f"{what} would be writable as it is; change to a project directory, or use -D (the working directory "
                "is then part of the jail's own home)",
                path=root.path,
                grant="-D",
            )
    owner = os.stat(root.fd).st_uid
    if owner != os.getuid():
        raise PolicyError(
            f"{root.path} is not yours and cannot be granted; change to a directory of yours, or use -D",
            path=root.path,
        )


def check_copies(policy: Policy, host: Host, root: str, homes: tuple[str, ...]) -> None:
    """Whether what is to be copied can be, before anything is made: the kernel itself would not say what is wrong."""
    copied = [(homes[-1], INSTEAD_OF_A_COPY)] if policy.mode == "casual" and homes else []
    copied += [(root, INSTEAD_OF_A_REVIEW)] if policy.review else []
    if not host.namespaces:
        return  # nothing can be mounted at all, and that is what has to be said
    for path, otherwise in copied:
        mounted = submounts(path)
        if mounted:
            shown = ", ".join(mounted[:5]) + (f" and {len(mounted) - 5} more" if len(mounted) > 5 else "")
            raise NotEnforceable(
                f"{path} cannot be copied, something is mounted in it: {shown}; unmount it, or {otherwise}",
                path=mounted[0],
            )
        named.check_storage(policy.storage, otherwise)
        if host.no_overlay:
            kind = named.file_system(path)[0]
            raise NotEnforceable(
                f"{path} ({kind}) cannot be copied ({host.no_overlay}); that takes a kernel from 5.11 on with "
                f"overlayfs, and a file system that it can lie on; {otherwise}",
                path=path,
            )


def survey_home(of: Survey, jail: NamedJail) -> Home:
    policy, host = of.policy, of.host
    if not of.homes:
        raise NotEnforceable(
            f"mode {policy.mode} needs a home directory, and there is none; set HOME, or use -m workspace-write"
        )
    place = of._home_places[-1]
    if policy.mode == "casual":
        return _copied(of, jail, place, "home", ("changes", "work"), INSTEAD_OF_A_COPY)
    own = of._hold(pin_directory(jail.part("home")))
    _tell_of_moot_masks(of, place.path)
    if policy.mode == "bare":
        return Home(place, False, (own,), "", host.uid, host.gid)
    over = tuple((path, of._hold(pin(_with_account(jail, path, place.path)))) for path in ACCOUNT_FILES)
    owners = -1
    if host.is_root and is_initial_root():
        owners = _owners(of)
        # Root cannot make them through a mount that shows files as another user's.
        make_mount_points(own, place.path, (*of.writable, *of.read_only))
    return Home(place, False, (own,), "", STRICT_ID, STRICT_ID, owners, over)


def _tell_of_moot_masks(of: Survey, home: str) -> None:
    shown = (*of.writable, *of.read_only)
    for grant in of.policy.grants:
        path = os.path.join(of.root.path, os.path.expanduser(grant.path))
        if grant.access == "hide" and is_below(path, home) and not any(is_below(path, p.path) for p in shown):
            of.notices.append(f"{path} needs no hiding in {of.policy.mode}: nothing of home is there")


def _owners(of: Survey) -> int:
    """Root's jail runs as another user for the kernel too."""
    ground = owners_ground(of.host, STRICT_ID, STRICT_ID)
    if ground is None:
        raise NotEnforceable(
            "strict as root needs a user namespace that maps owners, and the kernel gives none; use -m workspace-write"
        )
    of._grounds_held.append(ground)
    return ground.held[0][1]


def survey_review(of: Survey, jail: NamedJail) -> Home:
    """The workspace, copied: what a command changes in it is seen by nobody until a person applies it."""
    copy = _copied(of, jail, of.root, "review", ("review/changes", "review/work"), INSTEAD_OF_A_REVIEW)
    if _marks(of.host, jail, copy.layers[0].path) == "user":
        return copy
    for name in ("tmp", "review", "masks"):
        os.makedirs(f"{ROOTS_STAGE}/{name}", 0o700, exist_ok=True)
    return copy.replace(marks="trusted", staged=f"{ROOTS_STAGE}/review")


def _marks(host: Host, jail: NamedJail, upper: str) -> str:
    """A layer keeps the marks that it began with; the other kind is not looked at by the kernel."""
    trusted = jail.part("review/trusted")
    may = host.is_root and is_initial_root() and os.access("/run", os.W_OK)
    if os.path.exists(trusted):
        if not may:
            raise NotEnforceable(
                f"what jail {jail.name} holds under review was begun by root outside of any container, and can only be "
                "gone on with there; name another jail with -j",
                path=upper,
            )
        return "trusted"
    if not may or os.listdir(upper):
        return "user"
    os.close(os.open(trusted, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    return "trusted"


def _copied(
    of: Survey, jail: NamedJail, place: Place, staged: str, parts: tuple[str, str], otherwise: str
) -> Home:
    layers = tuple(of._hold(pin_directory(jail.part(part))) for part in parts)
    # The layer's mode is the copy's. First, or a command that closed its home to itself would close it for good.
    os.chmod(layers[0].path, stat.S_IMODE(os.stat(place.fd).st_mode))
    named.check_layers(jail, parts[0], otherwise)
    return Home(place, True, layers, jail.part(f"stage/{staged}"), of.host.uid, of.host.gid)


ACCOUNT_FILES = ("/etc/passwd", "/etc/group")


def _with_account(jail: NamedJail, path: str, home: str) -> str:
    """A copy of the system's list in which the jail's user has our name, home and shell. Returns where it lies."""
    import pwd

    try:
        account = pwd.getpwuid(os.getuid())
        name, shell = account.pw_name, account.pw_shell
    except KeyError:
        name, shell = "jailed", "/bin/sh"
    with open(path, "rb") as file:
        lines = [line for line in file.read().splitlines() if line.split(b":")[0] != os.fsencode(name)]
    entry = f"{name}:x:{STRICT_ID}:"
    if path.endswith("passwd"):
        entry += f"{STRICT_ID}::{home}:{shell or '/bin/sh'}"
    target = jail.part(os.path.basename(path))
    content = b"\n".join([os.fsencode(entry), *lines, b""])
    try:
        with open(target, "rb") as file:
            if file.read() == content:
                return target
    except FileNotFoundError:
        pass
    temporary = f"{target}-{os.urandom(6).hex()}"
    with open(temporary, "wb") as file:
        file.write(content)
    os.rename(temporary, target)
    return target


def copies_to_cover(home: Home, names: tuple[str, ...], *, starts: bool) -> tuple[str, ...]:
    """Hidden names of which the jail has a copy from before they were hidden. What it made under such a name itself,
    while the real one was hidden, is its own and stays. ``starts``: a run begins, so what is found is remembered."""
    upper = home.layers[0].path
    memory = os.path.join(os.path.dirname(upper), "masked")
    try:
        with open(memory, "rb") as file:
            known = set(os.fsdecode(file.read()).split("\0"))
    except FileNotFoundError:
        known = set()
    copies = [name for name in names if name not in known and _is_copy(upper, home.place.path, name)]
    own = set(names).difference(copies)
    if starts and own != known:
        temporary = f"{memory}-{os.urandom(6).hex()}"
        with open(temporary, "wb") as file:
            file.write(os.fsencode("\0".join(sorted(own))))
        os.rename(temporary, memory)
    return tuple(os.path.join(home.place.path, name) for name in copies)


def _is_copy(upper: str, real: str, name: str) -> bool:
    try:
        there = os.lstat(os.path.join(upper, name))
        os.lstat(os.path.join(real, name))
    except OSError:
        return False
    return not stat.S_ISCHR(there.st_mode)  # which says that the jail removed it
