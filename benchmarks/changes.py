"""What a reviewed directory costs: work in the overlay beside the same work outside, and the list of what changed.

python benchmarks/changes.py [--directory DIR] [--files N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from corral.changes import Layers, apply, begin, discard, list_changes, seal

ROUNDS = 5
SMALL, LARGE = 10, 1_000_000
WORK = 5_000  # files that are read, unpacked, changed

MEDIA = (1_000, 256 << 10)  # files that are only read, bytes of each
SOURCES = (5_000, 10 << 10)


class Job(NamedTuple):
    """``first``: what is done before it without being measured."""

    line: str
    at_most: float | None
    first: str = "true"

    @property
    def only_reads(self) -> bool:
        return self.first == self.line


def reading(tree: str, at_most: float | None) -> Job:
    line = f"cat {tree}/*/* > /dev/null"
    return Job(line, at_most, line)


# What is read is read as ever. Opening a file in an overlay opens two, which is seen where files are small.
JOBS = {
    "read 256 MB": reading("media", 1.1),
    "open and read 5,000 files of 10 KB": reading("sources", None),
    "open and read 5,000 files of 1 KB": reading("tree", None),
    "untar 5,000 files": Job("mkdir new; tar -C new --no-same-owner -xf ../../tree.tar", 2.0),
    "chmod of 5,000 files that were there": Job("chmod -R g-w,o-r tree", 150.0),
}


class Row(NamedTuple):
    what: str
    milliseconds: float
    over: str
    over_milliseconds: float
    at_most: float | None

    @property
    def ratio(self) -> float:
        return self.milliseconds / self.over_milliseconds


class Field:
    """A directory with an overlay over it, and beside it a copy that has none."""

    def __init__(self, base: Path) -> None:
        self.lower = base / "lower"
        self.lower.mkdir(parents=True)
        self._rounds = 0
        self.begin()

    def begin(self) -> None:
        """Nothing changed, and nothing waits for the disk. What was there before stays: right after thousands of files
        were removed a file system may take its time to make new ones."""
        self._rounds += 1
        self.base = self.lower.parent / f"round{self._rounds}"
        for name in ("upper", "work", "merged", "plain"):
            (self.base / name).mkdir(parents=True)
        self.layers = Layers(str(self.lower), str(self.base / "upper"), str(self.base / "sealed"))

    def copy(self, *names: str) -> None:
        for name in names:
            subprocess.run(["cp", "-a", self.lower / name, self.base / "plain"], check=True)
        os.sync()

    def inside(self, line: str, first: str = "true") -> float:
        """Seconds that the line took, without mounting."""
        options = "userxattr,lowerdir=../lower,upperdir=upper,workdir=work"
        script = f"mount -t overlay -o {options} overlay merged && cd merged && {first} && exec {timed(line)}"
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        return seconds([*unshare, "sh", "-c", script], self.base)

    def outside(self, line: str, first: str = "true") -> float:
        return seconds(["sh", "-c", f"{first} && exec {timed(line)}"], self.base / "plain")


def timed(line: str) -> str:
    code = "import subprocess as s, sys, time; t = time.perf_counter(); s.run(['sh', '-ec', sys.argv[1]], check=True); "
    words = [sys.executable, "-c", f"{code}print(time.perf_counter() - t)", line]
    return shlex.join(words)


def seconds(argv: list[str], cwd: Path) -> float:
    return float(subprocess.run(argv, cwd=cwd, check=True, capture_output=True, text=True).stdout)


def fill(top: Path, files: int, size: int = 1_000) -> None:
    for number in range(files):
        if number % 1000 == 0:
            directory = top / f"d{number // 1000}"
            directory.mkdir(parents=True)
        (directory / f"f{number}").write_bytes(b"x" * size)


def work(base: Path) -> list[Row]:
    field = Field(base)
    fill(field.lower / "tree", WORK)
    fill(field.lower / "sources", *SOURCES)
    fill(field.lower / "media", *MEDIA)
    subprocess.run(["tar", "-C", str(field.lower), "-cf", str(base / "tree.tar"), "tree"], check=True)
    field.copy("tree", "sources", "media")
    rows = []
    for what, job in JOBS.items():
        progress(what)
        inner, outer = [], []
        for _ in range(ROUNDS):
            if not job.only_reads:
                field.begin()
                field.copy("tree")
            outer.append(field.outside(job.line, job.first))
            inner.append(field.inside(job.line, job.first))
        rows.append(Row(what, min(inner) * 1e3, "outside", min(outer) * 1e3, job.at_most))
    return rows


def lists(base: Path, files: int) -> list[Row]:
    """Ten changes in a small tree and in a large one."""
    taken: dict[int, float] = {}
    for count in (SMALL, files):
        progress(f"a tree of {count:,} files")
        field = Field(base / str(count))
        fill(field.lower / "tree", count)
        os.close(begin(field.layers))
        field.inside(
            "cd tree/d0; for n in 0 1 2 3 4 5; do echo y >> f$n; done; rm f6; mv f7 g; echo n > new; chmod 700 f8"
        )
        assert seal(field.layers)
        assert len(list_changes(field.layers)) == 10
        taken[count] = median(clock(lambda field=field: list_changes(field.layers)) for _ in range(51))  # type: ignore[misc]
    small, large = taken[SMALL] * 1e3, taken[files] * 1e3
    return [Row(f"list of 10 changes among {files:,} files", large, f"among {SMALL}", small, 1.3)]


def all_of_it(base: Path) -> list[Row]:
    """No ratio is asked of these; they are what a person waits for."""
    rows = []
    field = Field(base)
    make = f"mkdir new; tar -C new --no-same-owner -xf {shlex.quote(str(base.parent / 'work' / 'tree.tar'))}"
    taken: dict[str, list[float]] = {"seal": [], "list": [], "apply": [], "discard": []}
    plain = []
    for _ in range(3):
        os.close(begin(field.layers))
        field.inside(make)
        taken["seal"].append(clock(lambda: seal(field.layers)))
        taken["list"].append(clock(lambda: list_changes(field.layers)))
        taken["apply"].append(clock(lambda: apply(field.layers, allow_exec=True)))
        shutil.rmtree(field.lower / "new")
        os.close(begin(field.layers))
        field.inside(make)
        seal(field.layers)
        taken["discard"].append(clock(lambda: discard(field.layers)))
        plain.append(field.outside(make))
        shutil.rmtree(field.base / "plain" / "new")
    for what, times in taken.items():
        rows.append(
            Row(f"{what} of 5,000 new files", median(times) * 1e3, "untar outside", median(plain) * 1e3, None)
        )
    return rows


def clock(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def progress(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", help="where to work; on a disk that can carry an overlay")
    parser.add_argument("--files", type=int, default=LARGE, help="of the large tree")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="corral-bench-") as scratch:
        base = Path(scratch)
        try:
            rows = [*work(base / "work"), *all_of_it(base / "all"), *lists(base / "lists", options.files)]
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", scratch])
    if options.json:
        print(json.dumps([{**row._asdict(), "ratio": row.ratio} for row in rows], indent=2))
    else:
        for row in rows:
            limit = (
                ""
                if row.at_most is None
                else f"  (at most {row.at_most}){'' if row.ratio <= row.at_most else '  MISSED'}"
            )
            print(f"{row.what:<45}{row.milliseconds:>9.1f} ms {row.ratio:>7.2f} x {row.over}{limit}")
    return 1 if any(row.at_most is not None and row.ratio > row.at_most for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
