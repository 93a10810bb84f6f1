"""find_files, list_dir, stat_file, diff_files, checksum_tree and detect_project."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from cases import case
from tools.room import Room

pytestmark = pytest.mark.jail

SENSITIVE = (".env", ".env.local", ".git/config", ".ssh/id_rsa", ".aws/credentials", ".gnupg/x", "deep/.env")


# ---- find_files ----


@case("jinn-74")
def test_files_are_found_by_name_and_by_path(room: Room) -> None:
    for name in ("a.py", "src/b.py", "src/deep/b.py", "node_modules/c.py", "build/d.py", ".github/e.py"):
        room.file(name)
    assert room.json("find_files", pattern="*.py") == {
        "files": ["a.py", ".github/e.py", "src/b.py", "src/deep/b.py"],
        "truncated": False,
        "total_count": 4,
        "limit_used": 1000,
        "backend": "native",
    }
    assert room.json("find_files", pattern="src/**/*.py")["files"] == ["src/b.py", "src/deep/b.py"]
    assert room.json("find_files", pattern="*.py", path="src")["files"] == ["src/b.py", "src/deep/b.py"]
    limited = room.json("find_files", pattern="*.py", limit=1)
    assert (limited["files"], limited["truncated"], limited["total_count"]) == (["a.py"], True, 4)
    assert room.refused("find_files")[0] == "invalid_args"
    assert room.json("find_files", pattern="*.zig")["files"] == []


@case("jinn-75")
@pytest.mark.parametrize("words", ["-delete", "--exec=rm", "-exec rm {} ;", "-print0", "--"])
def test_a_path_or_pattern_that_looks_like_an_option_is_only_a_name(room: Room, words: str) -> None:
    room.file("a")
    assert room.refused("find_files", pattern="*", path=words)[0] == "file_not_found"
    assert room.json("find_files", pattern=words)["files"] == []
    room.file(f"{words.replace('/', '')}/b")
    assert room.json("find_files", pattern="*", path=words)["files"] == [f"{words}/b"]
    assert room.text("search_files", pattern="--pre=x") != ""
    assert (room.root / "a").exists()


# ---- list_dir ----


@case("jinn-76")
def test_a_listing_is_in_order_without_hidden_names_and_follows_no_link(room: Room) -> None:
    for name in ("b", "a.txt", ".hidden", "sub/c", "sub/deep/d", "sub/deep/er/e"):
        room.file(name)
    os.symlink("sub", room.root / "link")
    assert room.json("list_dir") == {
        "entries": ["a.txt", "b", "link", "sub/", "sub/c", "sub/deep/", "sub/deep/d", "sub/deep/er/"],
        "truncated": False,
        "total_count": 8,
    }
    assert room.json("list_dir", path="sub", depth=1)["entries"] == ["c", "deep/"]


@case("jinn-76")
def test_depth_and_number_are_clamped_and_the_count_is_true(room: Room) -> None:
    room.file("/".join("abcdefghijklmn") + "/x")
    assert len(room.json("list_dir", depth=99)["entries"]) == 10
    assert len(room.json("list_dir", depth=0)["entries"]) == 1
    for number in range(600):
        room.file(f"many/{number:03}")
    found = room.json("list_dir", path="many")
    assert (len(found["entries"]), found["truncated"], found["total_count"]) == (500, True, 600)
    assert found["notice"].startswith("[TRUNCATED: 500 of 600 entries.")
    assert len(room.json("list_dir", path="many", max_entries=99_999)["entries"]) == 600
    assert len(room.json("list_dir", path="many", max_entries=-1)["entries"]) == 1


def test_only_what_changed_since_is_listed(room: Room) -> None:
    os.utime(room.file("old"), (1000, 1000))
    os.utime(room.file("new"), (3000, 3000))
    assert room.json("list_dir", changed_since=2000)["entries"] == ["new"]


def test_a_file_is_no_directory(room: Room) -> None:
    room.file("a")
    for tool in ("list_dir", "checksum_tree", "detect_project"):
        code, error = room.refused(tool, path="a")
        assert (code, error) == ("invalid_args", "not a directory: a")
        assert room.refused(tool, path="nothing")[0] == "file_not_found"


# ---- stat_file ----


def test_facts_about_a_file(room: Room) -> None:
    room.file("dos.txt", b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    facts = dict(line.split(": ", 1) for line in room.text("stat_file", path="dos.txt").splitlines())
    assert facts["type"] == "file"
    assert (facts["lines"], facts["encoding"], facts["line_ending"], facts["bom"]) == (
        "3",
        "utf-8",
        "crlf",
        "yes",
    )
    assert facts["size"] == "18"
    assert facts["modified"].endswith("Z")
    assert "encoding: binary" in room.text("stat_file", path=room.file("x", b"a\0b").name)
    assert "line_ending: mixed" in room.text("stat_file", path=room.file("y", b"a\nb\r\n").name)
    assert "type: directory" in room.text("stat_file", path=".")
    os.mkfifo(room.root / "fifo")
    assert "type: special" in room.text("stat_file", path="fifo")


# ---- diff_files ----


def test_two_files_are_compared(room: Room) -> None:
    room.file("a", "one\ntwo\nthree\n")
    room.file("b", "one\n2\nthree\n")
    response = room.call("diff_files", path_a="a", path_b="b")
    assert response["result"] == "--- a\n+++ b\n@@ line 1 @@\n  one\n- two\n+ 2\n  three"
    assert response["meta"] == {"is_identical": False, "first_changed_line": 2}
    assert room.call("diff_files", path_a="a", path_b="a")["meta"]["is_identical"]
    assert "line end" in room.text("diff_files", path_a="a", path_b=room.file("c", "one\ntwo\nthree").name)
    assert "binary files differ" in room.text("diff_files", path_a="a", path_b=room.file("d", b"\0").name)
    assert room.refused("diff_files", path_a="a", path_b="nothing") == (
        "file_not_found",
        "file not found: nothing",
    )
    os.mkfifo(room.root / "fifo")
    assert room.refused("diff_files", path_a="a", path_b="fifo")[0] == "invalid_args"


@pytest.mark.parametrize("tool", ["diff_files", "search_files", "stat_file", "checksum_tree"])
def test_looking_at_a_file_is_not_reading_it(room: Room, tool: str) -> None:
    """What was read and then changed stays stale, whatever else has looked at it meanwhile."""
    target = room.file("a", "one\n")
    room.text("read_file", path="a")
    target.write_text("another\n")
    args = {
        "diff_files": {"path_a": "a", "path_b": "a"},
        "search_files": {"pattern": "x", "path": "a"},
        "stat_file": {"path": "a"},
        "checksum_tree": {},
    }[tool]
    room.text(tool, **args)
    assert room.refused("write_file", path="a", content="mine\n")[0] == "stale_file"


# ---- checksum_tree ----


@case("jinn-77")
def test_checksums_are_the_same_each_time_and_tell_what_changed(room: Room) -> None:
    room.file("a.txt", "one")
    room.file("sub/b.py", "two")
    room.file("node_modules/c", "three")
    os.symlink("a.txt", room.root / "link")
    first = room.json("checksum_tree")
    assert first == {
        "a.txt": hashlib.sha256(b"one").hexdigest(),
        "sub/b.py": hashlib.sha256(b"two").hexdigest(),
    }
    assert room.text("checksum_tree") == json.dumps(first, separators=(",", ":"))
    assert list(room.json("checksum_tree", pattern="*.py")) == ["sub/b.py"]
    room.file("a.txt", "changed")
    room.file("new", "x")
    (room.root / "sub/b.py").unlink()
    compared = room.json("checksum_tree", baseline={**first, "kept": "x"})
    assert compared["changed"] == ["a.txt"]
    assert compared["added"] == ["new"]
    assert compared["removed"] == ["kept", "sub/b.py"]
    assert compared["unchanged_count"] == 0
    assert room.json("checksum_tree", baseline=room.json("checksum_tree"))["unchanged_count"] == 2


def test_a_tree_of_too_many_files_is_to_be_narrowed(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.tools.checksum_tree.CHECKSUM_FILES", 3)
    for number in range(4):
        room.file(f"d{number % 2}/f{number}")
    assert room.refused("checksum_tree")[0] == "resource_limit"
    assert len(room.json("checksum_tree", path="d0")) == 2


# ---- detect_project ----


def test_a_project_says_what_it_is_made_with(room: Room) -> None:
    room.file("go.mod", "module x\n")
    room.file(".golangci.yml")
    found = room.json("detect_project")
    assert found["languages"] == ["Go"]
    assert (found["build_tool"], found["test_command"]) == ("go build ./...", "go test ./...")
    assert found["linter"] == "golangci-lint run"
    scripts = {
        "scripts": {"build": "next build", "test": "jest"},
        "dependencies": {"next": "1", "react": "1"},
    }
    room.file("web/package.json", json.dumps(scripts))
    room.file("web/tsconfig.json", "{}")
    room.file("web/pnpm-lock.yaml")
    found = room.json("detect_project", path="web")
    assert found["languages"] == ["TypeScript"]
    assert (found["build_tool"], found["test_command"]) == ("pnpm run build", "pnpm run test")
    assert found["frameworks"] == ["Next.js", "React"]
    room.file("py/pyproject.toml", '[project]\ndependencies = ["fastapi"]\n[tool.ruff]\n')
    found = room.json("detect_project", path="py")
    assert (found["languages"], found["linter"], found["frameworks"]) == (
        ["Python"],
        "ruff check .",
        ["FastAPI"],
    )
    room.file("c/Makefile", "all: x\ntest:\n\techo\nlint:\n\techo\n")
    found = room.json("detect_project", path="c")
    assert (found["build_tool"], found["test_command"], found["linter"]) == ("", "make test", "make lint")
    room.file("odd/package.json", "[1")
    room.file("odd/pyproject.toml", "= =")
    assert room.json("detect_project", path="odd")["config_files"] == ["package.json", "pyproject.toml"]


# ---- one layer for all ----


@case("jinn-77")
@pytest.mark.parametrize("name", SENSITIVE)
def test_no_tool_shows_names_hashes_or_contents_of_sensitive_files(room: Room, name: str) -> None:
    room.file(name, "the-secret\n")
    room.file("plain", "the-secret\n")
    shown = [
        room.text("find_files", pattern="*"),
        room.text("list_dir", depth=10),
        room.text("checksum_tree"),
        room.text("search_files", pattern="the-secret"),
        room.text("detect_project"),
    ]
    assert not any(name in text for text in shown)
    assert all("plain" in text for text in shown[:4])
    for tool, args in (
        ("stat_file", {"path": name}),
        ("diff_files", {"path_a": "plain", "path_b": name}),
        ("diff_files", {"path_a": name, "path_b": "plain"}),
        ("list_dir", {"path": name}),
        ("checksum_tree", {"path": name}),
        ("find_files", {"pattern": "*", "path": name}),
        ("detect_project", {"path": name}),
    ):
        assert room.refused(tool, **args) == ("path_outside_sandbox", f"blocked: sensitive path: {name}")


def test_no_tool_leaves_the_workspace(room: Room, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    os.symlink(tmp_path / "outside", room.root / "link")
    room.file("plain")
    for path in ("..", "../..", str(tmp_path), "link", "link/secret", "~", "/etc/passwd", "sub/../../x"):
        for tool, args in (
            ("search_files", {"pattern": "x", "path": path}),
            ("find_files", {"pattern": "*", "path": path}),
            ("list_dir", {"path": path}),
            ("stat_file", {"path": path}),
            ("diff_files", {"path_a": path, "path_b": "plain"}),
            ("checksum_tree", {"path": path}),
            ("detect_project", {"path": path}),
        ):
            assert room.refused(tool, **args)[0] == "path_outside_sandbox", (tool, path)
    for path in ("", "a\0b"):
        assert room.refused("stat_file", path=path)[0] == "invalid_args"
