"""run_shell: what a command gets, what comes back, and what is kept of it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import case
from corral import Policy
from corral.state import state_directory
from corral.tools import run_shell, shell_output, spills
from corral.tools.call import Cancel
from jail.world import World
from leaks import no_leaks
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


@contextlib.contextmanager
def leaving_nothing(world: World, backend: str = "auto") -> Iterator[Room]:
    """A room that leaves nothing running and nothing open. What is made once for a whole program is there before."""
    policy = Policy.workspace_write(backend=backend)
    with open_room(world.workspace, policy) as room:
        room.text("run_shell", command="seq 3000")
    with no_leaks(), open_room(world.workspace, policy) as room:
        yield room


@case("jinn-78")
def test_a_command_runs_and_says_how_it_ended(room: Room) -> None:
    response = room.call("run_shell", command="echo hi; pwd")
    assert response["ok"]
    assert response["result"] == f"[exit: 0]\nhi\n{room.root}\n[classification: success — exit status 0]"
    assert (response["classification"], response["risk"]) == ("success", "safe")
    assert response["meta"]["exit_code"] == 0
    assert response["meta"]["sandbox"].startswith("workspace-write (")


@case("jinn-79")
def test_a_blank_command_is_refused_and_a_dry_run_runs_nothing(any_room: Room) -> None:
    for command in ("", " ", "\n\t", "a\0b"):
        assert any_room.refused("run_shell", command=command)[0] == "invalid_args"
    kept = any_room.file("x")
    response = any_room.call("run_shell", command="rm x", dry_run=True)
    assert response["ok"]
    assert (response["risk"], response["classification"]) == ("dangerous", "success")
    assert response["result"] == "[dry-run] would be refused: rm x"
    assert kept.exists()


@case("jinn-81")
@pytest.mark.parametrize(
    ("command", "exit_code", "kind"),
    [
        ("grep zzz f", 1, "expected_nonzero"),
        ("cd . && grep zzz f", 1, "expected_nonzero"),
        ("cat f | grep zzz", 1, "expected_nonzero"),
        ("diff f g", 1, "expected_nonzero"),
        ("cmp f g", 1, "expected_nonzero"),
        ("test -e nothing", 1, "expected_nonzero"),
        ("[ -e nothing ]", 1, "expected_nonzero"),
        ("make -f nothing; grep zzz f", 1, "error"),
        ("grep zzz nothing", 2, "error"),
        ("exit 3", 3, "error"),
        ("true", 0, "success"),
    ],
)
def test_an_exit_status_is_classified(any_room: Room, command: str, exit_code: int, kind: str) -> None:
    any_room.file("f", "one\n")
    any_room.file("g", "two\n")
    response = any_room.call("run_shell", command=command)
    assert response["ok"]
    assert response["result"].startswith(f"[exit: {exit_code}]\n")
    assert response["classification"] == kind


@case("jinn-81")
def test_a_signal_and_a_time_out_are_told_apart(room: Room) -> None:
    response = room.call("run_shell", command="kill -9 $$", force=True)
    assert (response["ok"], response["classification"]) == (True, "signal")
    assert "SIGKILL" in response["result"]
    response = room.call("run_shell", command="echo before; sleep 60", timeout=1)
    assert (response["ok"], response["classification"]) == (True, "timeout")
    assert response["result"].startswith("[exit: 124]\nbefore\n")
    assert response["risk"] == "safe"
    assert response["meta"]["exit_code"] == 124


@case("jinn-82")
@pytest.mark.parametrize(("asked", "used"), [(9999, 300), (0, 30), (-5, 30), (7, 7), (None, 30)])
def test_a_time_out_is_clamped(any_room: Room, asked: int | None, used: int) -> None:
    args = {} if asked is None else {"timeout": asked}
    assert any_room.call("run_shell", command="true", **args)["meta"]["timeout"] == used


@case("jinn-83")
def test_what_a_command_leaves_in_the_background_is_ended(world: World, backend: str) -> None:
    started = time.monotonic()
    with leaving_nothing(world, backend) as room:
        response = room.call("run_shell", command="(sleep 1000; echo late) & setsid sleep 1000 & echo now")
    assert time.monotonic() - started < 10
    assert "\nnow\n" in response["result"]
    assert "late" not in response["result"]


@case("jinn-84")
def test_a_secret_of_ours_is_not_to_be_had(
    world: World, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2-secret")
    monkeypatch.setenv("HARMLESS", "hunter2-harmless")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with open_room(world.workspace, Policy.workspace_write(backend=backend)) as room:
        shown = room.text("run_shell", command="env")
        assert "hunter2" not in shown
        assert "\nLC_ALL=C.UTF-8\n" in shown
        assert f"\nHOME={world.home}\n" in shown
        looked = (
            "cat /proc/$PPID/environ /proc/1/environ /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; true"
        )
        assert "hunter2" not in room.text("run_shell", command=looked)


def test_the_policy_keeps_and_sets_further_variables(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.policy import Policy as Fresh
    from corral.variables import EnvRule

    monkeypatch.setenv("KEPT_ONE", "yes")
    monkeypatch.setenv("OTHER", "no")
    rules = (
        *Fresh().environment,
        EnvRule("keep", "KEPT_*"),
        EnvRule("set", "MADE", "up"),
        EnvRule("drop", "TZ"),
    )
    monkeypatch.setenv("TZ", "UTC")
    with open_room(world.workspace, Policy.workspace_write(environment=rules)) as room:
        shown = room.text("run_shell", command="env").splitlines()
        assert "KEPT_ONE=yes" in shown
        assert "MADE=up" in shown
        assert not any(line.startswith(("OTHER=", "TZ=")) for line in shown)


def test_ten_names_are_passed_on_by_themselves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ten = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "TMPDIR", "TZ", "SHELL"}
    for name in ten - {"PATH", "HOME", "LC_ALL", "TMPDIR"}:
        monkeypatch.setenv(name, "C.UTF-8")
    monkeypatch.setenv("EDITOR", "vi")
    with open_room(world.workspace, Policy.off()) as room:
        lines = room.text("run_shell", command="env -0 | tr '\\n\\0' ' \\n'").splitlines()
    names = {line.partition("=")[0] for line in lines if "=" in line}
    assert names >= ten - {"LC_ALL", "TMPDIR"}
    kept = {rule.name for rule in Policy().environment if rule.verb == "keep"}
    assert names <= ten | kept | {"PWD", "OLDPWD", "SHLVL", "_"}


# ---- output ----


def spill_in(text: str) -> str:
    found = re.search(r"(?:Full output|The first 16 MB of it): (\S+)\]", text)
    assert found, text[-300:]
    return found[1]


@case("jinn-85")
def test_the_last_lines_are_shown_and_all_of_them_can_be_read(any_room: Room) -> None:
    text = any_room.text("run_shell", command="seq 3000")
    lines = text.splitlines()
    assert lines[0] == "[exit: 0]"
    assert lines[1] == "1001"
    assert lines[2000] == "3000"
    assert lines[2001].startswith("[Showing 2000 of 3000 lines (9.8 KB of 13.6 KB). Full output: ")
    read = any_room.text("read_file", path=spill_in(text), end_line=3, line_numbers=False)
    assert read.startswith("1\n2\n3\n")
    assert any_room.text("run_shell", command="seq 2000").count("\n") == 2001


@case("jinn-86")
def test_more_than_a_megabyte_is_in_the_spill_and_its_end_in_the_answer(any_room: Room) -> None:
    response = any_room.call("run_shell", command="seq 400000; exit 7")
    text = response["result"]
    assert text.startswith("[exit: 7]\n")
    assert "\n400000\n[Showing 2000 of 400000 lines" in text
    path = spill_in(text)
    assert Path(path).read_text() == "".join(f"{n}\n" for n in range(1, 400001))
    assert Path(path).stat().st_mode & 0o777 == 0o600
    tail = any_room.text("read_file", path=path, tail=1, line_numbers=False)
    assert tail.startswith("400000")
    assert response["meta"]["output"]["spill"] == path


@case("jinn-87")
def test_repeated_lines_are_told_in_one(any_room: Room) -> None:
    response = any_room.call("run_shell", command="yes 'the same line' | head -50; echo end")
    assert "\nthe same line\n[... 49 identical lines collapsed ...]\nend\n" in response["result"]
    assert response["meta"]["rewritten"] == ["identical lines collapsed"]
    response = any_room.call("run_shell", command="yes same | head -5")
    assert response["result"].count("same") == 5
    assert "rewritten" not in response["meta"]


def test_a_long_line_is_cut_and_kept_whole_in_the_spill(any_room: Room) -> None:
    response = any_room.call("run_shell", command="head -c 60000 /dev/zero | tr '\\0' x")
    assert "x" * 2000 + "..." in response["result"]
    assert response["meta"]["rewritten"] == ["long lines cut"]
    assert Path(spill_in(response["result"])).read_text() == "x" * 60000


@case("jinn-88")
def test_a_flood_is_bounded_in_memory_and_on_disk_and_then_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shell, "SHELL_OUTPUT_BYTES", 100 << 20)
    with leaving_nothing(world) as room:
        response = room.call("run_shell", command="yes a line of some length", timeout=60)
    assert (response["ok"], response["error_code"]) == (False, "resource_limit")
    assert response["risk"] == "caution"
    path = spill_in(response["result"])
    assert Path(path).stat().st_size == 16 << 20
    assert len(response["result"]) < 60_000


def test_a_flood_that_ends_by_itself_is_a_result(any_room: Room) -> None:
    response = any_room.call("run_shell", command="seq 5000000 | tail -c 30000000; exit 3", timeout=120)
    assert response["meta"]["exit_code"] == 3
    assert response["result"].splitlines()[-2].startswith("[Showing 2000 of ")
    assert "The first 16 MB of it: " in response["result"]


@case("jinn-89")
@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("frobnicate", "not installed"),
        ("cat nothing", "a path is wrong"),
        ("python3 -m nothing_there", "module"),
    ],
)
def test_a_known_failure_gets_a_hint(any_room: Room, command: str, hint: str) -> None:
    last = any_room.text("run_shell", command=command).splitlines()[-1]
    assert last.startswith("[hint: ")
    assert hint in last


def test_output_that_is_no_text_is_an_answer_all_the_same(any_room: Room) -> None:
    response = any_room.call("run_shell", command=r"printf '\xff\xfe\x00\x1b[31m\n'")
    assert response["ok"]
    assert "\ufffd\ufffd\x00\x1b[31m" in response["result"]


def test_cancelling_ends_the_command_and_tells_what_it_printed(world: World) -> None:
    cancel = Cancel()
    original = shell_output.Collector.add

    def add(self: shell_output.Collector, piece: bytes) -> None:
        original(self, piece)
        cancel.set()

    with pytest.MonkeyPatch.context() as patch, leaving_nothing(world) as room:
        patch.setattr(shell_output.Collector, "add", add)
        response = room.call("run_shell", command="echo begun; sleep 1000", cancel=cancel)
    assert response["error_code"] == "canceled"
    assert response["risk"] == "safe"
    assert response["result"] == "begun"


# ---- spill files that are none ----


@case("jinn-35", "jinn-36")
def test_nobody_can_plant_a_spill_file(any_room: Room, tmp_path: Path) -> None:
    path = Path(spill_in(any_room.text("run_shell", command="seq 3000")))
    assert path.is_relative_to(state_directory())
    name = path.name
    for planted in (
        Path("/tmp") / f"{spills.PREFIX}{os.getpid()}.log",
        path.with_name(f"{spills.PREFIX}planted.log"),
    ):
        planted.write_text("planted")
        try:
            assert any_room.refused("read_file", path=str(planted))[0] == "path_outside_sandbox"
        finally:
            planted.unlink()
    path.write_text("something else")
    assert any_room.refused("read_file", path=str(path))[0] == "path_outside_sandbox"
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert any_room.refused("read_file", path=str(path))[0] == "path_outside_sandbox"
    inside = any_room.text(
        "run_shell", command=f"ls {path.parent} 2>&1; echo x > {path.parent}/{name} 2>&1; true"
    )
    assert name not in inside.replace(f"/{name}", "")
