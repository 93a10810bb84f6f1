"""The probe is not fooled: every launcher here is a real program, and every wrong one is found out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from corral import Policy
from corral.jail import probe
from corral.jail.host import this_host
from corral.jail.kernel import CLONE_NEW, FS_RIGHTS, READ
from corral.jail.ladder import held
from corral.jail.proofs import Proof
from hostfacts import landlock_abi
from jail.world import World
from leaks import no_leaks
from proof.launchers import (
    NOT_JAILING,
    granting_everywhere,
    leaving_out,
    program,
    with_operand,
)
from proof.surroundings import PRIVATE_MOUNTS

pytestmark = pytest.mark.jail


def claims_of(policy: Policy, backend: str) -> tuple[str, ...]:
    """All that the tier says it holds here, demanded or not."""
    return tuple(sorted(held(backend, policy, this_host(os.environ["HOME"]))))


def proof_of(policy: Policy, backend: str, launcher: str | None = None) -> Proof:
    return probe.prove(policy, backend, claims_of(policy, backend), launcher=launcher)


POLICIES = {
    "workspace-write": Policy.workspace_write(),
    "workspace-write, network open": Policy.workspace_write(network="open"),
    "workspace-write, unix sockets": Policy.workspace_write(unix_sockets=True),
    "workspace-write, shared memory": Policy.workspace_write(shared_memory=True),
    "read-only": Policy.read_only(),
    "read-only, network open": Policy.read_only(network="open"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_claim_of_both_tiers_is_proven_here_and_nothing_is_left_behind(
    backend: str, world: World, name: str
) -> None:
    policy = POLICIES[name]
    claims = claims_of(policy, backend)
    assert probe.prove(policy, backend, claims).enforcing  # the directories it plays in are there now
    with no_leaks(world.base):
        proof = probe.prove(policy, backend, claims)
    assert proof.reason == ""
    assert proof.enforcing
    assert proof.proven == claims
    assert set(policy.demanded) <= set(claims)


# ---- launchers that do not jail ----


@pytest.mark.parametrize("what", NOT_JAILING)
def test_a_launcher_is_found_out_that(
    backend: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT", 3.0)
    started = time.monotonic()
    proof = proof_of(Policy.workspace_write(), backend, program(tmp_path, NOT_JAILING[what]))
    assert not proof.enforcing
    assert "writes" not in proof.proven
    assert proof.reason
    assert time.monotonic() - started < 15


def test_a_plain_exec_loses_nearly_every_claim(backend: str, world: World, tmp_path: Path) -> None:
    launcher = program(tmp_path, NOT_JAILING["execs the command as it is"])
    policy = Policy.workspace_write()
    proof = proof_of(policy, backend, launcher)
    # Without a terminal nobody can push a character into it, and some hosts close tracing to everybody. A policy
    # without a limit on memory has none that could be escaped.
    assert set(proof.proven) <= {"terminal-input", "memory", "ipc", "families", "memory-limit"}
    assert dict(proof.failed)["writes"].endswith("was not refused")
    assert "make-reg" in dict(proof.failed)["writes"]


def test_an_endless_answer_takes_neither_time_nor_memory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "TIMEOUT", 3.0)
    launcher = program(tmp_path, "while True: os.write(1, b'x' * 65536)")
    tracemalloc.start()
    try:
        proof = proof_of(Policy.workspace_write(), "landlock", launcher)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not proof.enforcing
    assert peak < 32 << 20


@pytest.mark.parametrize(
    ("claim", "address"),
    [
        ("tcp", "(socket.AF_INET, ('127.0.0.1', given['tcp']))"),
        ("abstract-sockets", "(socket.AF_UNIX, '\\0' + given['abstract'])"),
        ("control-sockets", "(socket.AF_UNIX, given['control'])"),
    ],
)
def test_a_connection_that_the_answer_denies_is_seen_by_who_listens(
    world: World, tmp_path: Path, claim: str, address: str
) -> None:
    """The rest is an honest jail: only its answer is thrown away, and one connection made."""
    policy = Policy.workspace_write()
    source = f"""
given = json.loads(command[-1])
family, address = {address}
socket.socket(family).connect(address)
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    go_on(steps)
os.wait()
print(forged(), flush=True)
"""
    proof = proof_of(policy, "landlock", program(tmp_path, source))
    assert [failed for failed, _ in proof.failed] == [claim]


def test_an_honest_jail_with_a_forged_answer_differs_from_that_only_in_the_connection(
    world: World, tmp_path: Path
) -> None:
    source = """
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    go_on(steps)
os.wait()
print(forged(), flush=True)
"""
    assert proof_of(Policy.workspace_write(), "landlock", program(tmp_path, source)).enforcing


# ---- launchers that leave one right out ----

MAKING_AND_REMOVING = (
    *(
        "write-file",
        "remove-dir",
        "remove-file",
        "make-dir",
        "make-reg",
        "make-sock",
        "make-fifo",
        "make-sym",
    ),
)
# By right: the claims that fail. The others are no way out alone, and why.
LOST: dict[str, set[str]] = {
    **{name: {"writes"} for name in MAKING_AND_REMOVING},
    "truncate": {"truncate", "writes"},
    "ioctl-dev": {"devices"},
    "resolve-unix": {"pathname-sockets"},
}
HARMLESS_ALONE = {
    "refer": "moving takes the right to remove here and to make there as well",
    "make-char": "the filter refuses to make devices, and no capability is left for it",
    "make-block": "the same",
}


@pytest.mark.parametrize("right", [name for name in FS_RIGHTS if name not in READ])
def test_a_landlock_right_that_is_left_out_costs_its_claim(world: World, tmp_path: Path, right: str) -> None:
    bit, since, _ = FS_RIGHTS[right]
    if since > landlock_abi():
        return  # this kernel does not know it: a launcher cannot leave it out
    policy = Policy.workspace_write(network="open", unix_sockets=True)
    proof = proof_of(policy, "landlock", program(tmp_path, granting_everywhere(bit)))
    failed = {claim for claim, _ in proof.failed}
    assert (right in LOST) != (right in HARMLESS_ALONE)
    closed_anyway = {"devices"} if os.geteuid() == 0 else set()  # to root all of /dev but the harmless part
    assert failed == LOST.get(right, set()) - closed_anyway


def test_moving_that_is_not_handled_at_all_is_refused_inside_too_and_found_out(
    world: World, tmp_path: Path
) -> None:
    refer = FS_RIGHTS["refer"][0]
    source = f"""
for step in steps:
    if step[0] in ("ruleset", "allow"):
        at = 1 if step[0] == "ruleset" else 2
        step[at] = str(int(step[at]) & ~{refer})
go_on(steps)
"""
    proof = proof_of(Policy.workspace_write(), "landlock", program(tmp_path, source))
    assert not proof.enforcing
    assert "what must work does not" in dict(proof.failed)["writes"]


@pytest.mark.parametrize(
    ("scope", "lost"),
    [
        (1, {"abstract-sockets"}),
        (2, set()),  # the supervisor's own domain refuses signals as well
        (3, {"abstract-sockets"}),
    ],
)
def test_a_scope_that_is_left_out_costs_its_claim(
    world: World, tmp_path: Path, scope: int, lost: set[str]
) -> None:
    policy = Policy.workspace_write(network="open")
    proof = proof_of(policy, "landlock", program(tmp_path, with_operand("ruleset", 3, f"was & ~{scope}")))
    assert {claim for claim, _ in proof.failed} == lost


def test_without_either_of_two_scopes_signals_are_lost(world: World, tmp_path: Path) -> None:
    source = """
for step in steps:
    if step[0] == "supervise": step[1] = "0"
    if step[0] == "ruleset": step[3] = str(int(step[3]) & ~2)
go_on(steps)
"""
    proof = proof_of(Policy.workspace_write(), "landlock", program(tmp_path, source))
    assert {claim for claim, _ in proof.failed} == {"signals"}


# ---- launchers that leave one step out ----


@pytest.mark.parametrize(
    ("operation", "lost"),
    [
        ("restrict", {"writes", "truncate"}),
        ("seccomp", {"terminal-input", "families", "udp", "ipc"}),
        ("supervise", {"tree"}),
    ],
)
def test_a_step_of_the_landlock_tier_that_is_left_out_costs_its_claims(
    world: World, tmp_path: Path, operation: str, lost: set[str]
) -> None:
    proof = proof_of(Policy.workspace_write(), "landlock", program(tmp_path, leaving_out(operation)))
    assert not proof.enforcing
    assert lost <= {claim for claim, _ in proof.failed}


@pytest.mark.parametrize(
    ("operation", "lost"),
    [
        ("readonly", {"metadata"}),
        ("restrict", {"abstract-sockets"}),
        ("seccomp", {"terminal-input", "families"}),
        ("overlay", {"keys"}),
        ("attach", {"keys", "processes", "temp", "terminals"}),
    ],
)
def test_a_step_of_the_namespaces_tier_that_is_left_out_costs_its_claims(
    world: World, tmp_path: Path, operation: str, lost: set[str]
) -> None:
    policy = Policy.workspace_write(network="open" if operation == "restrict" else "off")
    proof = proof_of(policy, "namespaces", program(tmp_path, leaving_out(operation)))
    assert not proof.enforcing
    assert lost <= {claim for claim, _ in proof.failed}


@pytest.mark.parametrize(
    ("kind", "lost"), [("ipc", {"ipc"}), ("net", {"udp"}), ("pid", {"processes"}), ("mnt", {"writes"})]
)
def test_a_namespace_that_is_left_out_costs_its_claim(
    world: World, tmp_path: Path, kind: str, lost: set[str]
) -> None:
    source = with_operand("namespaces", 1, f"was & ~{CLONE_NEW[kind]}")
    proof = proof_of(Policy.workspace_write(), "namespaces", program(tmp_path, source))
    assert not proof.enforcing
    assert lost <= {claim for claim, _ in proof.failed}


@pytest.mark.parametrize("operation", ["nocaps", "close"])
def test_what_no_claim_stands_on_costs_none(
    backend: str, world: World, tmp_path: Path, operation: str
) -> None:
    """Capabilities: the filter refuses mounts and the rest, and the domain what they would override. Descriptors: the
    probe hands none down. Both are second fences, and tests/jail shows each to matter where it does."""
    proof = proof_of(Policy.workspace_write(), backend, program(tmp_path, leaving_out(operation)))
    assert proof.reason == ""
    assert proof.enforcing


# ---- where nothing can be tried ----


def test_without_an_interpreter_nothing_is_proven(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "interpreter", lambda: "/nonexistent/python3")
    proof = proof_of(Policy.workspace_write(), backend)
    assert not proof.enforcing
    assert proof.proven == ()


@pytest.mark.parametrize("launcher", ["missing", "no-program", "directory"])
def test_without_a_launcher_nothing_is_proven(
    backend: str, world: World, tmp_path: Path, launcher: str
) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "no-program").write_text("text")
    proof = proof_of(Policy.workspace_write(), backend, str(tmp_path / launcher))
    assert not proof.enforcing
    assert proof.proven == ()


PROVE = """
import sys, tempfile
tempfile.tempdir = sys.argv[2]
from corral import Policy
from corral.jail.probe import prove
proof = prove(Policy.workspace_write(), sys.argv[1], ("writes", "truncate"))
print("enforcing" if proof.enforcing else "not enforcing", proof.proven, proof.reason)
"""
MOUNT_OPTIONS = {
    "full": "-o size=256k && { head -c 1M /dev/zero > filler 2> /dev/null || test -s filler; }",
    "without a free inode": "-o nr_inodes=2 && : > filler",
    "read-only": "-o ro",
    "as it should be": "-o size=1m",
}


@pytest.mark.parametrize("state", MOUNT_OPTIONS)
def test_in_a_full_or_read_only_temp_directory_nothing_is_proven(
    backend: str, world: World, state: str
) -> None:
    """All that the probe may play in lies in one file system, mounted for this process alone."""
    mount = (
        f"mount -t tmpfs tmpfs {world.home} {MOUNT_OPTIONS[state].replace('filler', f'{world.home}/filler')}"
    )
    prove = [sys.executable, "-c", PROVE, backend, str(world.home)]
    command = [*PRIVATE_MOUNTS, "sh", "-ec", f'{mount}; exec "$@"', "sh", *prove]
    variables = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
    expected = "enforcing" if state == "as it should be" else "not enforcing ()"
    assert done.stdout.startswith(expected), done.stdout
