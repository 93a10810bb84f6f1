"""Globs of the tools: what fits, and that none of them takes long."""

from __future__ import annotations

import time

import pytest

from corral.tools.failures import Failure
from corral.tools.globs import compile_glob

ROWS = [
    ("*.py", "a/b", "x.py", True),
    ("*.py", "a/b", "x.pyc", False),
    ("*.{ts,tsx}", "", "q.tsx", True),
    ("*.{ts,tsx}", "", "q.js", False),
    ("{a,{b,c}}.py", "", "c.py", True),
    ("{a", "", "{a", True),
    ("{a}", "", "{a}", True),
    ("src/**/*.py", "src", "a.py", True),
    ("src/**/*.py", "src/a/b", "a.py", True),
    ("src/**/*.py", "lib", "a.py", False),
    ("src/**", "src", "a", True),
    ("src/**", "srcx", "a", False),
    ("**/x", "", "x", True),
    ("**/x", "a/b", "x", True),
    ("**/a/**/b", "a/x/a/y", "b", True),
    ("a/*", "a/b", "x", False),
    ("a/*", "a", "x", True),
    ("[!a]*", "", "b", True),
    ("[!a]*", "", "a", False),
    ("[a-c]?", "", "bx", True),
    ("[*]", "", "*", True),
    ("[z-a]", "", "z", False),
    ("[]]", "", "]", True),
    ("a[", "", "a[", True),
    ("./x", "", "x", True),
    ("*a*b*c", "", "xaybzc", True),
    ("*a*b*c", "", "xaybz", False),
    ("-delete", "", "-delete", True),
    (".*", "", ".hidden", True),
    ("é*", "", "éa", True),
]


@pytest.mark.parametrize(("glob", "above", "name", "fits"), ROWS)
def test_a_glob_fits_what_it_says(glob: str, above: str, name: str, fits: bool) -> None:
    assert compile_glob(glob)(above, name) is fits


@pytest.mark.parametrize(
    ("glob", "above", "name"),
    [
        ("*a" * 100 + "b", "", "a" * 255),
        ("**/a/" * 50 + "b", "/".join("a" * 500), "c"),
        ("{" * 400, "", "x"),
        ("[" * 400, "", "x"),
    ],
)
def test_no_glob_takes_long(glob: str, above: str, name: str) -> None:
    started = time.monotonic()
    assert not compile_glob(glob)(above, name)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("glob", ["x" * 1001, "{a,b}" * 7, "{a,b}" * 190])
def test_a_glob_that_is_too_much_is_refused(glob: str) -> None:
    with pytest.raises(Failure):
        compile_glob(glob)
