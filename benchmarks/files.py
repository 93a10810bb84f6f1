"""The file layer beside what it stands in for: ratios within one run, on a real disk.

python benchmarks/files.py [--directory DIR] [--files N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from corral.environment.files import FileHalf
from corral.files.stamps import Stamps
from corral.paths.beneath import Anchor
from corral.paths.opening import descend
from corral.policy import Policy

CONTENT = random.randbytes(4096)
READS, WRITES, WALKS = 300, 40, 1  # calls in one round
ROUNDS = 21
THREADS, THREAD_READS = 8, 10_000


class Row(NamedTuple):
    what: str
    over: str
    microseconds: float
    over_microseconds: float
    ratio: float
    at_most: float | None


def measured(
    what: str, ours: Callable[[], object], over: str, theirs: Callable[[], object], calls: int, rounds: int
) -> tuple[str, str, float, float, float]:
    """Both in every round, in changing order; the ratio is the median of the ratios of the rounds."""

    def once(action: Callable[[], object]) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            action()
        return (time.perf_counter() - started) / calls * 1e6

    once(ours), once(theirs)
    taken: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            one = once(ours)
            taken.append((one, once(theirs)))
        else:
            other = once(theirs)
            taken.append((once(ours), other))
    return (
        what,
        over,
        median(a for a, _ in taken),
        median(b for _, b in taken),
        median(a / b for a, b in taken),
    )


def plain_read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def plain_write(directory: str) -> None:
    """A temp file, fsync, rename, fsync of the directory, as everybody would."""
    temporary = f"{directory}/plain.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, CONTENT)
    os.fsync(fd)
    os.close(fd)
    os.rename(temporary, f"{directory}/plain")
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def plain_walk(top: str) -> int:
    count = 0
    for directory, _, files in os.walk(top):
        for name in files:
            os.lstat(os.path.join(directory, name))
            count += 1
    return count


def walk(files: FileHalf) -> int:
    return sum(len(found) for _, _, found in files.walk("tree"))


def fill(root: Path, count: int) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/read").write_bytes(CONTENT)
    directory = root
    for number in range(count):
        if number % 50 == 0:
            directory = root / "tree" / f"d{number // 1000}" / f"e{number // 50}"
            directory.mkdir(parents=True)
        (directory / f"f{number}").touch()


def many_threads(files: FileHalf) -> tuple[int, float]:
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(THREAD_READS // THREADS):
                if files.read_bytes("a/b/read") != CONTENT:
                    raise AssertionError("other bytes")
        except BaseException as error:  # noqa: BLE001 - counted
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(THREADS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(failures), time.perf_counter() - started


def rows(root: Path, count: int, say: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    fill(root, count)
    with Anchor(str(root)) as anchor, Anchor(str(root), opener=descend) as slow:
        # With stamps, as an environment has them.
        files, descent = (FileHalf([top], Policy.off(), stamps=Stamps()) for top in (anchor, slow))
        path, directory = f"{root}/a/b/read", f"{root}/a/b"
        found: list[Row] = []

        def compare(
            what: str, ours: Callable[[], object], over: str, theirs: Callable[[], object],
            calls: int, rounds: int, at_most: float | None,
        ) -> None:  # fmt: skip
            say(what)
            found.append(Row(*measured(what, ours, over, theirs, calls, rounds), at_most))

        read, write = "open().read()", "temp, fsync, rename, fsync"
        compare(
            "read 4 KB",
            lambda: files.read_bytes("a/b/read"),
            read,
            lambda: plain_read(path),
            READS,
            ROUNDS,
            3,
        )
        compare(
            *("read 4 KB, descent", lambda: descent.read_bytes("a/b/read"), read, lambda: plain_read(path)),
            *(READS, ROUNDS, None),
        )
        compare(
            *(
                "write 4 KB",
                lambda: files.write_file("a/b/written", CONTENT),
                write,
                lambda: plain_write(directory),
            ),
            *(WRITES, ROUNDS, 1.3),
        )
        if walk(files) != plain_walk(f"{root}/tree") or walk(files) != count:
            raise RuntimeError("the two walks differ")
        compare(
            *(
                f"walk {count} files",
                lambda: walk(files),
                "os.walk and lstat",
                lambda: plain_walk(f"{root}/tree"),
            ),
            *(WALKS, 5, 2),
        )
        failures, took = many_threads(files)
    note = f"{THREAD_READS} reads from {THREADS} threads: {failures} failures, {took * 1e3:.0f} ms"
    return found, [note]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", default=os.path.expanduser("~"), help="where to work: a disk, not memory"
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(dir=options.directory, prefix="corral-bench-"))
    try:
        found, notes = rows(root, options.files, lambda what: print(f"{what} …", file=sys.stderr, flush=True))
    finally:
        shutil.rmtree(root)
    if options.json:
        print(json.dumps({"rows": [row._asdict() for row in found], "notes": notes}))
    else:
        for row in found:
            verdict = "" if row.at_most is None else f"  (at most {row.at_most})"
            times = f"{row.microseconds:10.1f} us, {row.over}: {row.over_microseconds:10.1f} us"
            print(f"{row.what:22} {times}   {row.ratio:5.2f}x{verdict}")
        print(*notes, sep="\n")
    return 1 if any(row.at_most is not None and row.ratio > row.at_most for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
