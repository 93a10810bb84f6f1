"""apply_patch and search_replace."""

from __future__ import annotations

import threading

import pytest

from cases import case
from corral.tools.call import Cancel
from tools.room import Room


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@case("jinn-68")
def test_files_are_added_deleted_and_updated_in_one_go(room: Room) -> None:
    room.file("old", "x\n")
    room.file("f", "one\ntwo\nthree\n")
    response = room.call(
        "apply_patch",
        patch=patch(
            "*** Add File: new/g",
            "+hello",
            "+",
            "*** Delete File: old",
            "*** Update File: f",
            "@@ one",
            "-two",
            "+2",
            " three",
        ),
    )
    assert response["result"] == "applied patch with 3 operation(s):\n  A new/g\n  D old\n  M f"
    assert (room.root / "new/g").read_text() == "hello\n\n"
    assert not (room.root / "old").exists()
    assert (room.root / "f").read_text() == "one\n2\nthree\n"
    assert len(response["meta"]["undo"]) == 3


UPDATES = [
    # before, lines of the update, after
    (b"a\r\nb\r\nc\r\n", [" a", "-b", "+B", "+B2", " c"], b"a\r\nB\r\nB2\r\nc\r\n"),
    (b"a\r\nb\nc", ["-b", "+x", " c", "+d"], b"a\r\nx\nc\nd"),
    (b"\xef\xbb\xbfa\nb\n", ["-a", "+x"], b"\xef\xbb\xbfx\nb\n"),
    (b"a\nb", ["-b", "+x"], b"a\nx"),
    (b"a\nb\n", ["-b"], b"a\n"),
    (b"a  \nb\n", [" a", "-b", "+x"], b"a  \nx\n"),
    ("“q”\nb\n".encode(), [' "q"', "-b", "+x"], "“q”\nx\n".encode()),
    (b"    a\n  b\n", [" a", "-b", "+  x"], b"    a\n  x\n"),
    (b"x\nx\n", ["@@", "-x", "+y", "*** End of File"], b"x\ny\n"),
    (b"f\nx\ng\nx\n", ["@@ g", "-x", "+y"], b"f\nx\ng\ny\n"),
    (b"f\nx\ng\nx\n", ["@@ g", " g", "-x", "+y"], b"f\nx\ng\ny\n"),
    (b"c\nm\nx\nc\nm\nx\n", ["@@ c", "@@ c", "@@ m", "-x", "+y"], b"c\nm\nx\nc\nm\ny\n"),
    (b"a\nb\nc\nd\n", ["-a", "+A", "@@", "-d", "+D"], b"A\nb\nc\nD\n"),
    (b"a\nb\n", ["@@ a", "+new"], b"a\nnew\nb\n"),
    (b"a\nb", ["+end"], b"a\nb\nend"),
    (b"a\n\nb\n", [" a", "", "-b", "+x"], b"a\n\nx\n"),
    (b"\xff a\nb\n", ["-b", "+x"], b"\xff a\nx\n"),
]


@case("jinn-68")
@pytest.mark.parametrize(("before", "lines", "after"), UPDATES)
def test_lines_that_stay_keep_every_byte(room: Room, before: bytes, lines: list[str], after: bytes) -> None:
    target = room.file("f", before)
    response = room.call("apply_patch", patch=patch("*** Update File: f", *lines))
    assert response["ok"], response
    assert target.read_bytes() == after


@case("jinn-68")
@pytest.mark.parametrize(
    ("lines", "code", "error"),
    [
        (["*** Add File: f", "+x"], "conflict", "f exists; update it"),
        (["*** Delete File: none"], "file_not_found", "file not found: none"),
        (["*** Update File: none", "-a", "+b"], "file_not_found", "file not found: none"),
        (
            ["*** Update File: f", "*** Move to: g", "-a", "+b"],
            "invalid_args",
            "f: a patch cannot move files",
        ),
        (["*** Update File: f", "-zzz", "+b"], "edit_not_found", "f: hunk 1 does not fit"),
        (["*** Update File: f", "@@ zzz", "-a", "+b"], "edit_not_found", "f: hunk 1: no line 'zzz'"),
        (["*** Update File: f", " a"], "edit_no_change", "f: the update changes nothing"),
        (["*** Update File: f"], "invalid_args", "f: an update without changes"),
        (["*** Update File: f", "?"], "invalid_args", "line 3 of the patch: '?' does not begin with"),
        (["*** Add File: g", "x"], "invalid_args", "line 3 of the patch: 'x' does not begin with +"),
        (["*** Delete File: f", "x"], "invalid_args", "line 3 of the patch: a file that is deleted"),
        (
            ["*** Rename File: f"],
            "invalid_args",
            "line 2 of the patch: '*** Rename File: f' is no file header",
        ),
        (["*** Add File:  "], "invalid_args", "line 2 of the patch names no file"),
        (["*** Add File: .env", "+x"], "path_outside_sandbox", "blocked: sensitive path: .env"),
        (["*** Add File: ../x", "+x"], "path_outside_sandbox", "blocked: ../x is outside"),
        (["*** Delete File: f", "*** Add File: ./f", "+x"], "invalid_args", "./f is in the patch twice"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(
    room: Room, lines: list[str], code: str, error: str
) -> None:
    room.file("f", "a\n")
    refused = room.refused("apply_patch", patch=patch(*lines, "*** Add File: beside", "+x"))
    assert refused[0] == code
    assert refused[1].startswith(error)
    assert (room.root / "f").read_text() == "a\n"
    assert not (room.root / "beside").exists()


def test_a_patch_has_a_beginning_and_an_end(room: Room) -> None:
    assert room.refused("apply_patch", patch="x")[1] == "a patch begins with *** Begin Patch"
    assert room.refused("apply_patch", patch=patch())[1] == "the patch is empty"
    assert room.refused("apply_patch", patch="*** Begin Patch\n*** Delete File: f")[1] == (
        "a patch ends with *** End Patch"
    )


# ---- regular expressions ----


@case("jinn-69")
def test_groups_globs_directories_and_deletion(room: Room) -> None:
    room.file("src/a.py", "foo(1)\nfoo(22)\n")
    room.file("src/deep/b.py", "foo(3)\r\nx\r\n")
    room.file("src/c.txt", "foo(4)\n")
    room.file("src/.env", "foo(5)\n")
    response = room.call(
        "search_replace", pattern=r"foo\((\d+)\)", replacement="bar[$1]", files="src", include="*.py"
    )
    assert response["result"] == (
        "replaced 3 matches across 2 files:\n  src/a.py: 2 matches\n  src/deep/b.py: 1 matches"
    )
    assert (room.root / "src/a.py").read_text() == "bar[1]\nbar[22]\n"
    assert (room.root / "src/deep/b.py").read_bytes() == b"bar[3]\r\nx\r\n"
    assert response["meta"]["files"][0]["matches"] == 2
    assert room.text(
        "search_replace",
        pattern=r"(?P<name>bar)",
        replacement="${name}$$$name",
        files=["src/*.py", "src/c.txt"],
    ).startswith("replaced 2 matches across 1 files:")
    assert (room.root / "src/a.py").read_text() == "bar$bar[1]\nbar$bar[22]\n"
    assert room.call("search_replace", pattern=r"^foo.*\n", replacement="", files="src/c.txt")["ok"]
    assert (room.root / "src/c.txt").read_text() == ""
    assert (room.root / "src/.env").read_text() == "foo(5)\n"


@case("jinn-69")
def test_line_ends_and_other_bytes_stay(room: Room) -> None:
    target = room.file("f", b"\xef\xbb\xbfa\r\nb\nc\r\n\xff")
    assert room.call("search_replace", pattern=r"^(\w)$", replacement="<$1>", files="f")["ok"]
    assert target.read_bytes() == b"\xef\xbb\xbf<a>\r\n<b>\n<c>\r\n\xff"
    assert room.call("search_replace", pattern=r"<a>\n(<b>\n<c>)", replacement="x\n$1", files="f")["ok"]
    assert target.read_bytes() == b"\xef\xbb\xbfx\r\n<b>\n<c>\r\n\xff"
    assert room.call("search_replace", pattern=r"^", replacement="# ", files="f", multiline=False)["ok"]
    assert target.read_bytes() == b"\xef\xbb\xbf# x\r\n<b>\n<c>\r\n\xff"


@case("jinn-69")
def test_what_cannot_be_replaced(room: Room) -> None:
    room.file("binary", b"foo\0")
    room.file("text", "foo FOO\n")
    response = room.call("search_replace", pattern="foo", replacement="x", files=["binary"])
    assert response["result"] == "no matches found across any target files"
    assert response["meta"]["skipped"] == {"binary": "binary"}
    assert room.text("search_replace", pattern="zzz", replacement="x", files="text") == (
        "no matches found across any target files"
    )
    assert room.refused("search_replace", pattern="(", replacement="x", files="text")[0] == "invalid_regex"
    assert room.refused("search_replace", pattern="x", replacement="$1", files="text") == (
        "invalid_args",
        "the pattern has no group 1",
    )
    assert room.refused("search_replace", pattern="x", replacement="y", files="none")[0] == "file_not_found"
    assert (
        room.refused("search_replace", pattern="x", replacement="y", files=".env")[0]
        == "path_outside_sandbox"
    )
    for number in range(51):
        room.file(f"many/f{number}", "foo\n")
    assert room.refused("search_replace", pattern="foo", replacement="x", files="many") == (
        "invalid_args",
        "more than 50 files",
    )
    with room.file("large").open("wb") as file:
        file.truncate((10 << 20) + 1)
    assert room.refused("search_replace", pattern="x", replacement="y", files="large")[0] == "file_too_large"
    assert room.text(
        "search_replace", pattern="foo", replacement="x", files="text", case_insensitive=True
    ).startswith("replaced 2 matches")


def test_an_expression_that_takes_for_ever_is_ended(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.file("f", "x" * 40 + "\n")
    slow = {"pattern": "(x+x+)+y", "replacement": "", "files": "f"}
    monkeypatch.setattr("corral.tools.search_replace.REPLACE_SECONDS", 0.3)
    assert room.refused("search_replace", **slow)[0] == "timeout"
    monkeypatch.setattr("corral.tools.search_replace.REPLACE_SECONDS", 30)
    cancel = Cancel()
    timer = threading.Timer(0.2, cancel.set)
    timer.start()
    assert room.call("search_replace", cancel=cancel, **slow)["error_code"] == "canceled"
    timer.join()
    assert room.text("search_replace", pattern="(x+x+)+$", replacement="<$1>", files="f").startswith(
        "replaced 1 "
    )
    assert (room.root / "f").read_text() == f"<{'x' * 40}>\n"
