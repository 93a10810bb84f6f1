"""memory: what is kept, for whom, and that nothing is lost when two write at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cases import case
from corral import Policy
from corral.memory import BUSY_SECONDS, FILE, Memory, Scope, type_of
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


@case("jinn-99")
def test_what_is_saved_is_recalled_listed_and_forgotten(room: Room) -> None:
    assert room.text("memory", action="save", key="b.two", value="second") == "saved: b.two"
    assert room.text("memory", action="save", key="a-one", value="first\nline") == "saved: a-one"
    assert room.text("memory", action="recall", key="a-one") == "first\nline"
    assert room.json("memory", action="list") == {"keys": ["a-one", "b.two"], "count": 2}
    assert room.text("memory", action="save", key="b.two", value="again") == "saved: b.two"
    (one, two) = room.json("memory", action="list", include_values=True)["entries"]
    assert (two["value"], two["value_type"], two["kind"], two["pinned"]) == ("again", "string", "fact", False)
    assert one["updated_at"].endswith("Z")
    for _ in range(2):
        assert room.text("memory", action="forget", key="b.two") == "forgotten: b.two"
    response = room.call("memory", action="recall", key="b.two")
    assert response["error"] == "key not found: b.two"
    assert response["suggestion"] == 'use action="list" to see available keys'


@case("jinn-99")
def test_a_bad_key_and_a_value_that_is_too_large_are_refused(room: Room) -> None:
    for key in ("", "a b", "a/b", "a\\b", "ä", "x" * 129, "a\n"):
        assert room.refused("memory", action="save", key=key, value="x")[0] == "invalid_args"
    assert room.refused("memory", action="save", key="k")[0] == "invalid_args"
    assert room.refused("memory", action="recall")[0] == "invalid_args"
    assert room.refused("memory", action="save", key="k", value="ä" * 8193)[0] == "invalid_args"
    assert room.text("memory", action="save", key="x" * 128, value="ä" * 8192) == f"saved: {'x' * 128}"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("true", "boolean"),
        ("-1.5", "number"),
        ("12", "number"),
        ("[1]", "array"),
        ('{"a": 1}', "json"),
        ("[1", "string"),
        ("hello", "string"),
        ("", "string"),
        ("Infinity", "string"),
    ],
)
def test_the_type_of_a_value_is_inferred(value: str, kind: str) -> None:
    assert type_of(value) == kind


@case("jinn-100")
def test_projects_do_not_see_each_other_and_a_worktree_is_one(room: Room, tmp_path: Path) -> None:
    room.text("memory", action="save", key="k", value="of the first")
    room.text("memory", action="save", key="k", value="of all", scope="global")
    other = tmp_path / "other"
    (other / "deep/down").mkdir(parents=True)
    (other / ".git").write_text("gitdir: /somewhere/else\n")
    with open_room(other / "deep/down", Policy.off()) as second:
        assert second.refused("memory", action="recall", key="k")[1] == "key not found: k"
        assert second.text("memory", action="recall", key="k", scope="global") == "of all"
        second.text("memory", action="save", key="k", value="of the second")
    with open_room(other, Policy.off()) as same:
        assert same.text("memory", action="recall", key="k") == "of the second"
    assert room.text("memory", action="recall", key="k") == "of the first"
    assert (
        room.text("memory", action="recall", key="k", scope="project", scope_id=str(other)) == "of the second"
    )


@case("jinn-101")
def test_a_scope_needs_its_id_and_only_its_id(room: Room) -> None:
    for args in (
        {"scope": "task"},
        {"scope": "agent"},
        {"scope": "global", "scope_id": "x"},
        {"scope": "junk"},
    ):
        assert room.refused("memory", action="save", key="k", value="x", **args)[0] == "invalid_args"
    room.text("memory", action="save", key="k", value="of a task", scope="task", scope_id="t1")
    assert room.text("memory", action="recall", key="k", scope="task", scope_id="t1") == "of a task"
    assert room.call("memory", action="recall", key="k", scope="agent", scope_id="t1")["ok"] is False


@case("jinn-102", "jinn-105")
def test_a_pin_stays_and_what_has_expired_is_gone_before_it_is_collected(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.text("memory", action="save", key="pinned", value="1", pin=True)
    room.text("memory", action="save", key="pinned", value="2", expires_in="1h")
    room.text("memory", action="save", key="short", value="3", expires_in="90m", kind="lesson")
    room.text("memory", action="save", key="long", value="4", expires_in="2w")
    assert room.json("memory", action="list")["count"] == 3
    import time

    later = time.time() + 86400
    monkeypatch.setattr("corral.memory.time.time", lambda: later)
    assert room.json("memory", action="list")["keys"] == ["long", "pinned"]
    assert room.refused("memory", action="recall", key="short")[1] == "key not found: short"
    assert room.text("memory", action="recall", key="pinned") == "2"
    assert room.json("memory", action="gc", scope="global")["deleted"] == 0
    assert room.json("memory", action="gc") == {"deleted": 1, "idempotency_deleted": 0, "scope": "all"}
    assert room.json("memory", action="list")["keys"] == ["long", "pinned"]
    for wrong in ("soon", "1", "h", "-1h", "0s", "1h 2m", "9999999w"):
        assert (
            room.refused("memory", action="save", key="k", value="x", expires_in=wrong)[0] == "invalid_args"
        )
    assert (
        room.refused("memory", action="save", key="k", value="x", pin=True, expires_in="1h")[0]
        == "invalid_args"
    )


@case("jinn-103")
def test_the_same_request_again_changes_nothing_and_gets_the_same_answer(room: Room) -> None:
    asked = {"action": "save", "key": "k", "value": "first"}
    first = room.call("memory", request="r1", **asked)
    room.text("memory", action="save", key="k", value="meanwhile")
    assert room.call("memory", request="r1", **asked) == first
    assert room.text("memory", action="recall", key="k") == "meanwhile"
    response = room.call("memory", request="r1", action="forget", key="k")
    assert response["error_code"] == "conflict"
    assert room.text("memory", action="recall", key="k") == "meanwhile"
    assert room.call("memory", client="another", request="r1", action="forget", key="k")["ok"]
    assert room.refused("memory", request="r2", action="save", key="bad key", value="x")[0] == "invalid_args"
    assert room.call("memory", request="r2", **asked)["ok"]


WRITER = """
import sys
from corral.memory import Memory, Scope
memory = Memory(sys.argv[1])
scope = Scope("global")
print("ready", flush=True)
sys.stdin.readline()
for number in range(150):
    key = f"{sys.argv[2]}-{number:03}"
    memory.once("agent", key, {}, lambda: memory.save(
        scope, key, "x" * 500, kind="fact", pin=False, expires_at=None) or "saved")
    memory.once("agent", "", {}, lambda: memory.save(
        scope, "shared", key, kind="fact", pin=False, expires_at=None) or "saved")
memory.close()
"""


@case("jinn-104")
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "state"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    memory = Memory(str(tmp_path / "state"))
    keys = [entry.key for entry in memory.entries(Scope("global"))]
    memory.close()
    assert keys == [*(f"{name}-{number:03}" for name in "abc" for number in range(150)), "shared"]
    database = sqlite3.connect(tmp_path / "state" / FILE)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("SELECT count(*) FROM replay").fetchone() == (450,)
    database.close()


@case("jinn-104")
def test_threads_that_write_at_once_lose_nothing(room: Room) -> None:
    def write(name: str) -> None:
        for number in range(25):
            assert room.call("memory", action="save", key=f"{name}{number}", value="x")["ok"]

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert room.json("memory", action="list")["count"] == 100


def test_who_finds_it_busy_for_too_long_is_told(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.memory.BUSY_SECONDS", 0.2)
    room.text("memory", action="save", key="k", value="x")
    holder = sqlite3.connect(tmp_path / "state" / FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert room.refused("memory", action="save", key="k", value="y") == ("conflict", "memory is busy")
    assert room.text("memory", action="recall", key="k") == "x"
    holder.close()
    assert room.text("memory", action="save", key="k", value="y") == "saved: k"


@case("jinn-105")
def test_only_we_can_read_it(room: Room, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        room.text("memory", action="save", key="k", value="x")
    finally:
        os.umask(old)
    state = tmp_path / "state"
    assert state.stat().st_mode & 0o777 == 0o700
    files = [path for path in state.iterdir() if path.name.startswith(FILE)]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    database = sqlite3.connect(state / FILE)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()
    assert BUSY_SECONDS == 5


def test_a_store_that_is_broken_is_one_clear_line(room: Room, tmp_path: Path) -> None:
    (tmp_path / "state" / FILE).write_bytes(b"this is no database" * 100)
    code, error = room.refused("memory", action="list")
    assert code == "io_error"
    assert "\n" not in error
