"""Hosts with a missing rung, made for real around the installed command: it steps down and says so, or refuses with
the missing piece and the remedy. It never runs a command bare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cases import case
from hostfacts import skip_unless_host
from jail.world import World, fingerprint, python
from proof.surroundings import PRIVATE_MOUNTS, without

pytestmark = pytest.mark.jail

CORRAL = str(Path(sys.executable).with_name("corral"))
TIMEOUT = 40


def corral(
    world: World, surroundings: list[str], *words: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*surroundings, CORRAL, *words],
        **{"cwd": world.workspace, "stdin": subprocess.DEVNULL, "timeout": TIMEOUT, **options},
        capture_output=True,
        text=True,
    )


def explained(world: World, surroundings: list[str], *words: str) -> dict[str, Any]:
    done = corral(world, surroundings, "explain", "--json", *words, "true")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refusal(world: World, surroundings: list[str], *words: str) -> str:
    """Exit code 125, one line, and the command did not run."""
    done = corral(world, surroundings, "run", *words, "touch", "made")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("corral: ")
    assert done.stderr.count("\n") == 1
    assert not (world.workspace / "made").exists()
    return done.stderr


WRITE = "echo x > made; echo x > {outside}/made; test -e made"


def assert_it_holds(world: World, surroundings: list[str], *words: str) -> None:
    """A write inside lands, one outside does not."""
    done = corral(world, surroundings, "sh", *words, WRITE.format(outside=world.outside))
    assert done.returncode == 0, done.stderr
    assert (world.workspace / "made").exists()
    assert not (world.outside / "made").exists()


def test_with_every_rung_there_the_best_is_taken(world: World) -> None:
    """The control: the same filter that closes nothing, the same mounts."""
    skip_unless_host("user-namespaces")
    for surroundings in ([], without("nothing"), PRIVATE_MOUNTS):
        assert explained(world, surroundings)["backend"] == "namespaces"
    assert_it_holds(world, without("nothing"))


# ---- user namespaces closed ----


@case("peers-L4")
def test_without_user_namespaces_it_steps_down_to_landlock_and_says_so(world: World) -> None:
    closed = without("namespaces")
    facts = explained(world, closed)
    assert facts["backend"] == "landlock"
    assert facts["passed_over"] == ["namespaces: namespaces: Operation not permitted"]
    assert {"keys", "metadata", "processes", "temp"} <= set(facts["not_covered"])
    assert_it_holds(world, closed)
    status = json.loads(corral(world, closed, "status", "--json").stdout)
    assert (status["mechanism"], status["enforcing"]) == ("landlock", True)


@case("peers-L4")
def test_without_user_namespaces_what_only_they_hold_is_refused_with_the_remedy(world: World) -> None:
    closed = without("namespaces")
    text = refusal(world, closed, "--backend", "namespaces")
    assert "namespaces: Operation not permitted" in text
    assert "Remedy: allow user namespaces" in text
    assert "hidden" in refusal(world, closed, "--hide", "./secret")
    (world.home / ".config/corral").mkdir(parents=True)
    (world.home / ".config/corral/corral.toml").write_text('demand = ["keys"]\n')
    text = refusal(world, closed)
    assert "key material under home can be read (keys)" in text
    assert "Remedy: " in text


@pytest.mark.parametrize("words", [["-m", "casual"], ["-m", "strict"], ["-m", "bare"]])
def test_a_mode_that_is_asked_for_by_name_is_not_replaced_by_a_lesser_one(
    world: World, words: list[str]
) -> None:
    assert words[1] in refusal(world, without("namespaces"), *words)


def test_degraded_takes_the_last_proven_tier_and_never_none(world: World) -> None:
    (world.home / ".config/corral").mkdir(parents=True)
    (world.home / ".config/corral/corral.toml").write_text('demand = ["keys"]\n')
    closed = without("namespaces")
    refusal(world, closed)
    facts = explained(world, closed, "--degraded")
    assert facts["backend"] == "landlock"
    assert "keys" in facts["not_covered"]
    assert_it_holds(world, closed, "--degraded")
    (world.workspace / "made").unlink()
    refusal(world, without("namespaces", "landlock"), "--degraded")


def test_the_doctor_names_the_closed_piece_and_what_helps(world: World) -> None:
    done = corral(world, without("namespaces"), "doctor")
    assert done.returncode == 0  # the mode is held, by the lesser tier
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "user namespaces" in line)
    assert lines[at].strip().startswith("NO")
    assert "Operation not permitted" in lines[at]
    assert "remedy: " in lines[at + 1]
    assert "held by landlock, proven" in done.stdout
    assert "casual" in done.stdout


# ---- Landlock closed ----


@case("peers-L4")
@pytest.mark.parametrize("how", ["landlock", "landlock-eperm"])
def test_without_landlock_namespaces_hold_what_they_can_and_the_rest_is_said(world: World, how: str) -> None:
    skip_unless_host("user-namespaces")
    closed = without(how)
    assert "Remedy: use a kernel" in refusal(world, closed, "--backend", "landlock")
    facts = explained(world, closed)
    assert facts["backend"] == "namespaces"
    assert {"abstract-sockets", "pathname-sockets"} <= set(facts["not_covered"])
    assert "abstract-sockets" not in explained(world, [])["not_covered"]
    assert_it_holds(world, closed)
    doctor = corral(world, closed, "doctor").stdout
    assert "remedy: boot a kernel" in doctor


@case("peers-L4")
def test_without_landlock_root_still_reaches_neither_password_files_nor_the_kernels_switches(
    world: World,
) -> None:
    """Opened and closed again: nothing is written even if it is let in. An empty file in its place shows nothing."""
    skip_unless_host("root-attacks")
    attack = """
import os
for path, flags in (("/etc/shadow", os.O_RDONLY), ("/proc/sys/kernel/core_pattern", os.O_WRONLY),
                    ("/proc/sysrq-trigger", os.O_WRONLY), ("/dev/kmsg", os.O_WRONLY), ("/dev/null", os.O_WRONLY)):
    try: fd = os.open(path, flags)
    except OSError: continue
    if flags or os.read(fd, 1): print("open", path)
"""
    for closed in ([], without("landlock")):
        done = corral(world, closed, "run", "--backend", "namespaces", *python(attack))
        assert (done.returncode, done.stdout, closed) == (0, "open /dev/null\n", closed)


def test_what_was_found_out_elsewhere_does_not_open_anything_here(world: World) -> None:
    """Two filters look the same to who only asks whether there is one."""
    assert explained(world, without("nothing"))["backend"] == "namespaces"
    for closed in (without("namespaces"), without("landlock"), without("namespaces", "landlock")):
        done = corral(world, closed, "sh", WRITE.format(outside=world.outside))
        assert (done.returncode, done.stdout) in ((0, ""), (125, ""))
        assert not (world.outside / "made").exists()


@case("peers-L4")
@pytest.mark.parametrize("how", ["landlock", "landlock-eperm"])
def test_with_neither_nothing_runs_and_both_are_named(world: World, how: str) -> None:
    closed = without("namespaces", how)
    text = refusal(world, closed)
    assert "namespaces: namespaces: Operation not permitted" in text
    assert "landlock: the kernel has no Landlock" in text
    assert "Remedy: " in text
    assert refusal(world, closed, "-m", "read-only")
    status = corral(world, closed, "status")
    assert status.returncode == 125
    assert "NOT enforcing" in status.stdout
    doctor = corral(world, closed, "doctor")
    assert doctor.returncode == 125
    assert "corral refuses to run commands" in doctor.stdout


def test_with_neither_only_a_person_who_says_so_runs_it_unjailed_and_that_is_said_loudly(
    world: World,
) -> None:
    closed = without("namespaces", "landlock")
    done = corral(world, closed, "run", "-m", "off", "touch", "made")
    assert done.returncode == 0
    (world.workspace / "made").unlink()
    (world.home / ".config/corral").mkdir(parents=True)
    (world.home / ".config/corral/corral.toml").write_text("[sandbox]\nrequire = false\n")
    done = corral(world, closed, "run", "touch", "made")
    assert done.returncode == 0
    assert "NOT JAILED" in done.stderr  # also where nobody looks
    assert (world.workspace / "made").exists()


@case("peers-L4")
def test_a_project_cannot_say_so(world: World) -> None:
    (world.workspace / "corral.toml").write_text("[sandbox]\nrequire = false\n")
    done = corral(world, without("namespaces", "landlock"), "run", "touch", "made")
    assert done.returncode == 2
    assert not (world.workspace / "made").exists()


# ---- /proc masked, as containers do ----

MASK = {
    "sys is read-only": "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys",
    "sys is covered": "mount -t tmpfs tmpfs /proc/sys",
    "one file is covered": "mount --bind /dev/null /proc/version",
}


def masked(how: str) -> list[str]:
    return [*PRIVATE_MOUNTS, "sh", "-ec", f'{MASK[how]}; exec "$@"', "sh"]


@pytest.mark.parametrize("how", MASK)
def test_where_proc_is_masked_the_rest_of_the_tier_holds_and_the_gap_is_said(world: World, how: str) -> None:
    """A new /proc would show what is covered; the kernel refuses it, and the process list stays visible."""
    skip_unless_host("user-namespaces")
    facts = explained(world, masked(how))
    assert facts["backend"] == "namespaces"
    assert "processes" in facts["not_covered"]
    assert {"writes", "truncate", "tree"} <= set(facts["covered"])
    assert_it_holds(world, masked(how))
    doctor = corral(world, masked(how), "doctor")
    assert doctor.returncode == 0
    assert "own /proc" in doctor.stdout
    assert "remedy: " in doctor.stdout[doctor.stdout.index("own /proc") :].splitlines()[1]


def test_where_proc_is_masked_who_demands_a_hidden_process_list_is_refused(world: World) -> None:
    skip_unless_host("user-namespaces")
    (world.home / ".config/corral").mkdir(parents=True)
    (world.home / ".config/corral/corral.toml").write_text('demand = ["processes"]\n')
    assert "processes outside can be listed (processes)" in refusal(world, masked("sys is covered"))
    assert_it_holds(world, [])


# ---- nowhere to write ----


def read_only(*places: Path | str) -> list[str]:
    mounts = [f"mount -t tmpfs -o ro tmpfs {place}" for place in places]
    return [*PRIVATE_MOUNTS, "sh", "-ec", "; ".join([*mounts, 'exec "$@"']), "sh"]


def test_where_the_temp_directory_is_read_only_a_run_works_or_says_what_is_missing(
    backend: str, world: World
) -> None:
    done = corral(world, read_only("/tmp"), "sh", "--backend", backend, WRITE.format(outside=world.outside))
    if done.returncode != 0:
        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr.count("\n") == 1
        assert "temp" in done.stderr
    assert (world.workspace / "made").exists() == (done.returncode == 0)
    assert not (world.outside / "made").exists()


def test_where_nothing_can_be_kept_it_is_tried_each_time_and_holds(backend: str, world: World) -> None:
    for name in (".local", ".cache", ".config"):
        (world.home / name).mkdir()
    closed = read_only(*(world.home / name for name in (".local", ".cache", ".config")))
    for _ in range(2):
        assert_it_holds(world, closed, "--backend", backend)
        (world.workspace / "made").unlink()


@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_a_temp_directory_that_somebody_else_may_have_prepared_is_not_used_and_does_not_stop_us(
    world: World, mode: int
) -> None:
    """Its name can be foretold: any user of the host can be first to make it in /tmp."""
    temp = world.home / "tmp"
    planted = temp / f"corral-{os.getuid()}"
    planted.mkdir(parents=True)
    planted.chmod(mode)
    variables = {**os.environ, "TMPDIR": str(temp)}
    done = corral(
        world, [], "sh", "--backend", "landlock", "echo x > $TMPDIR/made && touch made", env=variables
    )
    assert done.returncode == 0, done.stderr
    assert (world.workspace / "made").exists()
    assert list(planted.iterdir()) == []


# ---- what decides about a jail cannot be changed from inside ----

ATTACK = """
import os, sys
home, own, kind = sys.argv[1:4]
def attempt(action):
    try: action()
    except OSError as error: print(type(error).__name__, end=" ")
    else: print("DONE", end=" ")
def write(path, flags=os.O_WRONLY | os.O_CREAT):
    os.write(os.open(path, flags, 0o600), b'require = false\\n')
def through_link():
    os.symlink(own, "link-" + kind); write("link-" + kind + "/corral.toml")
def by_rename():
    os.mkdir("mine-" + kind); write("mine-" + kind + "/corral.toml"); os.rename("mine-" + kind, own)
def away():
    os.rename(own, own + "-gone")
def parent_away():
    os.rename(os.path.dirname(own), os.path.dirname(own) + "-gone")
def by_hard_link():
    os.link(own + "/corral.toml", "hard-" + kind); write("hard-" + kind, os.O_WRONLY | os.O_APPEND)
kept = own + "/corral.toml"
for action in (lambda: write(kept), lambda: write(own + "/new"), lambda: os.unlink(kept), lambda: os.truncate(kept, 0),
               through_link, by_rename, away, parent_away, by_hard_link):
    attempt(action)
"""


@case("peers-P12")
@pytest.mark.parametrize("kind", ["config", "state"])
def test_policy_and_state_cannot_be_changed_from_inside_by_writing_linking_or_renaming(
    backend: str, world: World, kind: str
) -> None:
    own = world.home / (".config/corral" if kind == "config" else ".local/state/corral")
    own.mkdir(parents=True, mode=0o700)
    kept = own / "corral.toml"
    kept.write_text("" if kind == "config" else "kept")
    corral(world, [], "run", "--backend", backend, "true")  # what is found out is kept by now
    before = {path.name: fingerprint(path) for path in own.iterdir() if path.is_file()}
    done = corral(world, [], "run", "--backend", backend, "--", *python(ATTACK, world.home, own, kind))
    assert done.returncode == 0, done.stderr
    assert "DONE" not in done.stdout
    assert done.stdout.split()  # it did try
    assert {path.name: fingerprint(path) for path in own.iterdir() if path.is_file()} == before


@case("peers-P12")
@pytest.mark.parametrize("kind", ["config", "state"])
@pytest.mark.parametrize("how", ["home", "parent", "link", "itself", "environment"])
def test_a_grant_that_would_make_them_writable_is_refused(
    world: World, kind: str, how: str, tmp_path: Path
) -> None:
    own = world.home / (".config/corral" if kind == "config" else ".local/state/corral")
    own.mkdir(parents=True, mode=0o700)
    variables = dict(os.environ)
    place = {"home": world.home, "parent": own.parent, "itself": own}.get(how, world.home / "link")
    if how == "link":
        place.symlink_to(own.parent)
    if how == "environment":
        place = world.workspace
        variables[f"CORRAL_{kind.upper()}_DIR"] = str(world.workspace / "own")
    words = ["run", "--rw", str(place), "touch", "made"]
    done = corral(world, [], *words, env=variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Corral's own" in done.stderr
    assert not (world.workspace / "made").exists()


@case("peers-P12")
def test_the_projects_own_config_cannot_be_changed_from_inside_in_the_namespaces_tier(world: World) -> None:
    theirs = world.workspace / "corral.toml"
    theirs.write_text('network = "off"\n')
    before = fingerprint(theirs)
    script = "echo x >> corral.toml; rm -f corral.toml; mv corral.toml y; echo x > z && mv z corral.toml; touch made"
    done = corral(world, [], "sh", "--backend", "namespaces", script)
    assert done.returncode == 0
    assert (world.workspace / "made").exists()
    assert fingerprint(theirs) == before
