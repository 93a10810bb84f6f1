"""An answer for any text, never an exception, in bounded time and memory."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.risk import Level, classify
from corral.risk.report import to_json, to_text

PIECES = [
    *"abc ;|&<>(){}$'\"\\`\n=#[]*!-/~\t\r\0é☃",
    *(
        "rm ",
        "ls ",
        "$(",
        "${",
        "$((",
        "((",
        "<<",
        "<<<",
        "<(",
        ">(",
        "&&",
        "||",
        ";;",
        "if ",
        "then ",
        "fi ",
        "case ",
    ),
    *(
        "esac ",
        "for ",
        "do ",
        "done ",
        "EOF\n",
        "<<EOF\n",
        "-exec ",
        "sudo ",
        "bash -c ",
        "eval ",
        "time ",
        "coproc ",
    ),
    *("x=", "function f "),
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_any_text_gets_an_answer(text: str) -> None:
    assert classify(text).level in Level


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(raw: bytes) -> None:
    verdict = classify(raw.decode("utf-8", "surrogateescape"))
    to_json(verdict)
    to_text(verdict, colour=True)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_pile_of_shell_pieces_gets_an_answer(pieces: list[str]) -> None:
    verdict = classify("".join(pieces))
    assert verdict.level in Level


NOISE = random.Random(7)

HUGE = {
    "10,000 nested parentheses": "(" * 10_000 + "ls" + ")" * 10_000,
    "10,000 open parentheses": "(" * 10_000,
    "10,000 nested substitutions": "echo " + "$(" * 10_000 + "ls" + ")" * 10_000,
    "5,000 nested quoted substitutions": 'echo "$(' * 5_000,
    "10,000 backticks": "`" * 10_001,
    "10,000 groups": "{ " * 10_000 + "ls" + "; }" * 10_000,
    "10,000 expansions": "echo " + "${x:-" * 10_000 + "}" * 10_000,
    "10,000 arithmetic": "echo " + "$((" * 10_000,
    "10,000 braces": "echo " + "{a," * 10_000 + "}" * 10_000,
    "100,000 brackets": "echo '" + "[" * 100_000 + "'",
    "50,000 joined commands": "ls;" * 50_000,
    "50,000 different commands": "".join(f"cmd{i} -x;" for i in range(50_000)),
    "50,000 pipes": "ls|" * 50_000 + "ls",
    "50,000 and": "ls&&" * 50_000 + "ls",
    "1 MB of one word": "echo " + "x" * 1_000_000,
    "1 MB of words": "echo " + "a " * 500_000,
    "1 MB of a quoted word": "echo '" + "x y " * 250_000 + "'",
    "1 MB open quote": "echo '" + "x" * 1_000_000,
    "1 MB of blanks": " " * 1_000_000 + "ls",
    "1 MB of newlines": "\n" * 1_000_000 + "ls",
    "1 MB of backslashes": "\\" * 1_000_000,
    "1 MB of continued lines": "\\\n" * 500_000 + "ls",
    "1 MB of comments": "#\n" * 500_000,
    "300 KB of assignments": "a=1 " * 75_000 + "ls",
    "300 KB of variables": "a=1;" * 75_000,
    "30,000 different variables": "".join(f"v{i}=1;" for i in range(30_000)),
    "300 KB of redirections": "ls " + ">f " * 100_000,
    "1 MB of noise": "".join(NOISE.choice(PIECES) for _ in range(400_000)),
    "100 KB of bytes": NOISE.randbytes(100_000).decode("utf-8", "surrogateescape"),
    "2,000 here-documents": "cat <<A " * 2_000,
    "100 here-documents": "".join(f"cat <<A{i}\nx\nA{i}\n" for i in range(100)),
    "1,000 wrappers": "env " * 1_000 + "ls",
    "10,000 sudo": "sudo " * 10_000 + "ls",
    "unknown options in wrappers": "env --a --b --c --d " * 30 + "ls;" + "env ${x:-a} " * 30,
    "300 KB of doubtful wrappers": "env --a nice --b nohup --c ls ${x:-y};" * 8_000,
    "texts inside texts": "eval --a eval --b eval --c `eval eval eval ls` " * 200,
    "1,000 find -exec": "find . " + "-exec ls {} ; " * 1_000,
    "300 KB sed script": "sed '" + "p;w f\n" * 50_000 + "' f",
    "1 MB awk program": "awk '" + "print | print / " * 60_000 + "'",
    "1 MB of SQL": "psql -c '" + "/* alter \n .x " * 80_000 + "'",
    "1 MB of slashes": "echo x > " + "/a/.." * 200_000,
    "1 MB of colons": "PATH=" + "/a:" * 300_000 + " ls",
    "10,000 cases": "case x in " * 10_000,
    "10,000 if": "if ls; then " * 10_000 + "ls" + "; fi" * 10_000,
    "nested bash -c": "bash -c '" * 500 + "ls" + "'" * 500,
    "many options": "git " + "-c a.b=c " * 100_000 + "status",
    "many env assignments": "env " + "A=1 " * 100_000 + "ls",
    "5 MB": "ls " * 1_700_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_line_gets_an_answer_in_bounded_time(name: str) -> None:
    start = time.perf_counter()
    classify(HUGE[name])
    assert time.perf_counter() - start < 20


def test_memory_stays_bounded_by_the_length() -> None:
    line = "ls;" * 20_000
    tracemalloc.start()
    try:
        classify(line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000 * len(line) / 3


def test_what_is_nested_too_deeply_is_called_dangerous() -> None:
    assert classify(HUGE["10,000 nested parentheses"]).level is Level.DANGEROUS
    assert classify("( " * 50 + "ls" + " )" * 50).level is Level.SAFE
