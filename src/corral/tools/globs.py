"""Globs as the tools take them: ``*``, ``?``, ``[a-z]``, ``**`` for any number of directories, and ``{a,b}``.

A glob without a slash is about the last name of a path, wherever that is; one with a slash is about the whole path
below the place that is looked through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from corral.tools.failures import invalid

LONGEST = 1_000
MOST_ALTERNATIVES = 64

Fits = Callable[[str, str], bool]


def compile_glob(glob: str) -> Fits:
    """Whether a file fits, asked with the path of its directory (empty for the top) and its name."""
    if len(glob) > LONGEST:
        raise invalid(f"a glob has at most {LONGEST} characters, this one has {len(glob)}")
    alternatives = list(_alternatives(glob.removeprefix("./")))
    if len(alternatives) > MOST_ALTERNATIVES:
        raise invalid(f"glob {glob!r}: more than {MOST_ALTERNATIVES} alternatives in braces")
    named = [_translated(one) for one in alternatives if "/" not in one]
    placed = [_translated(one.lstrip("/")) for one in alternatives if "/" in one]
    fits_name = re.compile("|".join(named)).fullmatch if named else None
    fits_path = re.compile("|".join(placed)).fullmatch if placed else None

    def fits(above: str, name: str) -> bool:
        if fits_name is not None and fits_name(name):
            return True
        return fits_path is not None and fits_path(f"{above}/{name}" if above else name) is not None

    return fits


def _alternatives(glob: str) -> Iterator[str]:
    """Every spelling of a glob with braces. Braces without a comma, or without an end, are letters."""
    pending, made = [glob], 0
    while pending and made <= MOST_ALTERNATIVES:
        one = pending.pop()
        found = _first_choice(one)
        if found is None:
            made += 1
            yield one
        else:
            start, end, choices = found
            pending += [one[:start] + choice + one[end:] for choice in reversed(choices)]


def _first_choice(glob: str) -> tuple[int, int, list[str]] | None:
    for opening in re.finditer(r"\{", glob):
        depth, start = 0, opening.start()
        cuts = [start]
        for at in range(start, len(glob)):
            depth += {"{": 1, "}": -1}.get(glob[at], 0)
            if glob[at] == "," and depth == 1:
                cuts.append(at)
            if depth == 0:
                if len(cuts) > 1:
                    ends = [*cuts[1:], at]
                    return start, at + 1, [glob[a + 1 : b] for a, b in zip(cuts, ends, strict=True)]
                break
    return None


def _translated(glob: str) -> str:
    """As a regular expression that cannot take long: what follows a ``**`` is settled by the first place where it fits,
    and never looked at again; only the last of them has to try all places."""
    runs: list[list[str]] = [[]]
    for segment in glob.split("/"):
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(_segment(segment))
    first, *rest = runs
    if not rest:
        return "/".join(first)
    *middle, last = rest
    parts = ["".join(f"{segment}/" for segment in first)]
    parts += [f"(?>(?:[^/]+/)*?{''.join(f'{segment}/' for segment in run)})" for run in middle if run]
    return "".join([*parts, f"(?:[^/]+/)*{'/'.join(last)}" if last else "(?s:.*)"])


def _segment(segment: str) -> str:
    """Every star but the last one is settled by the first place where what follows it fits: never looked at again."""
    pieces = [""]
    at = 0
    while at < len(segment):
        after, one = _one(segment, at)
        if one is None:
            pieces.append("")
        else:
            pieces[-1] += one
        at = after
    first, *rest = pieces
    middle = [f"(?>[^/]*?{piece})" for piece in rest[:-1]]
    return "".join([first, *middle, *(f"[^/]*{piece}" for piece in rest[-1:])])


def _one(segment: str, at: int) -> tuple[int, str | None]:
    """What stands at this place, as an expression (None: a star), and where the next thing begins."""
    char = segment[at]
    if char == "*":
        return at + 1, None
    if char == "?":
        return at + 1, "[^/]"
    if char == "[":
        negated = segment.startswith(("!", "^"), at + 1)
        end = segment.find("]", at + 2 + negated)
        if end >= 0:
            return end + 1, _class(segment[at + 1 + negated : end], negated)
    return at + 1, re.escape(char)


def _class(members: str, negated: bool) -> str:
    parts = [
        f"{re.escape(low)}-{re.escape(high)}" if high else re.escape(single)
        for low, high, single in re.findall(r"(?s)(.)-(.)|(.)", members)
        if not high or low <= high
    ]
    if not parts:
        return "[^/]" if negated else "(?!)"
    return f"[^/{''.join(parts)}]" if negated else f"(?!/)[{''.join(parts)}]"
