"""Probe: show, on this host, that every claim a policy demands is held.

The real launcher is run with the policy's own plan against a throw-away directory, and what must not work is tried
beside what must. A launcher that does nothing, crashes, is killed, or leaves a single right out is found out: an
attempt that was refused counts only if its control worked, and the host looks itself at what was left behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time

from corral.errors import CorralError
from corral.jail import attempts
from corral.jail.bait import Bait, is_readable
from corral.jail.enclosure import Enclosure
from corral.jail.host import launcher_path
from corral.jail.named import holds_layers, storage_directory
from corral.jail.proofs import Proof
from corral.jail.site import is_below
from corral.jail.survey import PRIVATE_PLACES
from corral.policy import HOME_MODES, Grant, Policy
from corral.state import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.jail.plan import Plan

TIMEOUT = 20.0
LONGEST_ANSWER = 1 << 16

_FILE_ATTEMPTS = tuple(attempts.FILES)
# claim: (attempts that must be refused, attempts that must work). A packet into an empty network is sent and arrives
# nowhere: of UDP only the host can tell. So it is with the limit on memory: a control group is tried where it is made.
TRIED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "writes": (_FILE_ATTEMPTS, tuple(f"may_{name}" for name in _FILE_ATTEMPTS)),
    "truncate": (("truncate",), ("may_truncate",)),
    "metadata": (("metadata", "times", "mounts"), ("may_metadata", "may_times")),
    "keys": (("keys",), ("may_keys",)),
    "hidden": (("hidden",), ("may_hidden",)),
    "read-only-inside": (("read-only-inside",), ("may_read-only-inside",)),
    "project-config": (("project-config",), ("may_write-file",)),
    "processes": (("processes",), ("may_processes",)),
    "signals": (("signals",), ("may_signals",)),
    "memory": (("memory",), ("may_signals",)),
    "tcp": (("tcp", "tcp6"), ()),
    "udp": ((), ()),
    "families": (("families", "vsock"), ("may_families",)),
    "abstract-sockets": (("abstract-sockets",), ("may_families",)),
    "pathname-sockets": (("pathname-sockets",), ("may_families",)),
    "control-sockets": (("control-sockets",), ("may_families",)),
    "terminals": (("terminals",), ("may_make-reg",)),
    "devices": (("devices",), ("may_devices",)),
    "terminal-input": (("terminal-input",), ("may_make-reg",)),
    "ipc": (("ipc",), ("may_make-reg",)),
    "temp": (("temp",), ("may_temp",)),
    "tree": ((), ("may_tree",)),
    "memory-limit": ((), ()),
}


def prove(policy: Policy, backend: str, claims: tuple[str, ...], *, launcher: str | None = None) -> Proof:
    """Try these claims of the policy with this backend. Never raises; what cannot be tried is not proven."""
    try:
        with playground(policy) as top, Bait(top) as bait:
            tried = tuple(claim for claim in claims if claim not in bait.out_of_reach)
            seen, ended = _try_inside(policy, backend, tried, bait, launcher or launcher_path())
            failed = judge(tried, seen, bait)
            if "tree" in claims and not ended:
                failed.append(("tree", "a process outlived its run"))
    except (CorralError, OSError, ValueError) as error:
        failed = [(claim, f"could not be tried: {error}") for claim in claims]
    wrong = {claim for claim, _ in failed}
    return Proof(not failed, backend, tuple(c for c in claims if c not in wrong), tuple(failed))


def playground(policy: Policy | None = None) -> tempfile.TemporaryDirectory[str]:
    """Where a jail shows it read-only, if we may write there; a private directory would hide what is tried. Inside a
    jail only its own temp directory is ours."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.path.join(cache, "corral")
    if policy is not None and policy.storage is not None:
        place = storage_directory(policy.storage)  # a disk that takes what is copied, where another may not
    elif policy is not None and policy.mode == "casual" and not holds_layers(os.path.realpath(place)):
        place = os.path.dirname(os.path.realpath(state_directory()))
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="probe-", dir=place)
    except OSError:
        return tempfile.TemporaryDirectory(prefix="probe-")


# ---- trying ----


def policy_on(policy: Policy, backend: str, claims: tuple[str, ...], bait: Bait) -> Policy:
    """The policy as it is, on the bait: its mode, network and switches, and a grant for each claim that needs one."""
    grants: list[Grant] = []
    if policy.mode == "strict" or any(is_below(bait.outside, place) for place in PRIVATE_PLACES):
        grants.append(Grant.ro(bait.outside))
    if policy.mode == "read-only":
        grants.append(Grant.rw(bait.inside))  # nothing else is writable, and a control has to write somewhere
    if "hidden" in claims:
        grants.append(Grant.hide(os.path.join(bait.outside, "hidden")))
    if "read-only-inside" in claims:
        grants.append(Grant.ro(os.path.join(bait.inside, "narrow")))
    if (
        backend == "systemd-run"
    ):  # home is not there but for what is granted, and a control has to read something
        grants.append(Grant.ro(os.path.join(bait.home, "plain")))
    program = interpreter()
    if any(is_below(program, place) for place in PRIVATE_PLACES):
        grants += [Grant.ro(path) for path in dict.fromkeys((sys.prefix, sys.base_prefix))]
    return Policy(
        mode=policy.mode,
        network=policy.network,
        backend=backend,  # type: ignore[arg-type]
        require=False,  # the question is what holds, not what is demanded
        grants=tuple(grants),
        unix_sockets=policy.unix_sockets,
        shared_memory=policy.shared_memory,
        storage=os.path.join(bait.top, "jails") if policy.mode in HOME_MODES else None,
    )


def interpreter() -> str:
    """One that the jail shows: the system's before ours, which may lie in a private directory."""
    return next((p for p in ("/usr/bin/python3", sys.executable) if os.access(p, os.X_OK)), sys.executable)


def _try_inside(
    policy: Policy, backend: str, claims: tuple[str, ...], bait: Bait, launcher: str
) -> tuple[dict[str, str], bool]:
    """What each attempt said, and whether all that was started is gone."""
    wanted = dict.fromkeys(name for claim in claims for part in TRIED[claim] for name in part)
    if "udp" in claims:
        wanted["udp"] = None
    with open(attempts.__file__) as file:
        program = file.read()
    given = json.dumps({**bait.given(), "attempts": list(wanted)})
    argv = [interpreter(), "-I", "-S", "-c", program, given]
    enclosure = Enclosure(
        bait.inside, policy_on(policy, backend, claims, bait), homes=(bait.home,), prove=False
    )
    try:
        bait.furnish(enclosure.home)
        return _try_plan(enclosure.plan(argv, inline=True), launcher)
    finally:
        enclosure.close()


def _try_plan(plan: Plan, launcher: str) -> tuple[dict[str, str], bool]:
    reader, writer = os.pipe()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in plan.passed]
    try:
        pid = _spawn(plan, launcher, actions)
    finally:
        os.close(writer)
    try:
        return _listen_to(pid, reader)
    finally:
        os.close(reader)


def _spawn(plan: Plan, launcher: str, actions: list[tuple[Any, ...]]) -> int:
    variables = {"PATH": "/usr/bin:/bin"}
    if plan.carrier is None:
        return os.posix_spawn(launcher, [launcher, *plan.words()], variables, file_actions=actions)
    from corral.jail.units import Unit

    unit = Unit(plan.carrier, os.posix_spawn)
    argv = [launcher, *plan.words()]
    return unit.spawn(launcher, argv, variables, file_actions=actions, setsigdef=(), setsid=False)


def _listen_to(pid: int, reader: int) -> tuple[dict[str, str], bool]:
    """Read its one line, then see the stream end: whoever holds it still is a process that outlived the run."""
    deadline = time.monotonic() + TIMEOUT
    line, pidfd = b"", os.pidfd_open(pid)
    try:
        while not line.endswith(b"\n") and len(line) < LONGEST_ANSWER and is_readable(reader, deadline):
            got = os.read(reader, 1 << 16)
            if not got:
                break
            line += got
        if len(line) >= LONGEST_ANSWER or not is_readable(pidfd, deadline):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ended = is_readable(reader, time.monotonic() + 1) and not os.read(reader, 1)
    finally:
        os.close(pidfd)
    try:
        said = json.loads(line)
    except ValueError:
        said = {}
    return said if isinstance(said, dict) else {}, ended


def judge(claims: tuple[str, ...], said: dict[str, str], bait: Bait) -> list[tuple[str, str]]:
    failed: list[tuple[str, str]] = []
    for claim in claims:
        refused, worked = TRIED[claim]
        if not said or any(name not in said for name in (*refused, *worked)):
            failed.append((claim, "the jail gave no answer"))
            continue
        open_ones = [name for name in refused if said[name] == ""]
        broken = [f"{name} ({said[name]})" for name in worked if said[name] != ""]
        if open_ones:
            failed.append((claim, f"{', '.join(open_ones)} was not refused"))
        elif broken:
            failed.append((claim, f"what must work does not: {', '.join(broken)}"))
    wrong = {claim for claim, _ in failed}
    return failed + [seen for seen in bait.seen() if seen[0] in claims and seen[0] not in wrong]
