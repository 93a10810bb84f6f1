"""What happens to every tool's text, and what `compress` does to it."""

from __future__ import annotations

import pytest

from cases import case
from corral.tools.arguments import Arguments
from corral.tools.call import Call
from corral.tools.compressing import compressed
from corral.tools.reply import Reply
from corral.tools.text import tidy
from corral.tools.tool import Tool
from tools.room import Room


@case("jinn-87")
@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        (
            "a fairly long line\n" * 5 + "end",
            "a fairly long line\n[... 4 identical lines collapsed ...]\nend",
        ),
        ("same\n" * 5 + "end", "same\n" * 5 + "end"),  # it would not get shorter
        ("x" * 100 + "\n" + "x" * 100, "x" * 100 + "\n" + "x" * 100),  # two are not three
        ("x" * 2000, "x" * 2000),
        ("x" * 2001, "x" * 2000 + "..."),
        ("é" * 2001 + "\nb", "é" * 2000 + "...\nb"),
        ("\n" * 100, "\n[... 100 identical lines collapsed ...]"),
        ("", ""),
    ],
)
def test_long_lines_are_cut_and_repeated_ones_told_in_one(text: str, tidied: str) -> None:
    assert tidy(text) == tidied


def test_every_tools_text_is_treated_so(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.tools import registry

    def says(_call: Call, _args: Arguments) -> Reply:
        return Reply("y" * 2500 + "\n" + "the very same line\n" * 6)

    tool = Tool(name="list_tools", help="", arguments=Arguments, run=says)
    monkeypatch.setitem(registry._loaded, "list_tools", tool)
    assert room.text("list_tools") == (
        "y" * 2000 + "...\nthe very same line\n[... 5 identical lines collapsed ...]\n"
    )


HASHES = ("0123456789abcdef" * 3)[:40], ("fedcba9876543210" * 3)[:40]


def test_compressing_says_what_it_did_and_is_only_done_if_asked_for(room: Room) -> None:
    room.file("f", f"commit {HASHES[0]}\ncommit {HASHES[1]}\n")
    request = {"tool": "read_file", "args": {"path": "f"}}
    assert HASHES[0] in room.engine.call(request)["result"]
    response = room.engine.call({**request, "compress": True})
    assert response["result"] == "1\tcommit 01234567\n2\tcommit fedcba98"
    assert response["meta"]["compressed"] == ["hash_abbrev"]


def test_paths_that_begin_alike_are_told_once_where_they_begin() -> None:
    lines = [f"/a/long/directory/name{part}" for part in ("/x/one.c:1: no", "/two.c", "/y/three.c:7")]
    text, done = compressed("\n".join(lines))
    assert done == ["path_prefix_dedup"]
    assert text == "[cwd: /a/long/directory/name]\nx/one.c:1: no\ntwo.c\ny/three.c:7"
    assert compressed("\n".join(lines[:2])) == ("\n".join(lines[:2]), [])


def test_hashes_that_would_look_alike_stay_whole() -> None:
    alike = f"{HASHES[0]} {HASHES[0][:20]}{HASHES[1][:20]}"
    assert compressed(alike) == (alike, [])
