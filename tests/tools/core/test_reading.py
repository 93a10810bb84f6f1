"""read_file and multi_read: windows, what is cut and how that is said, images and other kinds of files."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from cases import case
from corral.tools.limits import MB
from tools.room import Room

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def numbered(first: int, last: int) -> str:
    return "".join(f"l{number}\n" for number in range(first, last + 1))


def shown_numbers(text: str) -> list[int]:
    return [int(line.split("\t")[0]) for line in text.split("\n") if "\t" in line]


@case("jinn-37", "jinn-38")
def test_more_than_2000_lines_are_cut_and_the_hint_leads_on(room: Room) -> None:
    room.file("f", numbered(1, 5000))
    response = room.call("read_file", path="f")
    lines = response["result"].split("\n")
    assert lines[0] == "   1\tl1"
    assert lines[1999] == "2000\tl2000"
    assert lines[2000:] == [
        "[Showing lines 1-2000 of 5000. Use start_line=2001 to continue. Remainder saved to f.]"
    ]
    assert response["meta"]["truncation"] == {"truncated": True, "totalLines": 5000, "outputLines": 2000}
    room.file("exact", numbered(1, 2000))
    exact = room.call("read_file", path="exact")
    assert "meta" not in exact
    assert exact["result"].endswith("\n2000\tl2000")
    room.file("more", numbered(1, 2001))
    assert room.call("read_file", path="more")["meta"]["truncation"]["outputLines"] == 2000


def test_following_the_hints_gives_every_line_once(room: Room) -> None:
    room.file("dir/f", numbered(1, 4567))
    seen: list[int] = []
    path, start = "dir/f", 1
    while True:
        text = room.text("read_file", path=path, start_line=start)
        seen += shown_numbers(text)
        hint = re.search(r"Use start_line=(\d+) to continue\. Remainder saved to (.*)\.\]$", text)
        if hint is None:
            break
        start, path = int(hint[1]), hint[2]
    assert seen == list(range(1, 4568))


@case("jinn-39", "jinn-40", "jinn-41", "jinn-42")
def test_a_window_is_what_was_asked_for(room: Room) -> None:
    room.file("f", numbered(1, 120))
    assert room.text("read_file", path="f", start_line=10, end_line=12) == (
        "10\tl10\n11\tl11\n12\tl12\n"
        "[Showing lines 10-12 of 120. Use start_line=13 to continue. Remainder saved to f.]"
    )
    assert "meta" not in room.call("read_file", path="f", start_line=10, end_line=12)
    assert room.text("read_file", path="f", tail=3, start_line=5) == "118\tl118\n119\tl119\n120\tl120"
    assert room.text("read_file", path="f", start_line=99, end_line=100).startswith(" 99\tl99\n100\tl100")
    assert room.text("read_file", path="f", start_line=120) == "120\tl120"
    assert room.text("read_file", path="f", tail=500) == room.text("read_file", path="f")
    assert room.refused("read_file", path="f", start_line=121) == (
        "invalid_args",
        "file has 120 lines, start_line 121 is past end",
    )
    assert room.refused("read_file", path="f", start_line=5, end_line=4)[0] == "invalid_args"
    assert room.text("read_file", path="f", line_numbers=False) == numbered(1, 120)
    assert room.text("read_file", path="f", line_numbers=False, start_line=119) == "l119\nl120\n"


@case("jinn-43")
def test_an_unknown_way_to_cut_is_refused_and_the_known_ones_are_named(room: Room) -> None:
    room.file("f", "x\n")
    assert room.refused("read_file", path="f", truncate="bogus") == (
        "invalid_args",
        "truncate must be one of head, tail, middle, none, smart, not 'bogus'",
    )


@case("jinn-44")
@pytest.mark.parametrize("window", [{}, {"start_line": 1, "end_line": 5000}])
def test_the_middle_is_left_out(room: Room, window: dict[str, int]) -> None:
    room.file("f", numbered(1, 5000))
    response = room.call("read_file", path="f", truncate="middle", **window)
    assert shown_numbers(response["result"]) == [*range(1, 501), *range(4501, 5001)]
    assert response["meta"]["truncation"] == {"truncated": True, "totalLines": 5000, "outputLines": 1000}
    assert "[truncated: showing first 500 and last 500 of 5000 lines — use start_line=501 to continue]" in (
        response["result"].split("\n")
    )


def test_each_way_to_cut_says_what_is_shown(room: Room) -> None:
    room.file("f", numbered(1, 5000))
    tail = room.text("read_file", path="f", truncate="tail")
    assert shown_numbers(tail) == [*range(3001, 5001)]
    assert tail.endswith("\n[truncated: showing last 2000 of 5000 lines]")
    head = room.text("read_file", path="f", start_line=101, end_line=3000)
    assert shown_numbers(head) == [*range(101, 2101)]
    assert head.endswith("\n[truncated: showing first 2000 of 2900 lines — use start_line=2101 to continue]")
    assert shown_numbers(room.text("read_file", path="f", truncate="none")) == [*range(1, 5001)]
    assert shown_numbers(room.text("read_file", path="f", tail=2500, truncate="tail")) == [*range(3001, 5001)]


BLOCK = 'func f() {\n\ts := "}" // {\n\tt := `{` /* } */\n}\n'


@case("jinn-45")
def test_smart_never_cuts_inside_a_block(room: Room) -> None:
    room.file("f.go", BLOCK * 600 + "tail\n")
    smart = room.call("read_file", path="f.go", truncate="smart")
    assert smart["meta"]["truncation"]["outputLines"] == 2000
    room.file("g.go", "package x\n" + BLOCK * 600)
    text = room.text("read_file", path="g.go", truncate="smart")
    assert shown_numbers(text) == [*range(1, 1998)]
    assert "Showing lines 1-1997 of 2401. Use start_line=1998" in text
    room.file("open.go", "func f() {\n" + "".join(f"\tx({number})\n" for number in range(3000)))
    assert shown_numbers(room.text("read_file", path="open.go", truncate="smart")) == [*range(1, 2001)]
    room.file("f.py", "package x\n" + BLOCK * 600)
    assert shown_numbers(room.text("read_file", path="f.py", truncate="smart")) == [*range(1, 2001)]


@case("jinn-46")
def test_an_answer_holds_50_kb_of_whole_lines(room: Room) -> None:
    room.file("f", "".join(f"{number:>099}\n" for number in range(1000)))
    for truncate in ("head", "none"):
        response = room.call("read_file", path="f", truncate=truncate)
        assert shown_numbers(response["result"]) == [*range(1, 513)]
        assert "Showing lines 1-512 of 1000. Use start_line=513" in response["result"]
    assert shown_numbers(room.text("read_file", path="f", truncate="tail")) == [*range(489, 1001)]
    middle = shown_numbers(room.text("read_file", path="f", truncate="middle"))
    assert middle == [*range(1, 257), *range(745, 1001)]
    room.file("long", "x" * 60_000 + "\nshort\n")
    response = room.call("read_file", path="long")
    assert response["result"].startswith("[Line 1 has 60000 bytes, more than the 50 KB of one answer.")
    assert "Use start_line=2 to continue" in response["result"]
    assert response["meta"]["truncation"]["outputLines"] == 0
    assert room.text("read_file", path="long", start_line=2) == "2\tshort"


@case("jinn-47")
def test_a_file_of_more_than_50_mb_is_too_large(room: Room) -> None:
    with room.file("large").open("wb") as file:
        file.truncate(51 * MB)
    assert room.refused("read_file", path="large") == ("file_too_large", "file too large: 51 MB (max 50 MB)")


@case("jinn-48")
def test_an_image_is_told_by_its_content(room: Room) -> None:
    room.file("picture", PNG)
    room.file("drawing.svg", "<svg/>")
    room.file("text.png", "just text\n")
    response = room.call("read_file", path="picture", include_checksum=True)
    assert response["content"] == [
        {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    ]
    assert response["meta"]["sha256"] == hashlib.sha256(PNG).hexdigest()
    assert "result" not in response
    assert room.call("read_file", path="drawing.svg")["content"][0]["mimeType"] == "image/svg+xml"
    assert room.text("read_file", path="text.png") == "1\tjust text"


@case("jinn-49")
def test_a_pdf_is_refused_with_what_to_do(room: Room) -> None:
    room.file("by-content", "%PDF-1.7 …")
    room.file("by-name.pdf", "x")
    for path in ("by-content", "by-name.pdf"):
        response = room.call("read_file", path=path)
        assert (response["ok"], response["error_code"]) == (False, "binary_file")
        assert response["error"] == "pdf extraction not supported in zero-dep mode"
        assert response["suggestion"] == (
            "convert the PDF to text first (pdftotext, pdftk, or a cloud OCR service) and read the text file"
        )


@case("jinn-50")
def test_a_binary_file_is_answered_by_its_size(room: Room) -> None:
    room.file("b", b"a\0" + b"x" * 98)
    assert room.text("read_file", path="b") == (
        "[binary file: 100 bytes — use checksum_tree for integrity or skip content reads]"
    )


@case("jinn-51")
def test_a_checksum_is_of_the_whole_file_and_saves_reading_it_again(room: Room) -> None:
    content = numbered(1, 3000)
    room.file("f", content)
    checksum = hashlib.sha256(content.encode()).hexdigest()
    assert room.call("read_file", path="f", tail=1, include_checksum=True)["meta"]["sha256"] == checksum
    for known in (checksum, checksum.upper()):
        assert room.json("read_file", path="f", if_checksum=known) == {
            "unchanged": True,
            "path": "f",
            "checksum": checksum,
        }
    assert room.text("read_file", path="f", tail=1, if_checksum="0" * 64) == "3000\tl3000"


@case("jinn-52")
def test_an_empty_file_has_no_lines(room: Room) -> None:
    room.file("empty")
    assert room.call("read_file", path="empty") == {"ok": True}
    assert room.call("read_file", path="empty", tail=3) == {"ok": True}


def test_long_and_repeated_lines_are_cut_and_the_numbers_stay_true(room: Room) -> None:
    room.file("f", "x" * 3000 + "\n" + "the same line\n" * 9 + "end\n" + "short\n" * 5 + "é" * 2001 + "\n")
    assert room.text("read_file", path="f").split("\n") == [
        " 1\t" + "x" * 2000 + "...",
        " 2\tthe same line",
        "[... 8 identical lines collapsed ...]",
        "11\tend",
        *(f"{number}\tshort" for number in range(12, 17)),
        "17\t" + "é" * 2000 + "...",
    ]
    whole = room.text("read_file", path="f", truncate="none")
    assert shown_numbers(whole) == [*range(1, 18)]
    assert "..." not in whole


def test_other_bytes_and_line_ends_are_shown(room: Room) -> None:
    room.file("f", b"\xef\xbb\xbfone\r\ntw\xffo")
    assert room.text("read_file", path="f") == "1\tone\r\n2\ttw\ufffdo"


# ---- several files ----


def test_several_files_are_read_at_once_and_errors_are_told_by_file(room: Room) -> None:
    room.file("a", "x\n")
    room.file("b", numbered(1, 3000))
    room.file("p", PNG)
    told = room.json(
        "multi_read",
        files=[{"path": "a"}, {"path": "b"}, {"path": "b", "tail": 1}, {"path": "p"}, {"path": ".env"}],
    )
    assert told["files"]["a"] == "1\tx"
    assert told["files"]["b#2"] == "3000\tl3000"
    assert told["truncation"] == {"b": {"truncated": True, "totalLines": 3000, "outputLines": 2000}}
    assert told["errors"]["p"]["error_code"] == "binary_file"
    assert told["errors"][".env"] == {
        "error": "blocked: sensitive path: .env",
        "error_code": "path_outside_sandbox",
    }
    assert told["truncated_global"] is False
    assert room.refused("multi_read", files=[{"path": "no"}, {"path": "none"}]) == (
        "file_not_found",
        "all 2 files failed",
    )
    assert room.refused("multi_read", files=[{"path": "a"}] * 21)[0] == "invalid_args"


def test_one_answer_holds_512_kb_of_files(room: Room) -> None:
    files = []
    for number in range(15):
        room.file(f"f{number}", "".join(f"{line:>099}\n" for line in range(500)))
        files.append({"path": f"f{number}"})
    told = room.json("multi_read", files=files)
    assert told["truncated_global"] is True
    assert len(told["files"]) == 10
    assert {error["error_code"] for error in told["errors"].values()} == {"global_cap_exceeded"}
    assert len(told["errors"]) == 5
