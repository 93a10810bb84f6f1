"""edit_file and multi_edit: the text that was meant, once, and no other byte."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from corral.tools.edits import Text, apply_edits, find_edit
from corral.tools.failures import Failure
from tools.room import Room


@case("jinn-61")
def test_a_text_that_is_there_once_is_replaced_and_the_lines_are_told(room: Room) -> None:
    room.file("f", "one\ntwo\nthree\nfour\n")
    response = room.call("edit_file", path="f", old_text="two\nthree", new_text="2", show_context=1)
    assert response["result"] == ("edited f: lines 2-3 (2 lines) replaced with 1 line\n1\tone\n2\t2\n3\tfour")
    edit = response["meta"]["edit"]
    assert edit["diff"] == "@@ line 1 @@\n  one\n- two\n- three\n+ 2\n  four"
    assert (edit["firstChangedLine"], edit["lastChangedLine"]) == (2, 2)
    assert (edit["matchType"], edit["fuzzyNormalized"]) == ("exact", False)
    assert (room.root / "f").read_text() == "one\n2\nfour\n"


@case("jinn-61")
def test_a_text_that_is_there_more_than_once_is_refused_with_its_lines(room: Room) -> None:
    room.file("two", "x\ny\nx\n")
    assert room.refused("edit_file", path="two", old_text="x", new_text="z") == (
        "edit_not_unique",
        "old_text found 2 times, at lines 1, 3",
    )
    room.file("many", "x\n" * 15)
    assert room.refused("edit_file", path="many", old_text="x", new_text="z")[1] == (
        "old_text found 15 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ... and 5 more"
    )
    room.file("overlapping", "aaa\n")
    assert room.refused("edit_file", path="overlapping", old_text="aa", new_text="b")[0] == "edit_not_unique"


@case("jinn-62")
def test_what_cannot_be_edited_says_why(room: Room) -> None:
    room.file("f", "alpha\nbeta gamma\ndelta\n")
    assert room.refused("edit_file", path="f", old_text="beta  epsilon", new_text="x") == (
        "edit_not_found",
        "old_text not found; the file has 3 lines, the nearest is line 2: beta gamma",
    )
    assert room.refused("edit_file", path="f", old_text="zzz", new_text="x") == (
        "edit_not_found",
        "old_text not found; the file has 3 lines",
    )
    assert room.refused("edit_file", path="f", old_text="", new_text="x")[0] == "old_text_empty"
    assert room.refused("edit_file", path="f", old_text="beta", new_text="beta")[0] == "edit_no_change"
    assert room.refused("edit_file", path="none", old_text="a", new_text="b") == (
        "file_not_found",
        "file not found: none",
    )
    room.file("binary", b"a\0b")
    assert room.refused("edit_file", path="binary", old_text="a", new_text="b")[0] == "binary_file"


BYTES = [
    # what is there, the old text, the new text, what is there then
    (b"a\r\nb\r\nc\r\n", "b", "B\nB2", b"a\r\nB\r\nB2\r\nc\r\n"),
    (b"a\r\nb\r\nc\r\n", "a\nb", "a\nx", b"a\r\nx\r\nc\r\n"),
    (b"a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nx", b"a\r\nx\r\nc\r\n"),
    (b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    (b"a\r\nb\r\nc\r\n", "\nb", "", b"a\r\nc\r\n"),
    (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nX\nd", b"a\r\nb\nX\r\nd\n"),
    (b"a\nb\r\nc", "c", "c\nd", b"a\nb\r\nc\r\nd"),
    (b"a\nb\n", "a\nb", "a\r\nb", b"a\r\nb\n"),
    (b"\xef\xbb\xbfa\r\nb\r\n", "a", "x", b"\xef\xbb\xbfx\r\nb\r\n"),
    (b"\xef\xbb\xbfa\n", "\ufeffa", "x", b"\xef\xbb\xbfx\n"),
    (b"\xff\xfe a \x80\nb\n", "b", "c", b"\xff\xfe a \x80\nc\n"),
    (b"no end", "end", "newline", b"no newline"),
    (b"a \t\nb  \n", "b", "c", b"a \t\nc  \n"),
    (b"x\r\ry\n", "y", "z", b"x\r\rz\n"),
    (b"form\x0cfeed\x1c\xe2\x80\xa8 a\r\nb", "b", "c", b"form\x0cfeed\x1c\xe2\x80\xa8 a\r\nc"),
]


@case("jinn-63")
@pytest.mark.parametrize(("before", "old", "new", "after"), BYTES)
def test_line_ends_the_mark_at_the_start_and_all_other_bytes_stay(
    room: Room, before: bytes, old: str, new: str, after: bytes
) -> None:
    target = room.file("f", before)
    response = room.call("edit_file", path="f", old_text=old, new_text=new)
    assert response["ok"], response
    assert response["meta"]["edit"]["matchType"] == "exact"
    assert target.read_bytes() == after


FUZZY = [
    # curly quotes stay where they were not asked to change
    ("“a” ‘b’\nx\n“c”\n", "\"a\" 'b'\nx", "\"a\" 'b'\ny", "“a” ‘b’\ny\n“c”\n"),
    ("say(“a”, 1)  \nend \n", 'say("a", 1)\nend', 'say("a", 2)\nend', "say(“a”, 2)  \nend \n"),
    # where quotes change, the line is as it was asked for, both of a pair
    ("say(“a”)\n", 'say("a")', "say('a')", "say('a')\n"),
    ("a — b\nkeep – this\n", "a - b", "a - c", "a — c\nkeep – this\n"),
    ("a\u00a0b\nc  \nd\t\n", "a b\nc\n", "a b\nC\n", "a\u00a0b\nC  \nd\t\n"),
    ("a  \r\nb \r\nc\r\n", "a\nb", "a\nnew\nb", "a  \r\nnew\r\nb \r\nc\r\n"),
    ("keep  \nx “1”\n", 'x "1"  ', "y", "keep  \ny\n"),
]


@case("jinn-64")
@pytest.mark.parametrize(("before", "old", "new", "after"), FUZZY)
def test_a_looser_match_is_told_and_touches_only_what_changes(
    room: Room, before: str, old: str, new: str, after: str
) -> None:
    target = room.file("f", before)
    response = room.call("edit_file", path="f", old_text=old, new_text=new)
    assert response["ok"], response
    assert (response["meta"]["edit"]["matchType"], response["meta"]["edit"]["fuzzyNormalized"]) == (
        "fuzzy",
        True,
    )
    assert target.read_bytes() == after.encode()


@case("jinn-64")
def test_a_looser_match_must_be_the_only_one(room: Room) -> None:
    room.file("f", "“a”\n‘b’\n„a“\n")
    assert room.refused("edit_file", path="f", old_text='"a"', new_text="x")[0] == "edit_not_unique"


@case("jinn-65")
@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "def f():\n        if x:\n            y()\n        z()\n",
            "if x:\n    y()",
            "if x:\n    y()\n    w()",
            "def f():\n        if x:\n            y()\n            w()\n        z()\n",
        ),
        (
            "\tif x {\r\n\t\ty()\r\n\t}\r\n",
            "if x {\n\ty()\n}",
            "if z {\n\ty()\n}",
            "\tif z {\r\n\t\ty()\r\n\t}\r\n",
        ),
        ("a\n    b\n", "    a\n        b\n", "    a\n\n        c\n", "a\n\n    c\n"),
    ],
)
def test_new_lines_are_indented_like_those_that_were_found(
    room: Room, before: str, old: str, new: str, after: str
) -> None:
    target = room.file("f", before)
    assert room.refused("edit_file", path="f", old_text=old, new_text=new)[0] == "edit_not_found"
    response = room.call("edit_file", path="f", old_text=old, new_text=new, fuzzy_indent=True)
    assert response["meta"]["edit"]["matchType"] == "fuzzy"
    assert target.read_bytes() == after.encode()


@settings(max_examples=300, deadline=None)
@given(
    st.text(alphabet="ab \t\r\n“\"'’-—\ud800"[:12], max_size=40),
    st.text(alphabet="ab \n\"'-", min_size=1, max_size=6),
    st.text(alphabet="ab \n\"'-", max_size=6),
)
def test_all_before_and_behind_the_edit_stays_whatever_the_text_is(before: str, old: str, new: str) -> None:
    content = before.encode()
    text = Text(content)
    assert text.encode(text.text) == content
    try:
        edit = find_edit(text, old, new)
    except Failure:
        return
    after = apply_edits(text, [edit])
    assert after.startswith(text.text[: edit.start])
    assert after.endswith(text.text[edit.end :])
    if "\r" not in before and edit.how == "exact":
        assert after == text.text[: edit.start] + new + text.text[edit.end :]


# ---- many edits ----


def change(path: str, old: str, new: str, **more: object) -> dict[str, object]:
    return {"path": path, "old_text": old, "new_text": new, **more}


@case("jinn-66")
def test_many_edits_land_together_in_any_order(room: Room) -> None:
    room.file("a", "1\n2\n3\n4\n")
    room.file("b", "x\r\ny\r\n")
    response = room.call(
        "multi_edit",
        edits=[
            change("a", "3", "three"),
            change("./a", "1", "one"),
            change("b", "x", "X"),
            change("a", "3", "three"),
        ],
    )
    assert response["result"] == (
        "applied 3 edits:\n"
        "  [0] a: lines 3-3 (1 line) replaced with 1 line\n"
        "  [1] a: lines 1-1 (1 line) replaced with 1 line\n"
        "  [2] b: lines 1-1 (1 line) replaced with 1 line"
    )
    assert (room.root / "a").read_text() == "one\n2\nthree\n4\n"
    assert (room.root / "b").read_bytes() == b"X\r\ny\r\n"


@case("jinn-66")
def test_one_bad_edit_and_nothing_is_written(room: Room) -> None:
    room.file("a", "1\n2\n3\n")
    room.file("b", "x\n")
    response = room.call(
        "multi_edit",
        edits=[
            change("a", "1", "one"),
            change("a", "9", "nine"),
            change("none", "x", "y"),
            change("b", "x", "y"),
        ],
    )
    assert response["error"].split("\n") == [
        "2 of 4 edits failed validation:",
        "  [1] a: old_text not found; the file has 3 lines",
        "  [2] none: file not found: none",
    ]
    assert [one["index"] for one in response["meta"]["failed"]] == [1, 2]
    assert room.refused("multi_edit", edits=[change("a", "1\n2", "x"), change("a", "2\n3", "y")]) == (
        "edit_overlap",
        "1 of 2 edits failed validation:\n  [1] a: overlaps with edit 0",
    )
    assert (room.root / "a").read_text() == "1\n2\n3\n"
    assert (room.root / "b").read_text() == "x\n"
    assert room.json("undo", action="list")["count"] == 0


@case("jinn-66")
def test_one_file_that_was_changed_meanwhile_and_nothing_is_written(room: Room) -> None:
    room.file("a", "1\n")
    stale = room.file("b", "x\n")
    room.text("read_file", path="b")
    stale.write_text("theirs x\n")
    os.utime(stale, ns=(0, 0))
    code, error = room.refused("multi_edit", edits=[change("a", "1", "one"), change("b", "x", "y")])
    assert code == "stale_file"
    assert "Re-read before writing: b" in error
    assert (room.root / "a").read_text() == "1\n"


@case("jinn-67")
@pytest.mark.parametrize("path", [".env", "../outside", "/etc/passwd", ".git/config"])
def test_a_forbidden_path_among_many_and_nothing_is_written(room: Room, path: str) -> None:
    room.file("a", "1\n")
    assert room.refused("multi_edit", edits=[change("a", "1", "2"), change(path, "x", "y")])[0] == (
        "path_outside_sandbox"
    )
    assert (room.root / "a").read_text() == "1\n"
