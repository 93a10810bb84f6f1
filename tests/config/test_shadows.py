"""Patterns of variable names compared with each other, against trying every short name."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from config.desk import PROPERTY
from corral.config.shadows import covers, overlap
from corral.variables import name_matches

NAMES = ["".join(letters) for n in range(1, 6) for letters in product("AB", repeat=n)]
PATTERNS = st.text("AB*", min_size=1, max_size=4)


@PROPERTY
@given(PATTERNS, PATTERNS)
def test_patterns_overlap_when_a_name_matches_both(a: str, b: str) -> None:
    together = any(name_matches(a, name) and name_matches(b, name) for name in NAMES)
    if together:
        assert overlap(a, b)
    elif len(a) + len(b) <= 5:
        assert not overlap(a, b)


@PROPERTY
@given(PATTERNS, PATTERNS)
def test_a_pattern_that_covers_another_matches_all_that_it_matches(a: str, b: str) -> None:
    if covers(a, b):
        assert all(name_matches(a, name) for name in NAMES if name_matches(b, name))


def test_what_covers_what() -> None:
    assert covers("A_*", "A_B")
    assert covers("A_*", "A_*_C")
    assert covers("*", "A_*")
    assert covers("A", "A")
    assert not covers("A_B", "A_*")
    assert not covers("A_*", "*_B")


def test_an_escaped_star_is_a_letter() -> None:
    assert overlap(r"A\*", "A*")
    assert not overlap(r"A\*", r"A\B")
