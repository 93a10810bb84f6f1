"""undo: what was before, and how a batch that fails is taken back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import Policy
from corral.environment.files import FileHalf
from corral.tools.history import Locked
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


def history_files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "state/history").rglob("*-*-*") if path.is_file())


@case("jinn-70")
def test_every_change_can_be_listed_looked_at_and_taken_back(room: Room) -> None:
    target = room.file("f", b"one\r\n\xff\n")
    first = room.call("edit_file", path="f", old_text="one", new_text="two")["meta"]["undo"]["id"]
    room.call("write_file", path="new", content="x")
    told = room.json("undo", action="list")
    assert told["count"] == 2
    assert [(entry["tool"], entry["path"], entry["created"]) for entry in told["entries"]] == [
        ("write_file", "new", True),
        ("edit_file", "f", False),
    ]
    assert [entry["path"] for entry in room.json("undo", action="list", limit=1)["entries"]] == ["new"]
    assert room.text("undo", action="preview", id=first) == (
        "would restore f:\n@@ line 1 @@\n- two\r\n+ one\r\n  \ufffd"
    )
    assert target.read_bytes() == b"two\r\n\xff\n"
    restored = room.call("undo", action="restore", id=first[:6])
    assert restored["result"] == "restored f (7 bytes)"
    assert target.read_bytes() == b"one\r\n\xff\n"
    again = restored["meta"]["undo"]["id"]
    assert room.call("undo", action="restore", id=again)["ok"]
    assert target.read_bytes() == b"two\r\n\xff\n"
    created = told["entries"][0]["id"]
    assert (
        room.text("undo", action="preview", id=created)
        == "would remove new (1 bytes), which write_file created"
    )
    assert room.text("undo", action="restore", id=created) == "removed new"
    assert not (room.root / "new").exists()
    assert room.text("undo", action="restore", id=created) == "new is gone already"
    assert room.text("undo", action="clear").startswith("cleared ")
    assert room.json("undo", action="list")["count"] == 0


@case("jinn-70")
def test_what_was_deleted_comes_back(room: Room) -> None:
    room.file("d/f", "content\n")
    patch = "*** Begin Patch\n*** Delete File: d/f\n*** End Patch"
    (kept,) = room.call("apply_patch", patch=patch)["meta"]["undo"]
    assert room.text("undo", action="restore", id=kept["id"]) == "restored d/f (8 bytes)"
    assert (room.root / "d/f").read_text() == "content\n"


@case("jinn-70")
def test_an_unknown_id_a_broken_entry_and_another_place_are_refused(room: Room, tmp_path: Path) -> None:
    target = room.file("f", "x" * 30_000)
    kept = room.call("write_file", path="f", content="new")["meta"]["undo"]["id"]
    for action in ("preview", "restore"):
        assert room.refused("undo", action=action)[0] == "invalid_args"
        assert room.refused("undo", action=action, id="zz") == ("invalid_args", "no undo entry zz")
    (entry,) = history_files(tmp_path)
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    whole = entry.read_bytes()
    for broken in (whole[:-20], b"", b"{}\n", whole.replace(b'"digest": "', b'"digest": "0')):
        entry.write_bytes(broken)
        assert room.refused("undo", action="restore", id=kept) == (
            "conflict",
            f"undo entry {kept} is corrupted",
        )
    entry.write_bytes(whole.replace(str(room.root).encode(), b"/elsewhere"))
    assert room.refused("undo", action="restore", id=kept) == (
        "conflict",
        f"undo entry {kept} is of another workspace",
    )
    for place in ("/etc/passwd", f"{room.root}/other"):
        entry.write_bytes(whole.replace(f'"place": "{room.root}/f"'.encode(), f'"place": "{place}"'.encode()))
        for action in ("restore", "preview"):
            assert room.refused("undo", action=action, id=kept) == (
                "conflict",
                f"undo entry {kept} is of another place than f",
            )
    planted = whole.replace(f'"place": "{room.root}/f"'.encode(), b'"place": "/etc/passwd"')
    entry.write_bytes(planted.replace(b'"path": "f"', b'"path": "/etc/passwd"'))
    assert room.refused("undo", action="restore", id=kept)[0] == "path_outside_sandbox"
    assert room.refused("undo", action="preview", id=kept)[0] == "path_outside_sandbox"
    entry.write_bytes(whole)
    target.unlink()
    target.symlink_to("/etc/hostname")
    assert room.refused("undo", action="restore", id=kept)[0] == "path_outside_sandbox"


@case("jinn-70")
def test_taking_back_does_not_write_over_what_somebody_else_changed(room: Room) -> None:
    target = room.file("f", "one\n")
    kept = room.call("edit_file", path="f", old_text="one", new_text="two")["meta"]["undo"]["id"]
    target.write_text("theirs\n")
    os.utime(target, ns=(0, 0))
    room.text("undo", action="preview", id=kept)
    assert room.refused("undo", action="restore", id=kept)[0] == "stale_file"
    assert target.read_text() == "theirs\n"


@case("jinn-70")
def test_no_more_than_50_entries_and_20_mb_are_kept(room: Room, tmp_path: Path) -> None:
    room.file("f", "0")
    for number in range(70):
        assert room.call("write_file", path="f", content=str(number))["ok"]
    assert room.json("undo", action="list")["count"] == 50
    assert len(history_files(tmp_path)) <= 60
    large = [os.urandom(3 << 20).hex()[: 4 << 20] for _ in range(2)]
    for number in range(10):
        assert "id" in room.call("write_file", path="f", content=large[number % 2])["meta"]["undo"]
        assert sum(path.stat().st_size for path in history_files(tmp_path)) <= 20 << 20


def test_what_is_written_over_an_entry_that_went_is_whole(room: Room, tmp_path: Path) -> None:
    """Longer and shorter than what was there, and also after somebody removed it."""
    contents = [f"{number} " + "x" * (number * 7919 % 5000) for number in range(150)]
    room.file("f", contents[0])

    def write_and_look(first: int, last: int, kept: int) -> str:
        """The id of the oldest entry."""
        for content in contents[first:last]:
            assert room.call("write_file", path="f", content=content)["ok"]
        told = room.json("undo", action="list", limit=50)["entries"]
        assert [entry["size"] for entry in told] == [
            len(c) for c in contents[last - 2 : last - 2 - kept : -1]
        ]
        for entry in told:
            assert room.call("undo", action="preview", id=entry["id"])["ok"]
        return str(told[-1]["id"])

    oldest = write_and_look(1, 140, 50)
    assert len(history_files(tmp_path)) <= 60
    assert room.call("undo", action="restore", id=oldest)["ok"]
    assert (room.root / "f").read_text() == contents[89]
    assert room.text("undo", action="clear").startswith("cleared ")
    contents[139] = contents[89]
    write_and_look(140, 150, 10)


def test_after_a_fork_two_processes_do_not_share_one_lock(tmp_path: Path) -> None:
    locked = Locked(str(tmp_path))
    with locked:
        pass
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with locked:
            os.write(writer, b"x")
            time.sleep(0.3)
        os._exit(0)
    os.read(reader, 1)
    started = time.monotonic()
    with locked:
        waited = time.monotonic() - started
    locked.close()
    os.close(reader)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert waited > 0.1


def test_a_lock_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    locked = Locked(str(tmp_path / "made"))
    for _ in range(2):
        with locked:
            assert (tmp_path / "made/lock").exists()
        (tmp_path / "made/lock").unlink()
    locked.close()


# ---- a batch that fails ----


def edits(*paths: str) -> list[dict[str, str]]:
    return [{"path": path, "old_text": "old", "new_text": "new"} for path in paths]


def test_what_was_before_is_on_the_disk_before_the_change_is_seen(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.file("f", b"one\n")
    happened: list[str] = []
    fsync, rename = os.fsync, os.rename

    def synced(fd: int) -> None:
        happened.append("kept" if "/history/" in os.readlink(f"/proc/self/fd/{fd}") else "other")
        fsync(fd)

    def renamed(*names: Any, **places: Any) -> None:
        happened.append("seen")
        rename(*names, **places)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    assert "id" in room.call("edit_file", path="f", old_text="one", new_text="two")["meta"]["undo"]
    assert happened.index("kept") < happened.index("seen")


def test_what_cannot_be_kept_is_said_and_the_change_is_made(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = room.file("f", b"one\n")
    fsync = os.fsync

    def fails(fd: int) -> None:
        if "/history/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(5, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", fails)
    told = room.call("edit_file", path="f", old_text="one", new_text="two")
    assert told["meta"]["undo"] == {"skipped": "Input/output error"}
    assert target.read_bytes() == b"two\n"
    assert history_files(tmp_path) == []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Writing "third" fails; ``meanwhile`` is done right before."""
    told: dict[str, Any] = {"meanwhile": lambda: None}
    really = FileHalf.write_file

    def write_file(self: FileHalf, path: str, *args: Any, **options: Any) -> int:
        if path == "third":
            told["meanwhile"]()
            raise OSError(28, "No space left on device", path)
        return really(self, path, *args, **options)

    monkeypatch.setattr(FileHalf, "write_file", write_file)
    return told


def test_a_batch_that_fails_half_way_is_taken_back(room: Room, failing: dict[str, Any]) -> None:
    for path in ("first", "second", "third"):
        room.file(path, "old\n")
    response = room.call("multi_edit", edits=edits("first", "second", "third"))
    assert response["error_code"] == "resource_limit"
    assert response["error"] == "third: No space left on device: third; taken back: first, second"
    assert response["meta"] == {"failed": "third", "rolled_back": ["first", "second"], "left": []}
    assert {(room.root / path).read_text() for path in ("first", "second", "third")} == {"old\n"}
    assert room.json("undo", action="list")["count"] == 0


def test_what_somebody_else_changed_meanwhile_is_left_and_named(room: Room, failing: dict[str, Any]) -> None:
    for path in ("first", "second", "third"):
        room.file(path, "old\n")
    failing["meanwhile"] = lambda: room.file("first", "theirs\n")
    response = room.call(
        "search_replace", pattern="old", replacement="new", files=["first", "second", "third"]
    )
    assert response["error"].endswith(
        "; taken back: second; not taken back, changed by others or not kept: first"
    )
    assert (room.root / "first").read_text() == "theirs\n"
    assert (room.root / "second").read_text() == "old\n"
    assert [entry["path"] for entry in room.json("undo", action="list")["entries"]] == ["first"]


def test_added_and_deleted_files_are_taken_back_too(room: Room, failing: dict[str, Any]) -> None:
    room.file("gone", "x\n")
    room.file("third", "old\n")
    response = room.call(
        "apply_patch",
        patch="*** Begin Patch\n*** Add File: added\n+x\n*** Delete File: gone\n"
        "*** Update File: third\n-old\n+new\n*** End Patch",
    )
    assert response["meta"]["rolled_back"] == ["added", "gone"]
    assert not (room.root / "added").exists()
    assert (room.root / "gone").read_text() == "x\n"


def test_two_engines_that_change_one_file_wait_for_each_other(room: Room) -> None:
    import threading

    room.file("f", "".join(f"<{number}>\n" for number in range(30)))
    with open_room(room.root, Policy.off(), client="other") as other:

        def work(which: Room, numbers: range) -> None:
            for number in numbers:
                which.text("read_file", path="f")
                response = which.call(
                    "edit_file", path="f", old_text=f"<{number}>", new_text=f"done {number}."
                )
                while not response["ok"]:
                    assert response["error_code"] == "stale_file"
                    which.text("read_file", path="f")
                    response = which.call(
                        "edit_file", path="f", old_text=f"<{number}>", new_text=f"done {number}."
                    )

        threads = [
            threading.Thread(target=work, args=(room, range(15))),
            threading.Thread(target=work, args=(other, range(15, 30))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (room.root / "f").read_text() == "".join(f"done {number}.\n" for number in range(30))
