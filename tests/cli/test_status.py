"""`corral status` and `corral doctor`: what this host holds, for people and for programs."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from cli.typed import CORRAL, Person
from corral.claims import CLAIMS
from corral.jail.host import launcher_path
from corral.policy import BACKENDS, MODES
from hostfacts import landlock_abi, skip_unless_host
from proof.surroundings import without

pytestmark = pytest.mark.jail

PIECES = [
    *("launcher", "kernel", "landlock", "user namespaces", "own /proc", "overlay", "seccomp", "openat2"),
    *("cgroup v2", "systemd user manager", "seatbelt"),
]


def test_status_is_one_line_and_what_is_not_covered(person: Person) -> None:
    skip_unless_host("user-namespaces")
    first, *rest = person.reads("status").splitlines()
    assert first == "workspace-write, held by namespaces, enforcing (proven on this boot), required"
    heads = ("  not covered: ", *(f"  {backend}: " for backend in BACKENDS))
    assert all(line.startswith(heads) for line in rest)


def test_status_as_json_has_the_seeds_words(person: Person) -> None:
    state = person.reads_json("status", "--json")
    assert (state["mode"], state["active"], state["enforcing"], state["required"]) == (
        *("workspace-write", True, True),
        True,
    )
    assert set(state["not_covered"]) <= set(CLAIMS)
    assert state["mechanism"] in ("namespaces", "landlock")


def test_status_of_a_mode_and_of_another_config(person: Person) -> None:
    other = person.world.home / "other.toml"
    other.write_text('backend = "landlock"\n[sandbox]\nrequire = false\n')
    for option in ("-C", "--config"):
        state = person.reads_json("status", "--json", option, str(other), "-m", "read-only")
        assert (state["mode"], state["mechanism"], state["required"]) == ("read-only", "landlock", False)
    off = person.reads_json("status", "--json", "--mode", "off")
    assert (off["mode"], off["mechanism"], off["active"], off["enforcing"]) == ("off", "none", False, False)
    assert person.reads("status", "-m", "off").startswith("off, ")


def test_doctor_looks_at_every_piece_and_mode(person: Person) -> None:
    done = person.types("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    for piece in PIECES:
        assert f" {piece} " in done.stdout, piece
    for mode in MODES:
        if mode != "off":
            assert f" {mode} " in done.stdout, mode
    assert f"ABI {landlock_abi()}: files" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Your mode is workspace-write: held by ")


def test_doctor_as_json_is_the_same_for_programs(person: Person) -> None:
    facts = person.reads_json("doctor", "--json")
    assert [piece["name"] for piece in facts["host"]] == PIECES
    assert all(piece["ok"] in (True, False, None) for piece in facts["host"])
    assert all(piece["remedy"] for piece in facts["host"] if piece["ok"] is False)
    modes = {mode["mode"]: mode for mode in facts["modes"]}
    assert set(modes) == set(MODES) - {"off"}
    assert modes["workspace-write"]["enforcing"]
    assert modes["strict"]["enforcing"]
    assert modes["casual"]["enforcing"] == (os.getuid() != 0)
    assert bool(modes["casual"]["why_not"]) == (os.getuid() == 0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["-m", "read-only"], 0),
        (["--mode", "workspace-write"], 0),
        (["-m", "strict"], 0),
        (["-m", "casual"], 125 if os.getuid() == 0 else 0),
        (["-m", "off"], 125),
    ],
)
def test_doctor_exits_with_0_only_if_the_mode_is_held(person: Person, words: list[str], code: int) -> None:
    assert person.types("doctor", *words).returncode == code
    assert person.types("doctor", "--json", *words).returncode == code


def test_what_they_do_not_take_is_2(person: Person) -> None:
    for command in ("status", "doctor"):
        assert f"corral {command} does not take --jsn" in person.is_refused(command, "--jsn")
        assert "does not take -m" in person.is_refused(command, "-m")
        assert "unknown mode" in person.is_refused(command, "-m", "workspace")
        assert "no such config file" in person.is_refused(command, "-C", "missing")
        assert "does not take true" in person.is_refused(command, "true")
    assert "does not take --fix" in person.is_refused("status", "--fix", "apparmor")
    assert "knows apparmor, not selinux" in person.is_refused("doctor", "--fix", "selinux")


def test_doctor_on_a_host_with_nothing_says_that_corral_refuses(person: Person) -> None:
    person.forgets()
    done = subprocess.run(
        [*without("namespaces", "landlock"), CORRAL, "doctor"],
        cwd=person.project,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (125, "")
    assert "NO  landlock" in done.stdout
    assert "NO  user namespaces" in done.stdout
    assert done.stdout.count("remedy: ") >= 2
    assert "and nothing here holds it: corral refuses to run commands" in done.stdout.splitlines()[-1]


def test_the_apparmor_profile_is_printed_and_not_written_without_a_yes(person: Person) -> None:
    """Only for a launcher that nobody but root can replace; anybody else's would be everybody's."""
    done = person.types("doctor", "--fix", "apparmor")
    assert "/etc/apparmor.d/corral-launch:" in done.stdout
    assert f"profile corral-launch {launcher_path()} flags=(unconfined) {{" in done.stdout
    assert "userns," in done.stdout
    assert "sysctl" not in done.stdout
    if is_roots_alone(launcher_path()):
        assert (done.returncode, done.stderr) == (125, "")
        assert "Nothing was written" in done.stdout
    else:
        assert done.returncode == 2
        assert "is not root's alone" in done.stderr
    assert not os.path.exists("/etc/apparmor.d/corral-launch")


def is_roots_alone(path: str) -> bool:
    while True:
        info = os.stat(path)
        if info.st_uid != 0 or stat.S_IMODE(info.st_mode) & 0o022:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def test_they_work_in_a_directory_that_a_jail_could_not_have(person: Person) -> None:
    """Home holds Corral's own config and state; it cannot be a workspace, and can be asked from."""
    for directory in (person.world.home, "/", "/proc", person.world.home / ".ssh"):
        for command in ("status", "doctor"):
            assert person.types(command, cwd=directory).returncode == 0
