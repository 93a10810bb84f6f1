"""Choosing change by change and hunk by hunk, as `git add -p` asks."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from corral.changes.applying import is_plain_file
from corral.changes.change import DIRECTORY, Change, selects
from corral.changes.contents import Contents, both_text
from corral.changes.layers import Layers
from corral.changes.lines import Hunk, hunks, patched, split_hunk, split_lines
from corral.changes.patch import pieces
from corral.changes.sealing import survey
from corral.cli import harmless
from corral.cli.paging import shown
from corral.errors import PolicyError

HELP = {
    "y": "apply it",
    "n": "leave it",
    "q": "leave this and everything after it; apply what was chosen",
    "a": "apply this and the rest of the file",
    "d": "leave this and the rest of the file",
    "s": "split the hunk into smaller ones",
    "?": "this help",
}


@dataclass
class Picked:
    paths: list[str] = field(default_factory=list)
    overwrite: list[str] = field(default_factory=list)
    partial: dict[str, bytes] = field(default_factory=dict)


class _Enough(Exception):
    """The person wants to be asked no more."""


def pick(layers: Layers, paths: list[str] | None) -> Picked:
    found = survey(layers)
    if found.running:
        raise PolicyError("something still runs in this jail; apply when it has ended")
    picked = Picked()
    changes = [change for change in found.changes if selects(paths, change)]
    if not changes:
        return picked
    with Contents(layers) as contents:
        try:
            for change in changes:
                _ask_about(layers, contents, change, picked)
        except (_Enough, EOFError):
            pass
    return picked


def _ask_about(layers: Layers, contents: Contents, change: Change, picked: Picked) -> None:
    if change.refused:
        print(harmless(f"left: {change.path}: {change.refused}"))
        return
    if _comes_with_what_is_in_it(change):
        return
    if change.conflict or not is_plain_file(change) or change.before is None:
        _show(b"".join(pieces(layers, [change])))
        print(change.line())
        if _answer("apply this change", "ynq") == "y":
            picked.paths.append(change.path)
            picked.overwrite += [change.path] if change.conflict else []
        return
    old, new = contents.before(change), contents.after(change)
    if not both_text(old, new):
        print(change.line())
        if _answer("apply this change", "ynq") == "y":
            picked.paths.append(change.path)
        return
    print(change.line())
    lines = split_lines(old)
    every = hunks(lines, split_lines(new))
    chosen, stop = _ask_about_hunks(every)
    if chosen:
        picked.paths.append(change.path)
        content = patched(lines, chosen)
        if content != new:
            picked.partial[change.path] = content
    if stop:
        raise _Enough


def _comes_with_what_is_in_it(change: Change) -> bool:
    """A new directory is made for what is chosen in it."""
    after = change.after
    return after is not None and after.kind == DIRECTORY and change.kind in ("added", "replaced")


def _ask_about_hunks(every: list[Hunk]) -> tuple[list[Hunk], bool]:
    """Those that were chosen, and whether to stop after them."""
    ahead = list(reversed(every))
    chosen: list[Hunk] = []
    while ahead:
        hunk = ahead.pop()
        _show(_text(hunk))
        parts = split_hunk(hunk)
        answer = _answer("apply this hunk", "ynqad" + ("s" if len(parts) > 1 else ""))
        if answer == "q":
            return chosen, True
        if answer == "s":
            ahead += reversed(parts)
        if answer in "ya":
            chosen.append(hunk)
        if answer == "a":
            return [*chosen, *ahead], False
        if answer == "d":
            return chosen, False
    return chosen, False


def _text(hunk: Hunk) -> bytes:
    rows = [mark + line if line.endswith(b"\n") else mark + line + b"\n" for mark, line in hunk.rows]
    return hunk.header().encode() + b"\n" + b"".join(rows)


def _show(patch: bytes) -> None:
    text = shown(patch, colour=sys.stdout.isatty())
    print(text.rstrip("\n").encode("utf-8", "backslashreplace").decode())


def _answer(question: str, letters: str) -> str:
    while True:
        answer = input(f"{question} [{','.join(letters)},?]? ").strip().lower()
        if answer == "q":
            if "a" in letters:
                return "q"
            raise _Enough
        if answer and answer in letters:
            return answer
        print("\n".join(f"{letter} - {HELP[letter]}" for letter in (*letters, "?")))
