"""Runs of one jail at the same time, and what is left when they are over."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from cases import case
from homes.dweller import Dweller
from jail.world import eventually
from leaks import no_leaks

pytestmark = pytest.mark.jail


def line_of(run: subprocess.Popen[str]) -> str:
    assert run.stdout is not None
    return run.stdout.readline()


@case("jai-38")
@pytest.mark.parametrize("mode", ["casual", "bare", "strict"])
def test_a_second_run_sees_the_writes_of_the_first(dweller: Dweller, mode: str) -> None:
    with dweller.starts("echo one > ~/a; echo one > /tmp/a; echo up; read x; cat ~/b", mode=mode) as first:
        assert line_of(first) == "up\n"
        assert dweller.says("cat ~/a /tmp/a; echo two > ~/b", mode=mode) == "one\none\n"
        out, _ = first.communicate("go\n", timeout=20)
        assert (out, first.returncode) == ("two\n", 0)
    assert not list((dweller.jail() / "holders").iterdir())


def test_the_first_may_end_before_the_second(dweller: Dweller) -> None:
    with dweller.starts("echo up; read x") as first:
        assert line_of(first) == "up\n"
        with dweller.starts("echo up; read x; echo late > ~/late") as second:
            assert line_of(second) == "up\n"
            first.communicate("go\n", timeout=20)
            assert dweller.says("echo third > ~/third") == ""
            second.communicate("go\n", timeout=20)
    assert sorted(entry.name for entry in dweller.changes.iterdir()) == ["late", "third"]


@case("jai-39")
def test_twenty_first_starts_at_once_all_succeed(dweller: Dweller) -> None:
    runs = [dweller.starts(f"echo {n} > ~/file{n}", "-j", "many") for n in range(20)]
    said = [run.communicate(timeout=30)[1] for run in runs]
    assert (said, [run.returncode for run in runs]) == ([""] * 20, [0] * 20)
    assert len(list((dweller.jail("many") / "changes").iterdir())) == 20
    assert dweller.says("cat ~/file*", "-j", "many").count("\n") == 20


def test_a_run_with_other_terms_is_refused_and_names_who_is_there(dweller: Dweller) -> None:
    with dweller.starts("echo up; read x", "-j", "one") as first:
        assert line_of(first) == "up\n"
        for words in (["-m", "bare"], ["-m", "casual", "--hide", "granted"], ["-m", "strict"]):
            said = dweller.is_refused("run", *words, "-j", "one", "true", code=125)
            assert f"in use by pid {first.pid}" in said
        first.communicate("go\n", timeout=20)
    assert dweller.says("ls ~/granted 2>&1 || true", "-j", "one", "--hide", "granted").startswith("ls:")


def test_a_run_that_would_keep_it_elsewhere_is_refused_and_names_who_is_there(dweller: Dweller) -> None:
    disk, other = dweller.world.base / "disk", dweller.world.base / "other"
    elsewhere, further, here = ["--storage", str(disk)], ["--storage", str(other)], list[str]()
    for first, second, place in (
        (elsewhere, here, disk),
        (here, elsewhere, dweller.jail("one").parent),
        (elsewhere, further, disk),
    ):
        with dweller.starts("echo up; read x", "-j", "one", *first) as run:
            assert line_of(run) == "up\n"
            said = dweller.is_refused("run", "-m", "casual", "-j", "one", *second, "true", code=125)
            assert f"in use by pid {run.pid} with another storage ({place})" in said
            assert dweller.says("echo same", "-j", "one", *first) == "same\n"
            assert dweller.says("echo free", "-j", "two", *second) == "free\n"
            run.communicate("go\n", timeout=20)
        assert dweller.says("echo free", "-j", "one", *second) == "free\n"
    assert not list((dweller.jail("one").parent / ".elsewhere").iterdir())


def test_one_that_was_killed_elsewhere_is_not_in_use(dweller: Dweller) -> None:
    with dweller.starts("echo up; read x", "-j", "one", "--storage", str(dweller.world.base / "disk")) as run:
        assert line_of(run) == "up\n"
        run.kill()
    assert eventually(lambda: dweller.runs("true", "-j", "one").returncode == 0)


@case("jai-40")
def test_what_runs_is_not_taken_down(dweller: Dweller) -> None:
    with dweller.starts("echo up; read x; echo late > ~/late", "-j", "one") as run:
        assert line_of(run) == "up\n"
        assert f"in use by pid {run.pid}" in dweller.is_refused("down", "-j", "one", code=125)
        run.communicate("go\n", timeout=20)
        assert run.returncode == 0
    assert (dweller.jail("one") / "changes/late").exists()


@case("jai-41")
def test_an_idle_jail_has_nothing_mounted_and_keeps_its_changes(dweller: Dweller) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    dweller.says("echo x > ~/kept", "-j", "one")
    assert Path("/proc/self/mountinfo").read_text() == before
    for _ in range(2):
        assert dweller.reads("down", "-j", "one") == ""
    assert not (dweller.jail("one") / "work/work").exists()
    assert dweller.says("cat ~/kept", "-j", "one") == "x\n"
    dweller.is_refused("down", "-j", "one", "true")


@case("jai-42")
@pytest.mark.parametrize("mode", ["casual", "bare", "strict"])
@pytest.mark.parametrize("who", ["front", "supervisor", "init"])
def test_killed_it_takes_everything_along_and_the_next_run_works(
    dweller: Dweller, mode: str, who: str
) -> None:
    """The front is what the caller started, the supervisor its child, and the init the first process of the jail."""
    line = "(setsid sleep 1000 & exec sleep 1001) & echo kept > ~/kept; echo up; sleep 1002"
    with dweller.starts(line, mode=mode) as run:
        assert line_of(run) == "up\n"
        inside = below(run.pid)
        assert len(inside) >= 4
        supervisor = child_of(run.pid)
        victim = {"front": run.pid, "supervisor": supervisor, "init": child_of(supervisor)}[who]
        os.kill(victim, signal.SIGKILL)
        assert eventually(lambda: not any(map(is_alive, inside)), 1), [p for p in inside if is_alive(p)]
        assert run.wait(20) != 0
    assert dweller.says("cat ~/kept", mode=mode) == "kept\n"
    assert not list((dweller.jail() / "holders").iterdir())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def child_of(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def below(top: int) -> list[int]:
    parents = {pid: parent_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}

    def is_below(pid: int) -> bool:
        return pid in parents and (parents[pid] == top or is_below(parents[pid]))

    return [pid for pid in parents if is_below(pid)]


@case("jai-43")
def test_leftovers_of_a_crash_do_not_stop_the_next_run(dweller: Dweller) -> None:
    dweller.says("echo x > ~/kept", "-j", "one")
    jail = dweller.jail("one")
    (jail / "holders/99999-dead").write_text("99999 3 4 5 6\nother\n")
    (jail / "lock").touch()
    (jail / "work/work").mkdir(exist_ok=True)
    (jail / "work/work").chmod(0)
    (jail / ".about-half").touch()
    assert dweller.says("cat ~/kept", "-j", "one") == "x\n"
    assert not list((jail / "holders").iterdir())


def test_changes_that_cannot_be_mounted_are_named_and_can_be_set_aside(dweller: Dweller) -> None:
    dweller.says("echo x > ~/kept", "-j", "one")
    changes = dweller.jail("one") / "work"
    changes.rename(dweller.jail("one") / "elsewhere")
    changes.symlink_to("/proc")
    said = dweller.is_refused("run", "-m", "casual", "-j", "one", "true", code=125)
    assert "corral down -j one --set-aside" in said
    dweller.reads("down", "-j", "one", "--set-aside")
    assert dweller.says("echo ok", "-j", "one") == "ok\n"
    (aside,) = dweller.jail("one").glob("aside-*")
    assert (aside / "changes/kept").read_text() == "x\n"


def test_a_private_home_can_be_set_aside_too(dweller: Dweller) -> None:
    dweller.says("echo x > ~/kept", "-j", "one", mode="bare")
    dweller.reads("down", "-j", "one", "--set-aside")
    assert dweller.says("ls -A ~", "-j", "one", mode="bare") == "work\n"
    (aside,) = dweller.jail("one").glob("aside-*")
    assert (aside / "home/kept").read_text() == "x\n"


@case("jai-80")
@pytest.mark.parametrize("launches", [40, pytest.param(1000, marks=pytest.mark.soak)])
def test_many_launches_leave_nothing(dweller: Dweller, launches: int) -> None:
    dweller.says("true")
    with no_leaks():
        for n in range(launches):
            dweller.says("true", mode=("casual", "bare", "strict")[n % 3])
    assert not list((dweller.jail() / "holders").iterdir())
