"""search_files: what is found, how it is shown, and what is never found."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import case
from corral.tools import trees
from corral.tools.call import Cancel
from corral.tools.expressions import Expression
from corral.tools.linewise import expression_lines, literal_lines, text_of
from leaks import no_leaks
from tools.room import Room

pytestmark = pytest.mark.jail

SLOW = "(a+)+$"  # doubles its work with every letter
SLOW_TEXT = "a" * 60 + "!\n"


@case("jinn-71")
def test_matches_are_shown_as_text_as_json_and_as_counts(room: Room) -> None:
    room.file("a.py", "one\ndef two():\nthree\n")
    room.file("sub/b.py", "def x():\n    def y():\n")
    assert room.text("search_files", pattern="def ") == (
        "a.py:2:def two():\nsub/b.py:1:def x():\nsub/b.py:2:    def y():"
    )
    assert (
        room.text("search_files", pattern="def ", format="filenames")
        == "a.py: 1 matches\nsub/b.py: 2 matches"
    )
    found = room.json("search_files", pattern=r"d\w+ [xy]", format="json")
    assert found == {
        "results": [
            {"file": "sub/b.py", "line": 1, "column": 1, "text": "def x():"},
            {"file": "sub/b.py", "line": 2, "column": 5, "text": "    def y():"},
        ],
        "truncated": False,
        "total_count": 2,
    }


@case("jinn-71")
def test_a_fixed_text_is_no_expression_and_a_wrong_expression_is_told(room: Room) -> None:
    room.file("a", "x[0] = 1\nX[0] = 2\n")
    assert room.text("search_files", pattern="x[", literal=True) == "a:1:x[0] = 1"
    assert room.text("search_files", pattern="x[", literal=True, case_insensitive=True).count("\n") == 1
    code, error = room.refused("search_files", pattern="x[")
    assert code == "invalid_regex"
    assert error.startswith("invalid regex: ")
    assert "\n" not in error


@case("jinn-71")
def test_context_stands_before_and_after_in_the_order_of_the_file(room: Room) -> None:
    room.file("a", "1\n2\nhit\n4\n5\n6\n7\nhit\n9\n")
    assert room.text("search_files", pattern="hit", context_lines=1) == (
        "a-2-2\na:3:hit\na-4-4\n--\na-7-7\na:8:hit\na-9-9"
    )
    (first, _) = room.json("search_files", pattern="hit", context_lines=2, format="json")["results"]
    assert first["context_before"] == ["1", "2"]
    assert first["context_after"] == ["4", "5"]


@case("jinn-71")
def test_what_is_not_shown_is_counted_all_the_same(room: Room) -> None:
    room.file("a", "hit\n" * 700)
    response = room.call("search_files", pattern="hit", max_matches=3)
    assert response["result"].splitlines()[-1].startswith("[truncated: 3 of 700 matches")
    assert response["meta"]["total_count"] == 700
    assert response["meta"]["truncated"]
    found = room.json("search_files", pattern="hit", format="json", max_matches=5)
    assert (len(found["results"]), found["truncated"], found["total_count"]) == (5, True, 700)
    lines = room.text("search_files", pattern="hit").splitlines()
    assert len(lines) == 100 + 1 + 100 + 1
    assert "300 lines left out" in lines[100]


@case("jinn-71")
def test_no_match_says_why(room: Room) -> None:
    room.file("a", "x\n")
    (room.root / "empty").mkdir()

    def reason(**args: str) -> str:
        return str(room.call("search_files", **args)["meta"]["zero_match_reason"])

    assert reason(pattern="y") == "pattern_matched_nothing"
    assert reason(pattern="y", path="empty") == "path_is_empty_dir"
    assert reason(pattern="y", path="nothing") == "path_not_found"
    assert reason(pattern="(") == "invalid_regex"
    assert (
        room.json("search_files", pattern="y", format="json")["zero_match_reason"]
        == "pattern_matched_nothing"
    )


def test_long_lines_are_cut(room: Room) -> None:
    room.file("a", "x" * 5000 + "\n")
    (match,) = room.json("search_files", pattern="x", format="json")["results"]
    assert match["text"] == "x" * 200 + "..."
    assert room.text("search_files", pattern="x") == ("a:1:" + "x" * 1996 + "...")


def test_a_file_or_a_directory_that_is_named_is_searched_even_if_it_would_be_left_out(room: Room) -> None:
    room.file("node_modules/m/a.js", "hit\n")
    room.file("src/a.js", "hit\n")
    assert room.text("search_files", pattern="hit") == "src/a.js:1:hit"
    assert room.text("search_files", pattern="hit", path="node_modules") == "node_modules/m/a.js:1:hit"
    assert room.text("search_files", pattern="hit", path="src/a.js") == "src/a.js:1:hit"


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("*.{js,ts}", ["src/c.ts", "src/deep/d.js"]),
        ("src/*", ["src/b.py", "src/c.ts"]),
        ("src/**/*.js", ["src/deep/d.js"]),
        ("**/d.js", ["src/deep/d.js"]),
        ("[!a]*", ["src/b.py", "src/c.ts", "src/deep/d.js"]),
    ],
)
def test_include_takes_globs(room: Room, include: str, found: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/c.ts", "src/deep/d.js"):
        room.file(name, "hit\n")
    shown = room.text("search_files", pattern="hit", include=include, format="filenames")
    assert [line.partition(":")[0] for line in shown.splitlines()] == found


def test_binary_files_are_passed_over_and_other_encodings_are_not(room: Room) -> None:
    room.file("binary", b"hit\0hit\n")
    room.file("latin", "caf\xe9 hit\n".encode("latin-1"))
    room.file("crlf", "hit\r\nhit end\r\n")
    response = room.call("search_files", pattern="hit$")
    assert response["result"] == "crlf:1:hit\nlatin:1:caf\ufffd hit"
    assert response["meta"]["binary"] == 1


@case("jinn-73")
@pytest.mark.parametrize(
    "name", [".env", ".env.local", ".ssh/id_rsa", ".git/config", "deep/.aws/credentials"]
)
def test_what_stands_only_in_a_sensitive_file_is_not_found(room: Room, name: str) -> None:
    room.file(name, "the-secret\n")
    room.file("plain", "the-other\n")
    for args in (
        {},
        {"include": os.path.basename(name)},
        {"include": name},
        {"include": "**"},
        {"include": ".*"},
    ):
        for form in ("text", "json", "filenames"):
            response = room.call("search_files", pattern="the-secret", format=form, **args)
            assert response["ok"]
            assert response["meta"]["total_count"] == 0
    assert room.refused("search_files", pattern="the-secret", path=name)[0] == "path_outside_sandbox"
    assert room.text("search_files", pattern="the-other") == "plain:1:the-other"


@case("jinn-73")
def test_another_name_of_a_sensitive_file_is_not_searched(room: Room) -> None:
    room.file(".env", "the-secret\n")
    os.link(room.root / ".env", room.root / "innocent")
    os.symlink(".env", room.root / "link")
    assert room.call("search_files", pattern="the-secret")["meta"]["total_count"] == 0


def test_links_out_fifos_and_sockets_are_not_opened(room: Room, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("hit\n")
    os.symlink(tmp_path / "outside", room.root / "link")
    os.symlink(tmp_path, room.root / "directory")
    os.mkfifo(room.root / "fifo")
    started = time.monotonic()
    assert room.call("search_files", pattern="hit")["meta"]["total_count"] == 0
    assert time.monotonic() - started < 5


# ---- time ----


@case("jinn-72")
def test_a_search_that_takes_too_long_says_so_and_leaves_nothing_running(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.file("a", SLOW_TEXT)
    room.text("stat_file", path="a")  # what is opened once for a room is open
    monkeypatch.setattr(trees, "TREE_SECONDS", 0.3)
    started = time.monotonic()
    with no_leaks():
        code, error = room.refused("search_files", pattern=SLOW)
    assert code == "timeout"
    assert "longer than 0.3 seconds" in error
    assert time.monotonic() - started < 10
    assert room.text("search_files", pattern="a+!") == "a:1:" + SLOW_TEXT.strip()


@case("jinn-72")
def test_a_search_that_is_cancelled_says_so_and_leaves_nothing_running(room: Room) -> None:
    room.file("a", SLOW_TEXT)
    room.text("stat_file", path="a")

    class Soon(Cancel):
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 5

    with no_leaks():
        response = room.call("search_files", pattern=SLOW, cancel=Soon())
    assert response["error_code"] == "canceled"
    assert "result" not in response


def test_a_slow_pattern_holds_up_nobody_else(room: Room) -> None:
    room.file("slow/a", SLOW_TEXT)
    room.file("quick/a", "hit\n")
    cancel = Cancel()
    asked = {"pattern": SLOW, "path": "slow", "cancel": cancel}
    thread = threading.Thread(target=room.call, args=("search_files",), kwargs=asked)
    thread.start()
    answered = [room.text("search_files", pattern="hit", path="quick") for _ in range(20)]
    assert thread.is_alive()
    assert set(answered) == {"quick/a:1:hit"}
    cancel.set()
    thread.join()


# ---- what a line is, however it is looked for ----

PIECES = st.sampled_from(["a", "b", "foo", "\n", "\r\n", " ", "\t", "é", "K", "s", "-", "aa", "A"])
PATTERNS = st.sampled_from(
    [
        *(
            "a",
            "foo",
            "a+b",
            "a.b",
            r"\s",
            r"\s+a",
            "[^a]b",
            "^a",
            "b$",
            "^$",
            r"\bfoo\b",
            "a|foo",
            "a(?!b)",
            "(?<=a)b",
        ),
        *(
            r"a\nb",
            "(?i)FOO",
            "(?s)a.*b",
            r"(a|b)+\1",
            "a{2}",
            "é",
            "(?:)",
            ".*",
            r"\Aa",
            r"b\Z",
            "(?i)k",
            r"\S+ \S+",
        ),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), PATTERNS)
def test_lines_are_matched_one_by_one_whichever_way_is_quickest(text: str, pattern: str) -> None:
    content = text.encode()
    plain = text_of(content)
    expression = Expression(pattern)
    lines = plain.split("\n")
    if lines[-1] == "":
        lines.pop()
    matches = ((number, re.compile(pattern, re.MULTILINE).search(line)) for number, line in enumerate(lines))
    expected = [(number, match.start()) for number, match in matches if match is not None]
    assert expression_lines(expression.compiled, plain, expression.whole) == expected
    assert not expected or expression.may_be_in(content)
    if expression.is_literal and not expression.ignores_case:
        assert literal_lines(expression.needle, plain) == expected


def test_a_file_that_its_owner_closed_is_not_searched_by_root_either(room: Room) -> None:
    room.file("closed", "needle\n").chmod(0)
    room.file("open", "needle\n")
    assert room.text("search_files", pattern="needle") == "open:1:needle"
