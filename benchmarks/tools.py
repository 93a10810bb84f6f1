"""The tools, spoken to over `corral tool --stream`, beside what they stand in for: ratios in one run, on a real disk.

    python benchmarks/tools.py [--directory DIR] [--files N] [--only ROW] [--json]

Audit and stamps are on, as they always are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

CORRAL = str(Path(sys.executable).with_name("corral"))
PYTHON = ("/usr/bin/python3", "-I", "-S", "-c", "pass")
CONTENT = ("x" * 79 + "\n") * 51
LISTED = 10_000


class Row(NamedTuple):
    """``over`` empty: the bound is one of milliseconds, not of a ratio."""

    what: str
    milliseconds: float
    over: str
    over_milliseconds: float
    at_most: float

    @property
    def value(self) -> float:
        return self.milliseconds / self.over_milliseconds if self.over else self.milliseconds


class Stream:
    """A stream that is asked one thing at a time."""

    def __init__(self, workspace: Path, variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [CORRAL, "tool", "--stream"],
            cwd=workspace,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def asks(self, tool: str, **args: Any) -> dict[str, Any]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"tool": tool, "args": args}).encode() + b"\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        if not answer["ok"]:
            raise RuntimeError(f"{tool}: {answer['error']}")
        return answer

    def close(self) -> None:
        self._process.communicate()


def both(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int, calls: int
) -> tuple[float, float]:
    """Milliseconds a call of each, turn by turn, so that what else the machine does falls on both; the medians."""

    def once(action: Callable[[], object]) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            action()
        return (time.perf_counter() - started) / calls * 1e3

    once(ours), once(theirs)
    taken = []
    for number in range(rounds):
        first, second = (ours, theirs) if number % 2 else (theirs, ours)
        one, other = once(first), once(second)
        taken.append((one, other) if number % 2 else (other, one))
    return median(a for a, _ in taken), median(b for _, b in taken)


class Bench:
    def __init__(self, top: Path, files: int) -> None:
        self.workspace = top / "workspace"
        self.workspace.mkdir()
        self.files = files
        self.variables = {**os.environ, "CORRAL_STATE_DIR": str(top / "state")}
        self.stream = Stream(self.workspace, self.variables)
        (self.workspace / "read.txt").write_text(CONTENT)

    def one_shot(self) -> Row:
        words = [CORRAL, "tool", json.dumps({"tool": "read_file", "args": {"path": "read.txt"}})]

        def run(command: list[str]) -> None:
            subprocess.run(
                command, cwd=self.workspace, env=self.variables, check=True, stdout=subprocess.DEVNULL
            )

        ours, theirs = both(lambda: run(words), lambda: run(list(PYTHON)), 31, 1)
        return Row("one-shot corral tool", ours, " ".join(PYTHON[:-2]) + " pass", theirs, 6)

    def read_file(self) -> Row:
        path = str(self.workspace / "read.txt")
        ours, theirs = both(
            lambda: self.stream.asks("read_file", path="read.txt"), lambda: Path(path).read_bytes(), 21, 100
        )
        return Row("read_file of 4 KB", ours, "", theirs, 0.3)

    def edit_file(self) -> Row:
        target, blob = self.workspace / "edited.txt", self.workspace / "blob"
        target.write_text("state: one\n" + CONTENT)
        words = ["one", "two"]

        def edit() -> None:
            self.stream.asks(
                "edit_file", path="edited.txt", old_text=f"state: {words[0]}", new_text=f"state: {words[1]}"
            )
            words.reverse()

        def plain() -> None:
            for path in (blob, self.workspace / "plain"):
                atomic_write(path, CONTENT.encode())

        ours, theirs = both(edit, plain, 15, 20)
        return Row("edit_file", ours, "two plain atomic writes", theirs, 1.3)

    def list_dir(self) -> Row:
        directory = self.workspace / "many"
        directory.mkdir()
        for number in range(LISTED):
            (directory / f"f{number}").touch()

        def listed() -> str:
            answer: str = self.stream.asks("list_dir", path="many", max_entries=LISTED)["result"]
            return answer

        if len(json.loads(listed())["entries"]) != LISTED:
            raise RuntimeError("not all were listed")

        def plain() -> list[str]:
            with os.scandir(directory) as entries:
                return sorted(entry.name + "/" * entry.is_dir() for entry in entries)

        ours, theirs = both(listed, plain, 11, 1)
        return Row(f"list_dir of {LISTED}", ours, "os.scandir, sorted", theirs, 1.5)

    def search_files(self) -> Row | None:
        if shutil.which("rg") is None:
            return None
        tree = self.workspace / "tree"
        for number in range(self.files):
            directory = tree / f"d{number // 1000}" / f"e{number // 50}"
            if number % 50 == 0:
                directory.mkdir(parents=True)
            (directory / f"f{number}.txt").write_text(
                f"{CONTENT[:800]}needle {number}\n" if number % 500 == 0 else CONTENT[:800]
            )
        command = [
            "rg",
            "-j1",
            "--no-ignore",
            "--hidden",
            "--count-matches",
            "--no-filename",
            "needle",
            str(tree),
        ]

        def theirs() -> int:
            return sum(map(int, subprocess.run(command, capture_output=True, check=True).stdout.split()))

        def ours() -> int:
            answer = self.stream.asks(
                "search_files", pattern="needle", path="tree", format="json", max_matches=500
            )
            total: int = json.loads(answer["result"])["total_count"]
            return total

        if ours() != theirs():
            raise RuntimeError("the two searches differ")
        took, over = both(ours, theirs, 5, 1)
        return Row(f"search_files over {self.files}", took, "rg -j1 --no-ignore --hidden", over, 3)


ROWS: dict[str, Callable[[Bench], Row | None]] = {
    "one-shot": Bench.one_shot,
    "read": Bench.read_file,
    "edit": Bench.edit_file,
    "list": Bench.list_dir,
    "search": Bench.search_files,
}


def atomic_write(path: Path, content: bytes) -> None:
    """A temp file, fsync, rename, fsync of the directory, as everybody would."""
    temporary = f"{path}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, content)
    os.fsync(fd)
    os.close(fd)
    os.rename(temporary, path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", default=os.path.expanduser("~"), help="where to work: a disk, not memory"
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--only", choices=ROWS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(dir=options.directory, prefix="corral-bench-"))
    bench = Bench(top, options.files)
    missed = False
    try:
        for name, measure in ROWS.items():
            if options.only not in (None, name):
                continue
            row = measure(bench)
            if row is None:
                print(f"{name}: not measured, this host lacks what to compare it with")
                continue
            missed = missed or row.value > row.at_most
            if options.json:
                print(json.dumps({**row._asdict(), "value": row.value}))
            else:
                over = f", {row.over}: {row.over_milliseconds:.2f} ms" if row.over else ""
                unit = "x" if row.over else " ms"
                print(
                    f"{row.what}: {row.milliseconds:.2f} ms{over}   {row.value:.2f}{unit} (at most {row.at_most}{unit})"
                )
    finally:
        bench.stream.close()
        shutil.rmtree(top)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
