"""write_file: whole or absent, and never over what somebody else changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import LocalEnvironment, Policy
from corral.tools.engine import Engine
from files.yard import class_raised_by_nobody, give_to_nobody
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


def later(path: Path) -> None:
    """So that the times differ whatever the clock's step is."""
    info = path.stat()
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1_000_000))


@case("jinn-53", "jinn-54")
def test_a_file_is_written_whole_with_its_mode_and_nothing_beside_it(room: Room) -> None:
    assert room.text("write_file", path="new/deep/f", content="hello wörld") == "wrote 12 bytes to new/deep/f"
    made = room.root / "new/deep/f"
    assert made.read_text() == "hello wörld"
    assert made.stat().st_mode & 0o777 == 0o666 & ~_umask()
    for mode in (0o755, 0o600):
        made.chmod(mode)
        assert room.call("write_file", path="new/deep/f", content="x")["ok"]
        assert made.stat().st_mode & 0o777 == mode
    assert os.listdir(made.parent) == ["f"]
    assert room.text("write_file", path="empty", content="") == "wrote 0 bytes to empty"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@case("jinn-55")
def test_a_dry_run_touches_nothing_and_is_nothing_to_undo(room: Room) -> None:
    room.file("f", "one\ntwo\nthree\n")
    before = sorted(room.root.rglob("*"))
    assert room.text("write_file", path="d/new", content="hello", dry_run=True) == (
        "[dry-run] would create d/new (5 bytes)"
    )
    assert room.text("write_file", path="f", content="one\n2\nthree\n", dry_run=True) == (
        "[dry-run] diff for f:\n@@ line 1 @@\n  one\n- two\n+ 2\n  three"
    )
    edit = room.call("edit_file", path="f", old_text="two", new_text="2", dry_run=True)
    assert edit["result"].startswith("[dry-run] ")
    assert edit["meta"]["edit"]["diff"].endswith("- two\n+ 2\n  three")
    assert room.text("search_replace", pattern="two", replacement="2", files="f", dry_run=True).startswith(
        "[dry-run] would replace 1 matches across 1 files:"
    )
    patch = "*** Begin Patch\n*** Delete File: f\n*** End Patch"
    assert room.text("apply_patch", patch=patch, dry_run=True).startswith("[dry-run] ")
    edits = [{"path": "f", "old_text": "two", "new_text": "2"}]
    assert room.text("multi_edit", edits=edits, dry_run=True).startswith("[dry-run] would apply 1 edits:")
    assert sorted(room.root.rglob("*")) == before
    assert (room.root / "f").read_text() == "one\ntwo\nthree\n"
    assert room.json("undo", action="list") == {"entries": [], "count": 0}


@case("jinn-56")
def test_a_directory_that_cannot_be_written_leaves_the_target_and_nothing_else(room: Room) -> None:
    target = room.file("locked/f", "old")
    target.parent.chmod(0o555)
    give_to_nobody(target, target.parent)
    for above in room.root.parents[: len(room.root.parents) - 2]:
        if os.geteuid() == 0:
            above.chmod(0o755)

    def write() -> None:
        response = room.call("write_file", path="locked/f", content="new")
        assert (response["error_code"], response["error"]) == (
            "permission_denied",
            "permission denied: locked/f",
        )

    try:
        assert class_raised_by_nobody(write) == ""
        assert target.read_text() == "old"
        assert os.listdir(target.parent) == ["f"]
    finally:
        target.parent.chmod(0o755)


@case("jinn-58")
def test_what_was_read_and_then_changed_by_somebody_else_is_not_written_over(room: Room) -> None:
    target = room.file("config.yaml", "port: 8080\n")
    message = "file modified since last read (mtime changed). Re-read before writing: config.yaml"
    room.text("read_file", path="config.yaml")
    target.write_text("port: 8080\nhost: x\n")
    later(target)
    patch = "*** Begin Patch\n*** Update File: config.yaml\n-port: 8080\n+port: 1\n*** End Patch"
    attempts: dict[str, dict[str, Any]] = {
        "write_file": {"path": "config.yaml", "content": "mine"},
        "edit_file": {"path": "config.yaml", "old_text": "8080", "new_text": "9090"},
        "multi_edit": {"edits": [{"path": "config.yaml", "old_text": "8080", "new_text": "9090"}]},
        "search_replace": {"pattern": "8080", "replacement": "1", "files": "config.yaml"},
        "apply_patch": {"patch": patch},
    }
    for tool, args in attempts.items():
        code, error = room.refused(tool, **args)
        assert code == "stale_file"
        assert message in error
    assert target.read_text() == "port: 8080\nhost: x\n"
    room.text("read_file", path="config.yaml")
    assert room.call("edit_file", path="config.yaml", old_text="8080", new_text="9090")["ok"]
    assert room.call("edit_file", path="config.yaml", old_text="9090", new_text="7070")["ok"]


@case("jinn-58")
def test_that_holds_between_processes_that_each_serve_one_request(room: Room) -> None:
    target = room.file("f", "one\n")
    room.text("read_file", path="f")
    target.write_text("two\n")
    later(target)
    with open_room(room.root, Policy.off()) as next_one:
        assert next_one.refused("write_file", path="f", content="x")[0] == "stale_file"
    with (
        LocalEnvironment(room.root, Policy.off()) as environment,
        Engine(environment, client="codex") as other,
    ):
        assert other.call({"tool": "write_file", "args": {"path": "f", "content": "x"}})["ok"]


@case("jinn-59")
def test_what_was_never_read_or_is_gone_may_be_written(room: Room) -> None:
    room.file("unread", "x")
    gone = room.file("gone", "x")
    room.text("read_file", path="gone")
    gone.unlink()
    for path in ("unread", "gone", "new"):
        assert room.call("write_file", path=path, content="y")["ok"]


@case("jinn-60")
def test_a_restored_time_does_not_hide_a_change(room: Room) -> None:
    target = room.file("f", "one")
    room.text("read_file", path="f")
    info = target.stat()
    target.write_text("ENO")
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert room.refused("write_file", path="f", content="x")[0] == "stale_file"
    assert room.refused("edit_file", path="f", old_text="ENO", new_text="x")[0] == "stale_file"


def test_half_a_character_is_refused_and_nothing_is_written(room: Room) -> None:
    assert room.refused("write_file", path="f", content="a\ud800b")[0] == "invalid_args"
    assert not (room.root / "f").exists()


def test_a_large_file_is_replaced_and_the_answer_says_that_it_cannot_be_taken_back(room: Room) -> None:
    room.file("large", b"x" * (6 << 20))
    assert room.call("write_file", path="large", content="small")["meta"]["undo"] == {
        "skipped": "more than 5 MB"
    }


def test_without_a_state_directory_files_are_still_written(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("CORRAL_STATE_DIR", str(blocked / "state"))
    with open_room(room.root, Policy.off()) as other:
        response = other.call("write_file", path="f", content="x")
        assert response["meta"]["undo"] == {"skipped": "there is no state directory that can be written"}
        assert other.json("undo", action="list")["count"] == 0
        assert other.text("read_file", path="f") == "1\tx"
