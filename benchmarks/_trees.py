"""The rows of tools.py about trees: search_files beside ripgrep on one core, list_dir beside os.scandir.

Both look at the same files, and the number of matching lines must be the same.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

Call = Callable[[str, dict[str, Any]], dict[str, Any]]  # a tool, its arguments; the response

ROUNDS = 7
ENTRIES = 10_000
WORDS = "alpha beta gamma return import class self value result index error handler request config path file".split()
# What is looked for, and how ripgrep is told. The first is what the target is about; all of them count the same lines.
SEARCHES: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("a rare text", {"pattern": "needle_", "literal": True}, ("-F", "needle_")),
    ("a rare expression", {"pattern": r"needle_\d+ lies"}, (r"needle_\d+ lies",)),
    ("a frequent expression", {"pattern": r"return \w+ error"}, (r"return \w+ error",)),
    ("any case", {"pattern": "NEEDLE_", "case_insensitive": True}, ("-i", "NEEDLE_")),
)


class TreeRow(NamedTuple):
    what: str
    over: str
    milliseconds: float
    over_milliseconds: float
    ratio: float
    at_most: float


def fill_trees(root: Path, files: int) -> None:
    """``tree`` with so many files of some lines, and ``flat`` with ten thousand empty ones."""
    choose = random.Random(7)
    directory = root
    for number in range(files):
        if number % 50 == 0:
            directory = root / "tree" / f"d{number // 1000}" / f"e{number // 50}"
            directory.mkdir(parents=True)
        lines = [" ".join(choose.choices(WORDS, k=8)) for _ in range(choose.randint(5, 60))]
        if number % 500 == 0:
            lines[len(lines) // 2] = f"the needle_{number} lies here"
        (directory / f"f{number}.py").write_text("\n".join(lines) + "\n")
    (root / "flat").mkdir()
    for number in range(ENTRIES):
        (root / "flat" / f"file_{number:05}.txt").touch()


def tree_rows(call: Call, root: Path, files: int) -> Iterator[TreeRow]:
    """``root``: the workspace that is asked, filled by `fill_trees`."""
    ripgrep = shutil.which("rg")
    for what, args, words in SEARCHES if ripgrep else ():
        yield compared(
            f"search {files} files, {what}",
            lambda args=args: int(call("search_files", {**args, "path": "tree"})["meta"]["total_count"]),
            "rg -j1 --no-ignore --hidden",
            lambda words=words: lines_of_ripgrep(str(ripgrep), words, root / "tree"),
            3,
        )
    yield compared(
        f"list {ENTRIES} entries",
        lambda: call("list_dir", {"path": "flat", "max_entries": ENTRIES})["result"].count('.txt"'),
        "os.scandir, sorted",
        lambda: len(scanned(root / "flat")),
        1.5,
    )


def compared(
    what: str, ours: Callable[[], int], over: str, theirs: Callable[[], int], at_most: float
) -> TreeRow:
    if ours() != theirs():
        raise RuntimeError(f"{what}: {ours()} of ours, {theirs()} of {over}")
    taken = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    return TreeRow(
        what,
        over,
        median(a for a, _ in taken) * 1e3,
        median(b for _, b in taken) * 1e3,
        median(a / b for a, b in taken),
        at_most,
    )


def seconds(action: Callable[[], int]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def lines_of_ripgrep(program: str, words: tuple[str, ...], top: Path) -> int:
    argv = [
        program,
        "-j1",
        "--no-ignore",
        "--hidden",
        "--no-messages",
        "--count",
        "--no-filename",
        *words,
        str(top),
    ]
    return sum(map(int, subprocess.run(argv, capture_output=True, check=False).stdout.split()))


def scanned(directory: Path) -> list[str]:
    """The same names as ours, in order, directories marked."""
    with os.scandir(directory) as entries:
        return sorted(
            entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries
        )
