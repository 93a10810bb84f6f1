"""The numbered cases about paths, as read_file and write_file answer them."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from cases import case
from corral import Grant, Policy
from corral.tools.spills import Spills
from tools.room import Room, open_room

pytestmark = pytest.mark.jail

AT_ONCE = 0.25
BLOCKED = "path_outside_sandbox"


@case("jinn-12", "jinn-22", "jinn-25")
def test_a_file_in_the_workspace_is_read_by_any_spelling(room: Room) -> None:
    room.file("a.txt", "one\ntwo\n")
    room.file("sub/b")
    (room.root / "link").symlink_to("a.txt")
    for path in ("a.txt", "./a.txt", "sub/../a.txt", str(room.root / "a.txt"), "~/work/a.txt", "link"):
        assert room.text("read_file", path=path) == "1\tone\n2\ttwo"


@case("jinn-26")
def test_a_workspace_that_is_given_through_a_link_is_the_same(room: Room, tmp_path: Path) -> None:
    room.file("a", "x\n")
    (tmp_path / "alias").symlink_to(room.root)
    with open_room(tmp_path / "alias", Policy.off()) as other:
        assert other.engine.workspace == str(room.root)
        for path in ("a", str(room.root / "a")):
            assert other.text("read_file", path=path) == "1\tx"


@case("jinn-13", "jinn-16", "jinn-17", "jinn-18", "jinn-30")
@pytest.mark.parametrize(
    "path",
    [
        *("../.ssh/id_rsa", ".git/config", ".ssh/id_rsa", ".aws/credentials", ".gnupg/pubring.kbx"),
        *(".env", ".env.local", ".git", ".ssh", ".aws", ".gnupg", "src/.env", "deploy/.env.staging"),
        *(".env/secret.txt", ".env.d/x"),
    ],
)
def test_a_sensitive_path_is_blocked_for_reading_and_for_changing(room: Room, path: str) -> None:
    if not path.startswith("..") and "/" in path:
        room.file(path, "secret")
    expected = (BLOCKED, f"blocked: sensitive path: {path}")
    assert room.refused("read_file", path=path) == expected
    assert room.refused("write_file", path=path, content="x") == expected
    assert room.refused("edit_file", path=path, old_text="secret", new_text="x") == expected


@case("jinn-14", "jinn-15", "jinn-20", "jinn-21", "jinn-25")
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "~/x", "../x", "sub/../../x", "out", "outdir/secret", "outdir/new/f"]
)
def test_what_lies_outside_is_blocked(room: Room, outside: Path, path: str) -> None:
    room.file("sub/a")
    (room.root / "out").symlink_to(outside / "secret")
    (room.root / "outdir").symlink_to(outside)
    assert room.refused("read_file", path=path) == (BLOCKED, f"blocked: {path} is outside working directory")
    assert room.refused("write_file", path=path, content="x")[0] == BLOCKED
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"outside"


@case("jinn-19")
@pytest.mark.parametrize("path", [".gitignore", ".github/x.yml", ".envrc", "env", "environment.env"])
def test_names_that_only_look_sensitive_are_read_and_written(room: Room, path: str) -> None:
    room.file(path, "x\n")
    assert room.text("read_file", path=path) == "1\tx"
    assert room.text("write_file", path=path, content="y\n") == f"wrote 2 bytes to {path}"


@case("jinn-23", "jinn-24", "jinn-27", "jinn-28")
def test_links_hide_nothing_and_are_not_written_through(room: Room, outside: Path) -> None:
    room.file(".env", "secret")
    room.file("target", "x\n")
    for name, leads_to in {
        "innocuous": ".env",
        "loop": "loop",
        "dangling": str(outside / "missing"),
        "inside": "target",
    }.items():
        (room.root / name).symlink_to(leads_to)
    assert room.refused("read_file", path="innocuous")[0] == BLOCKED
    assert room.refused("read_file", path="loop") == (
        BLOCKED,
        "blocked: symlink target is outside the sandbox: loop",
    )
    assert room.refused("read_file", path="dangling")[0] in (BLOCKED, "file_not_found")
    for path, error in {
        "dangling": "dangling is outside working directory",
        "inside": "mutation path contains symlink component: inside",
        "innocuous": "sensitive path: innocuous",
    }.items():
        assert room.refused("write_file", path=path, content="y") == (BLOCKED, f"blocked: {error}")
    assert os.listdir(outside) == ["secret"]
    assert room.text("read_file", path="inside") == "1\tx"


@case("jinn-29")
def test_another_name_of_a_sensitive_file_is_blocked(room: Room) -> None:
    room.file(".env", "secret")
    os.link(room.root / ".env", room.root / "harmless")
    assert room.refused("read_file", path="harmless") == (BLOCKED, "blocked: sensitive path: harmless")


@case("jinn-31", "jinn-32", "jinn-33")
@pytest.mark.parametrize("tool", ["read_file", "write_file"])
def test_what_names_no_file_is_an_error_of_the_arguments(room: Room, tool: str, tmp_path: Path) -> None:
    room.file("d/f")
    args = {"content": "x"} if tool == "write_file" else {}
    before = sorted(map(str, tmp_path.rglob("*")))
    assert room.refused(tool, path="", **args) == ("invalid_args", "an empty path")
    assert room.refused(tool, path="a\0b", **args) == ("invalid_args", "a NUL byte in a path")
    assert room.refused(tool, path="d", **args) == ("invalid_args", "not a regular file: d")
    assert room.refused(tool, path=".", **args)[0] in ("invalid_args", BLOCKED)
    assert room.refused(tool, path="x" * 5000, **args)[0] == "invalid_args"
    after = [path for path in sorted(map(str, tmp_path.rglob("*"))) if "/state" not in path]
    assert after == [path for path in before if "/state" not in path]


@case("jinn-34")
def test_a_fifo_a_socket_and_a_device_are_errors_at_once(room: Room) -> None:
    os.mkfifo(room.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(room.root / "socket"))
        for path in ("fifo", "socket"):
            started = time.monotonic()
            assert room.refused("read_file", path=path) == ("invalid_args", f"not a regular file: {path}")
            assert room.refused("write_file", path=path, content="x")[0] == "invalid_args"
            assert time.monotonic() - started < AT_ONCE


@case("jinn-35", "jinn-36")
def test_a_spill_file_is_read_if_it_is_ours_and_as_we_wrote_it(room: Room, tmp_path: Path) -> None:
    spill = room.engine.spills.new()
    spill.write(b"one\ntwo\n")
    path = Path(spill.finish())
    assert path.stat().st_mode & 0o777 == 0o600
    assert room.text("read_file", path=str(path)) == "1\tone\n2\ttwo"
    planted = path.with_name(path.name.replace("corral-shell-", "corral-shell-f"))
    planted.write_bytes(b"planted")
    linked = path.with_name("corral-shell-0-0.log")
    linked.symlink_to("/etc/passwd")
    elsewhere = tmp_path / path.name
    elsewhere.write_bytes(b"one\ntwo\n")
    assert room.refused("read_file", path=str(planted)) == (
        BLOCKED,
        f"unregistered shell spill file: {planted}",
    )
    assert room.refused("read_file", path=str(linked))[0] == BLOCKED
    assert room.refused("read_file", path=str(elsewhere))[0] == BLOCKED
    assert room.refused("read_file", path=f"{path.parent}/../../secret.log")[0] == BLOCKED
    path.write_bytes(b"replaced")
    assert room.refused("read_file", path=str(path)) == (BLOCKED, f"unregistered shell spill file: {path}")


def test_spill_files_are_bounded_in_number_and_in_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.tools.spills.SPILL_FILES", 3)
    monkeypatch.setattr("corral.tools.spills.SPILL_BYTES", 10)
    spills = Spills(str(tmp_path / "spills"))
    made = []
    for _ in range(6):
        spill = spills.new()
        spill.write(b"12345678")
        spill.write(b"9abcdef")
        assert (spill.size, spill.dropped) == (10, 5)
        made.append(spill.finish())
        os.utime(made[-1], ns=(10**9 * len(made), time.time_ns() - 10**9 * (10 - len(made))))
    assert spills.paths() == made[:2:-1]
    assert spills.read(made[-1]) == b"123456789a"
    spills.new().discard()
    assert not [name for name in os.listdir(tmp_path / "spills") if name.startswith(".")]
    spills.close()


def test_what_the_policy_keeps_says_what_would_allow_it(tmp_path: Path, room: Room) -> None:
    room.file("kept/a", "x\n")
    policy = Policy.workspace_write(writable=["out/**"], grants=[Grant.hide("kept")], require=False)
    with open_room(room.root, policy) as held:
        response = held.call("write_file", path="elsewhere", content="x")
        assert response["error_code"] == "permission_denied"
        assert response["error"] == "blocked: elsewhere is not in the writable globs out/**"
        assert response["suggestion"] == "a person can allow it: --writable elsewhere"
        assert held.refused("read_file", path="kept/a") == ("permission_denied", "blocked: kept/a is hidden")
        assert held.text("write_file", path="out/a", content="x") == "wrote 1 bytes to out/a"
