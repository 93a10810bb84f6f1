"""Where a unit does not hold, nothing runs, and the reason is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from corral import NotEnforceable, PolicyError, open_jail
from corral.jail.properties import IGNORED
from corral.jail.systemd import Carrier
from corral.jail.verdict import problems

if TYPE_CHECKING:
    from systemd.conftest import Bed

MARK = ["bash", "-c", "touch ran; echo ran"]


def refused(bed: Bed, **fields: Any) -> str:
    """The reason; nothing ran, or the test fails."""
    answer = bed.jail(MARK, **fields)
    assert answer.get("error") == "NotEnforceable", answer
    assert bed.sh("ls ~/work") == ""
    text: str = answer["text"]
    return text


# ---- bad hosts ----


def test_a_host_that_closes_user_namespaces_is_refused_with_the_reason(
    bad_host: Callable[[str], Any],
) -> None:
    with bad_host("newuser") as bed:
        reason = refused(bed)
        assert "cannot make a user namespace" in reason
        assert "kernel.apparmor_restrict_unprivileged_userns" in reason
        ran = bed.corral("run", "--backend", "systemd-run", "true")
        assert (ran.returncode, ran.stdout) == (125, "")
        assert "cannot make a user namespace" in ran.stderr
        assert "systemd-run: present, not proven: " in bed.corral("status").stdout


def test_a_host_that_closes_mount_namespaces_is_refused_with_the_reason(
    bad_host: Callable[[str], Any],
) -> None:
    with bad_host("newns") as bed:
        assert "cannot make a mount namespace" in refused(bed)
        assert bed.corral("run", "--backend", "systemd-run", "true").returncode == 125


def test_without_a_manager_or_a_bus_the_reason_says_so(bed: Bed) -> None:
    nowhere = {"XDG_RUNTIME_DIR": "/run/user/1"}
    assert "no systemd user manager runs for this user" in refused(bed, variables=nowhere)


# ---- a manager that does less than it is told ----


# Properties left out on their way, and what is then seen from inside, or said by systemd.
LEFT_OUT = {
    "PrivateUsers": "mount namespace",
    "ProtectSystem": "/usr is not read-only in it",
    "ReadOnlyPaths": "/home is not read-only in it",
    "NoNewPrivileges": "set-uid programs would gain privileges",
    "BindPaths": "is not writable in it",
    "PrivateNetwork": "it has no network namespace of its own",
    "TemporaryFileSystem=/home": "the home directory is visible in it",
}


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_a_unit_without_one_of_its_properties_runs_nothing(bed: Bed, left_out: str) -> None:
    assert bed.jail(MARK)["stdout"] == "ran\n"
    bed.sh("rm ~/work/ran")
    if left_out == "PrivateUsers" and bed.version >= 253:  # the others imply it
        assert bed.jail(MARK, drop=[left_out])["stdout"] == "ran\n"
    else:
        assert LEFT_OUT[left_out] in refused(bed, drop=[left_out])


def test_a_unit_without_any_property_runs_nothing(bed: Bed) -> None:
    bed.jail(["true"])  # proven before, so that only this run is at fault
    reason = refused(bed, drop=[""])
    assert "it has no mount namespace of its own" in reason
    assert "the home directory is visible in it" in reason
    assert "it reaches /run/user/" in reason


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false"])
def test_a_program_that_gives_no_account_of_the_unit_runs_nothing(bed: Bed, program: str) -> None:
    bed.jail(["true"])
    assert "gave no account of itself" in refused(bed, instead=program)


def test_a_plan_for_a_unit_that_is_carried_out_elsewhere_stops_at_its_first_step(bed: Bed) -> None:
    program = (
        "import os, subprocess; os.chdir('work'); from corral import *; from corral.jail.host import launcher_path\n"
        "e = LocalEnvironment('.', Policy.workspace_write(backend='systemd-run'))\n"
        "words = [launcher_path(), *e.plan(['touch', 'ran']).words()]\n"
        "done = subprocess.run(words, capture_output=True, text=True); print(done.returncode, done.stderr)\n"
        "try: e.plan(['true']).inline()\nexcept NotEnforceable as error: print(error)\ne.close()"
    )
    said = bed.python(program).stdout
    assert said.startswith("125 ")
    assert "cannot be a prefix" in said
    assert bed.sh("ls ~/work") == ""


# ---- the verdict, fact by fact ----

HOLDS: dict[str, Any] = {
    "mnt namespace": 1,
    "user namespace": 2,
    "net namespace": 3,
    "canary read": "No such file or directory",
    "canary write": "No such file or directory",
    "read-only": {"/": True, "/usr": True},
    "writable": {"/w": True},
    "buses": {"/run/user/1/bus": "No such file or directory"},
    "status": {"NoNewPrivs": "1", "CapEff": "0000000000000000", "Seccomp": "2"},
    "cgroup": {"memory.max": "67108864"},
}
CARRIER = Carrier(
    arguments=("systemd-run", "--"),
    hidden_home="/h",
    writable=("/w",),
    own_network=True,
    limits=(("memory.max", "67108864"),),
    filtered=True,
)


class Untouched:
    is_touched = False


SPOILED: list[tuple[dict[str, Any], str]] = [
    ({"canary read": ""}, "home directory is visible"),
    ({"canary write": ""}, "can write in the home"),
    ({"read-only": {"/": True, "/usr": False}}, "/usr is not read-only"),
    ({"writable": {}}, "/w is not writable"),
    ({"buses": {"/b": ""}}, "it reaches /b"),
    ({"buses": {"\0abstract": ""}}, "it reaches @abstract"),
    ({"status": {**HOLDS["status"], "NoNewPrivs": "0"}}, "no_new_privs is off"),
    ({"status": {**HOLDS["status"], "CapEff": "0000000000200000"}}, "it has capabilities"),
    ({"status": {**HOLDS["status"], "Seccomp": "0"}}, "filter is not on"),
    ({"cgroup": {}}, "memory.max is not 67108864"),
    ({"cgroup": {"memory.max": "max"}}, "memory.max is not 67108864"),
    ({"cgroup": {"memory.max": "134217728"}}, "memory.max is not 67108864"),
]


def judged(facts: dict[str, Any]) -> list[str]:
    return problems(CARRIER, facts, Untouched())  # type: ignore[arg-type]


def test_a_unit_that_has_everything_holds() -> None:
    assert judged(HOLDS) == []


@pytest.mark.parametrize(("facts", "reason"), SPOILED)
def test_each_fact_alone_decides(facts: dict[str, Any], reason: str) -> None:
    (problem,) = judged({**HOLDS, **facts})
    assert reason in problem


@pytest.mark.parametrize("kind", ["mnt", "user", "net"])
def test_a_namespace_that_is_ours_is_not_its_own(kind: str) -> None:
    import os

    own = os.stat(f"/proc/self/ns/{kind}").st_ino
    (problem,) = judged({**HOLDS, f"{kind} namespace": own})
    assert "namespace of its own" in problem


# ---- properties ----


@pytest.mark.parametrize("name", sorted(IGNORED))
def test_a_property_that_user_managers_ignore_is_refused_by_name(name: str) -> None:
    with pytest.raises(PolicyError, match=f"^{name}: a user manager takes this property and ignores it"):
        open_jail("systemd-run", properties=[f"{name}=yes"])


@pytest.mark.parametrize(
    "text", ["ProtectSystem=no", "ExecStart=/bin/sh", "Nonsense=1", "Environment=A=b", "Nice"]
)
def test_a_property_that_is_ours_or_unknown_is_refused(text: str) -> None:
    with pytest.raises(PolicyError, match="is not a property that a unit may be given here"):
        open_jail("systemd-run", properties=[text])


@pytest.mark.parametrize("text", ["MemoryMax=64M", "TasksMax=20", "CPUQuota=50%"])
def test_a_limit_without_its_controller_is_refused(bed: Bed, text: str) -> None:
    controllers = bed.sh("cat /sys/fs/cgroup/user/cgroup.controllers").split()
    answer = bed.jail(["true"], properties=[text])
    needed = {"M": "memory", "T": "pids", "C": "cpu"}[text[0]]
    if needed in controllers:
        assert answer["exit_code"] == 0
    else:
        assert answer["error"] == "NotEnforceable"
        assert f"the {needed} controller is not delegated" in answer["text"]


def test_a_property_that_holds_is_passed_on_and_holds(bed: Bed) -> None:
    line = "chmod 600 file && echo changed || echo refused"
    bed.sh("touch ~/work/file")
    assert bed.script(line)["stdout"] == "changed\n"
    filtered = bed.script(line, properties=["SystemCallFilter=~chmod fchmod fchmodat", "LimitCORE=0"])
    assert filtered["stdout"] == "refused\n"


def test_properties_are_for_systemd_run_alone() -> None:
    with pytest.raises(PolicyError, match="properties are systemd-run's"):
        open_jail("landlock", properties=["Nice=5"])


def test_seatbelt_is_refused_off_a_mac() -> None:
    with pytest.raises(NotEnforceable, match="macOS only"):
        open_jail("seatbelt")
