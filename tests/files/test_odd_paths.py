"""Paths that name nothing, what is no file, odd names, long ones, other spellings, and the roots."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from cases import case
from corral.environment.files import FileHalf
from corral.errors import (
    BadPath,
    CorralError,
    NotAFile,
    PolicyError,
    SensitivePath,
)
from corral.paths.roots import hold_roots
from files.ways import OPERATIONS
from files.yard import Yard, names_below
from leaks import no_leaks

pytestmark = pytest.mark.jail

AT_ONCE = 0.25


@case("jinn-31", "jinn-32")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_empty_path_and_a_nul_are_clean_errors(yard: Yard, operation: str) -> None:
    yard.file("plain")
    files = yard.files()
    with no_leaks(yard.root.parent):
        for path in ("", "a\0b", "\0", "\ud800"):
            with pytest.raises(BadPath) as caught:
                OPERATIONS[operation](files, path)
            assert isinstance(caught.value, ValueError)


@case("jinn-33", "jinn-34")
@pytest.mark.parametrize("kind", ["directory", "fifo", "socket", "device"])
def test_what_is_no_file_is_refused_at_once(yard: Yard, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = yard.root / "x"
    held: list[socket.socket] = []
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        held.append(socket.socket(socket.AF_UNIX))
        monkeypatch.chdir(yard.root)
        held[0].bind("x")
    files = yard.files()
    if kind == "device":
        files, path = FileHalf([yard.anchor(Path("/dev"))], files._access.rules.policy), Path("/dev/zero")
    for action in (
        files.read_bytes,
        files.open,
        lambda p: files.write_file(p, "x"),
        lambda p: files.open(p, "w"),
    ):
        started = time.perf_counter()
        with pytest.raises(NotAFile, match="not a regular file") as caught:
            action(path.name)
        assert time.perf_counter() - started < AT_ONCE
        assert isinstance(caught.value, IsADirectoryError) == (kind == "directory")
        assert caught.value.path == path.name
    assert path.exists()
    for each in held:
        each.close()


def test_odd_names_live_through_everything(yard: Yard) -> None:
    files = yard.files()
    names = [
        "new\nline",
        "\x1b[31mred",
        os.fsdecode(b"\xff\xfe"),
        "-rf",
        "--help",
        "a b",
        "*",
        "[x]",
        "é",
        "x" * 255,
    ]
    for name in names:
        files.write_file(f"d/{name}", name.encode(errors="surrogateescape"))
    assert [entry.name for entry in files.list_dir("d")] == sorted(names)
    assert files.glob("d/*") == sorted(f"d/{name}" for name in names)
    for name in names:
        assert files.read_bytes(f"d/{name}") == name.encode(errors="surrogateescape")
        files.rename(f"d/{name}", "moved")
        files.rename("moved", f"d/{name}")
        files.remove_file(f"d/{name}")
    assert names_below(yard.root) == ["d"]


@pytest.mark.parametrize("path", ["x" * 256, "x" * 4096, "x/" * 2048 + "x", "x/" * 100_000])
def test_a_path_that_is_too_long_is_a_clean_error(yard: Yard, path: str) -> None:
    files = yard.files()
    for action in (files.read_bytes, lambda p: files.write_file(p, "x"), files.stat, files.remove_file):
        started = time.perf_counter()
        with pytest.raises(OSError, match=r"too long|No such") as caught:
            action(path)
        assert not isinstance(caught.value, CorralError)
        assert time.perf_counter() - started < AT_ONCE
    assert names_below(yard.root) == []


@case("rubino-40")
def test_a_missing_root_is_refused_and_the_same_one_is_held_once(yard: Yard) -> None:
    alias = yard.root.with_name("alias")
    alias.symlink_to(yard.root)
    with no_leaks(), pytest.raises(PolicyError, match="No such file"):
        hold_roots([str(yard.root), str(yard.root / "missing")])
    with no_leaks(), pytest.raises(PolicyError, match="Not a directory"):
        hold_roots([str(yard.root), str(yard.outside / "secret")])
    anchors = hold_roots([str(yard.root), str(alias), str(yard.outside), f"{yard.root}/."])
    assert [anchor.path for anchor in anchors] == [str(yard.root), str(yard.outside)]
    for anchor in anchors:
        anchor.close()


def test_where_cases_are_one_so_are_sensitive_names(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told that the file system folds cases: no kernel that the tests run on has one that does."""
    spellings = [
        ".GIT/config",
        ".Env",
        ".ENV.local",
        "a/.sSh/x",
        "git~1/config",
        ".git. ",
        ".g\u200cit",
        ".git::$DATA",
    ]
    files = yard.files()
    for path in spellings:
        files.write_file(path, "x")  # here they are names like any other
        assert files.read_file(path) == "x"
    monkeypatch.setattr("corral.files.rules.folds_case", lambda _: True)
    for path in spellings:
        for look in (files.read_bytes, files.stat, lambda p: files.write_file(p, "y"), files.make_dir):
            with pytest.raises(SensitivePath):
                look(path)
    assert files.glob("**") == ["a"]
    files.write_file("Fine~2", "x")
    files.write_file(".GitIgnore", "x")


def test_a_file_system_is_asked_whether_it_folds_cases(tmp_path: Path) -> None:
    from corral.paths.sensitive import folds_case

    fd = os.open(tmp_path, os.O_PATH)
    (tmp_path / "x").touch()
    assert folds_case(fd) == (tmp_path / "X").exists()
    os.close(fd)
