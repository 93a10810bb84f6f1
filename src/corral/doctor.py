"""Doctor: look at this host piece by piece, and say for each gap the exact remedy."""

from __future__ import annotations

import os
import sys

from corral.errors import CorralError, NotEnforceable
from corral.files.removing import remove_tree
from corral.jail.closed import in_container, namespace_remedy
from corral.jail.enclosure import Enclosure
from corral.jail.host import TOO_OLD, Host, launcher_path, this_host
from corral.jail.ladder import RUNGS, available
from corral.policy import MODES, Policy
from corral.record import Record
from corral.state import homes, made_state_directory

# Landlock: what each ABI added, and the kernel it came with.
LANDLOCK_ABIS = (
    (1, "5.13", "files"),
    (2, "5.19", "renames between directories"),
    (3, "6.2", "truncation"),
    (4, "6.7", "TCP"),
    (5, "6.10", "device controls"),
    (6, "6.12", "signals and abstract sockets"),
    (9, "7.1", "unix sockets by path"),
)


class Finding(Record):
    """One piece of the host. ``ok`` None: not there, and nothing here needs it."""

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""


class ModeFinding(Record):
    """One mode: the tier that holds it, proven, or why none does."""

    mode: str
    backend: str
    enforcing: bool
    not_covered: tuple[str, ...]
    why_not: str = ""


class BackendFinding(Record):
    """One mechanism: whether it is there, whether it was seen to hold, and why not."""

    backend: str
    present: bool
    proven: bool
    why_not: str = ""


def examine() -> list[Finding]:
    """Every piece, the launcher first; nothing else can be tried without it."""
    if sys.platform != "linux":
        return [Finding("system", False, f"{sys.platform} is not supported yet", "run this on Linux")]
    try:
        launcher_path()
        host = this_host((homes() or ("/",))[0], made_state_directory())
    except CorralError as error:
        return [Finding("launcher", False, str(error), "reinstall corral; from source it needs a C compiler")]
    return [
        Finding("launcher", True, launcher_path()),
        Finding("kernel", True, f"{os.uname().release} on {host.machine}"),
        _landlock(host),
        _user_namespaces(host),
        _proc(host),
        _overlay(host),
        _seccomp(),
        _openat2(host),
        _cgroups(),
        _user_manager(),
        Finding("seatbelt", None, "macOS only"),
    ]


def _landlock(host: Host) -> Finding:
    if host.abi < 1:
        remedy = "boot a kernel from 6.2 on with landlock in its lsm= list (see /sys/kernel/security/lsm)"
        return Finding("landlock", False, "the kernel does not have it, or it is not enabled", remedy)
    covers = [what for abi, _, what in LANDLOCK_ABIS if host.abi >= abi]
    lacks = [f"{what} (kernel {kernel})" for abi, kernel, what in LANDLOCK_ABIS if host.abi < abi]
    detail = f"ABI {host.abi}: {', '.join(covers)}" + (f"; not: {', '.join(lacks)}" if lacks else "")
    ok = host.abi >= 3
    return Finding("landlock", ok, detail, "" if ok else "a kernel from 6.2 on also refuses truncation")


def _user_namespaces(host: Host) -> Finding:
    if host.namespaces:
        return Finding("user namespaces", True, "open to us, with mount, PID, IPC and network namespaces")
    remedy = "a kernel from 5.12 on" if host.no_namespaces == TOO_OLD else namespace_remedy()
    return Finding("user namespaces", False, host.no_namespaces, remedy)


def _proc(host: Host) -> Finding:
    if not host.namespaces:
        return Finding("own /proc", None, "needs user namespaces")
    if not host.no_proc:
        return Finding("own /proc", True, "a jail sees its own processes only")
    remedy = (
        "docker run --security-opt systempaths=unconfined" if in_container() else "unmount what covers /proc"
    )
    return Finding("own /proc", False, f"{host.no_proc}; the process list stays visible", remedy)


def _overlay(host: Host) -> Finding:
    if not host.namespaces:
        return Finding("overlay", None, "needs user namespaces")
    if not host.no_overlay:
        return Finding("overlay", True, "home can be covered by a layer that hides key material by name")
    detail = f"{host.no_overlay}; what is hidden is covered file by file instead"
    return Finding("overlay", False, detail, "kernel 5.11 or newer, and a home on an ordinary file system")


def _seccomp() -> Finding:
    there = os.path.exists("/proc/sys/kernel/seccomp/actions_avail")
    return Finding(
        "seccomp",
        there,
        "filters" if there else "missing",
        "" if there else "a kernel with CONFIG_SECCOMP_FILTER",
    )


def _openat2(host: Host) -> Finding:
    there = host.release >= (5, 6)
    return Finding(
        "openat2",
        there,
        "paths are opened without links" if there else "missing",
        "" if there else "kernel 5.6",
    )


def _cgroups() -> Finding:
    from corral.jail.delegation import outlook

    found = outlook()
    needs_unit = not found.group and os.path.isdir("/run/systemd/system")
    remedy = "start it in a unit of your own: systemd-run --user --scope corral …" if needs_unit else ""
    return Finding(
        "cgroup v2", bool(found.group) or None, f"a limit on memory is held by {found.words}", remedy
    )


def _user_manager() -> Finding:
    from corral.jail import systemd
    from corral.jail.properties import delegated

    missing = systemd.missing()
    if missing:
        return Finding("systemd user manager", None, missing)
    controllers = ", ".join(sorted(delegated())) or "none"
    return Finding("systemd user manager", True, f"running; controllers it can give to units: {controllers}")


def try_backends() -> list[BackendFinding]:
    """Each mechanism for the library's default mode, proven now or on this boot."""
    return [_try_backend(name) for name in (*RUNGS, "seatbelt")]


def _try_backend(name: str) -> BackendFinding:
    if name == "seatbelt":
        from corral.jail import seatbelt

        missing = seatbelt.missing()
        if missing:
            return BackendFinding(name, False, False, missing)
        from corral.jail.seatbelt_probe import prove

        proof = prove(Policy.workspace_write())
        return BackendFinding(name, True, proof.enforcing, proof.reason)
    try:
        missing = available(name, this_host((homes() or ("/",))[0], made_state_directory()))
    except CorralError as error:
        missing = str(error)
    if missing:
        return BackendFinding(name, False, False, missing)
    found = _try_mode(Policy.workspace_write(backend=name))
    return BackendFinding(name, True, found.enforcing, found.why_not)


def try_modes(policy: Policy | None = None) -> list[ModeFinding]:
    """Each mode of this version, proven now or on this boot; with a policy, its own first."""
    wanted = [policy] if policy is not None else []
    wanted += [Policy(mode=mode) for mode in MODES if mode != "off"]  # type: ignore[arg-type]
    return [_try_mode(one) for one in wanted]


def _try_mode(policy: Policy) -> ModeFinding:
    import tempfile

    # A directory that may be writable in a jail, whatever the caller's own is: only its plan is asked for.
    with tempfile.TemporaryDirectory(prefix="corral-") as scratch:
        try:
            enclosure = Enclosure("/usr" if policy.mode == "read-only" else scratch, policy)
        except NotEnforceable as error:
            return ModeFinding(policy.mode, "", False, (), str(error))
        choice, jail = enclosure.choice, enclosure.jail
        enclosure.close()
        if jail is not None:  # made for this question alone
            remove_tree(jail.path)
    return ModeFinding(policy.mode, choice.backend, choice.enforcing, choice.not_covered)
