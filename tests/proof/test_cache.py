"""What was proven once is not tried again, until something changes that it stood on."""

from __future__ import annotations

import marshal
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral import LocalEnvironment, NotEnforceable, Policy
from corral.jail import hostkey, memory, probe
from corral.jail.host import launcher_path
from corral.jail.hostkey import host_key
from corral.jail.proofs import Proof
from corral.sandbox import Sandbox
from jail.world import World
from proof.surroundings import PRIVATE_MOUNTS, without

pytestmark = pytest.mark.jail


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tiers that were tried, one entry each time. The proof itself is the real one."""
    tried: list[str] = []
    real = probe.prove

    def prove(policy: Policy, backend: str, claims: tuple[str, ...]) -> Proof:
        tried.append(backend)
        return real(policy, backend, claims)

    monkeypatch.setattr(probe, "prove", prove)
    return tried


def use(world: World, backend: str, **fields: Any) -> None:
    with world.environment(backend, **fields) as environment:
        assert environment.run(["true"]).ok


def state_of(world: World) -> Path:
    return world.home / ".local/state/corral"


def test_a_second_environment_does_not_try_again_nor_does_the_next_program(
    backend: str, world: World, proofs: list[str]
) -> None:
    use(world, backend)
    assert proofs == [backend]
    use(world, backend)
    assert proofs == [backend]
    memory.forget()  # as in a new program: only what lies in the state directory is known
    use(world, backend)
    assert proofs == [backend]


def test_another_kind_of_policy_is_another_proof_and_other_grants_are_not(
    backend: str, world: World, proofs: list[str]
) -> None:
    use(world, backend)
    use(world, backend, network="open")
    use(world, backend, mode="read-only")
    assert proofs == [backend] * 3
    use(world, backend, limits=Policy().limits.replace(wall=20))
    assert proofs == [backend] * 3


def test_the_proof_is_asked_for_when_the_environment_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Proof(False, "landlock", (), (("writes", "make-reg was not refused"),))
    monkeypatch.setattr(probe, "prove", lambda *_: failed)
    for policy in (Policy.workspace_write(), Policy.workspace_write(writable=["out/**"])):
        with pytest.raises(
            NotEnforceable, match=r"present but not enforcing: writes \(make-reg was not refused\)"
        ):
            LocalEnvironment(world.workspace, policy)


def test_only_success_is_remembered(backend: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, tried = probe.prove, []

    def prove(policy: Policy, backend: str, claims: tuple[str, ...]) -> Proof:
        tried.append(backend)
        if len(tried) < 3:
            return Proof(False, backend, (), tuple((claim, "a bad moment") for claim in claims))
        return real(policy, backend, claims)

    monkeypatch.setattr(probe, "prove", prove)
    for _ in range(2):
        with pytest.raises(NotEnforceable, match="a bad moment"):
            use(world, backend)
    assert not (state_of(world) / "proofs").exists()
    for _ in range(2):
        use(world, backend)
    assert len(tried) == 3


def test_a_reset_asks_again(backend: str, world: World, proofs: list[str]) -> None:
    with Sandbox(Policy.workspace_write(backend=backend), world.workspace) as sandbox:
        assert sandbox.enforcing
        assert sandbox.enforcing
        assert len(proofs) == 1
        sandbox.reset()
        assert sandbox.enforcing
        assert len(proofs) == 2


# ---- the file ----


def test_it_lies_in_a_directory_of_ones_own(world: World) -> None:
    use(world, "landlock")
    for name in ("", "proofs", "host"):
        info = (state_of(world) / name).lstat()
        assert info.st_uid == os.getuid()
        assert not stat.S_IMODE(info.st_mode) & 0o022
    assert stat.S_IMODE(state_of(world).stat().st_mode) == 0o700


def wrong_values(content: bytes) -> bytes:
    return marshal.dumps(dict.fromkeys(marshal.loads(content), 5))


def wrong_lengths(content: bytes) -> bytes:
    return marshal.dumps(dict.fromkeys(marshal.loads(content), (True,)))


CORRUPTIONS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "text": lambda content: b"not what it should be",
    "zeros": lambda content: bytes(len(content)),
    "a list": lambda content: marshal.dumps([1, 2]),
    "a dictionary of other things": lambda content: marshal.dumps({"a": 1, 2: None}),
    "values of another kind": wrong_values,
    "values of another length": wrong_lengths,
}


@pytest.mark.parametrize("how", CORRUPTIONS)
@pytest.mark.parametrize("name", ["proofs", "host"])
def test_a_corrupt_file_is_ignored_and_written_anew(
    world: World, proofs: list[str], how: str, name: str
) -> None:
    use(world, "landlock")
    path = state_of(world) / name
    path.write_bytes(CORRUPTIONS[how](path.read_bytes()))
    memory.forget()
    use(world, "landlock")
    assert len(proofs) == (2 if name == "proofs" else 1)
    memory.forget()
    use(world, "landlock")
    assert len(proofs) == (2 if name == "proofs" else 1)


def test_a_file_that_cannot_be_read_or_replaced_costs_only_time(world: World, proofs: list[str]) -> None:
    state_of(world).mkdir(parents=True, mode=0o700)
    (state_of(world) / "proofs").mkdir()
    for count in (1, 2):
        memory.forget()
        use(world, "landlock")
        assert len(proofs) == count
    assert sorted(os.listdir(state_of(world))) == ["host", "proofs"]


# ---- what the answer depends on ----


def key_with_other_file(path: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        real = hostkey._read
        monkeypatch.setattr(hostkey, "_read", lambda asked: "other" if asked == path else real(asked))

    return patch


def key_with_other_call(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setattr(os, name, lambda: 4711)


def key_with_other_kernel(field: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        system = os.uname()
        facts = {"release": system.release, "version": system.version, field: "other"}
        monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(**facts))

    return patch


COMPONENTS = {
    "boot": key_with_other_file("/proc/sys/kernel/random/boot_id"),
    "security modules": key_with_other_file("/sys/kernel/security/lsm"),
    "max_user_namespaces": key_with_other_file("/proc/sys/user/max_user_namespaces"),
    "unprivileged_userns_clone": key_with_other_file("/proc/sys/kernel/unprivileged_userns_clone"),
    "apparmor": key_with_other_file("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
    "uid": key_with_other_call("getuid"),
    "gid": key_with_other_call("getgid"),
    "release": key_with_other_kernel("release"),
    "version": key_with_other_kernel("version"),
}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_host_is_another_one_with_another(component: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = host_key(launcher_path())
    assert host_key(launcher_path()) == before
    COMPONENTS[component](monkeypatch)
    assert host_key(launcher_path()) != before


def test_a_launcher_with_one_byte_changed_is_another_one(tmp_path: Path) -> None:
    copy = tmp_path / "launcher"
    content = Path(launcher_path()).read_bytes()
    copy.write_bytes(content)
    assert host_key(str(copy)) == host_key(launcher_path())
    stamps = copy.stat()
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(copy, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))  # the same size and time, and the same name
    assert host_key(str(copy)) != host_key(launcher_path())


SHOW_KEY = (
    "from corral.jail.hostkey import *; from corral.jail.host import *; print(host_key(launcher_path()))"
)


@pytest.mark.parametrize(
    ("surroundings", "is_the_same"),
    [
        ([], True),
        (PRIVATE_MOUNTS, False),
        (["unshare", "--user", "--map-current-user"], False),
        (without("nothing"), False),
    ],
    ids=["as here", "mounts", "user namespace", "seccomp filter"],
)
def test_other_surroundings_are_another_host(
    world: World, surroundings: list[str], is_the_same: bool
) -> None:
    command = [*surroundings, sys.executable, "-c", SHOW_KEY]
    variables = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=20, check=True)
    assert (done.stdout.strip() == repr(host_key(launcher_path()))) == is_the_same
