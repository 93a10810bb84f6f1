"""What a verdict costs. Prints median and p99 per command over the everyday corpus, and how time grows with length.

Targets: median at most 100 us, p99 at most 1 ms, and a line of 1 MB at most 12 times one of 100 KB. Exits 1 if missed.

    python benchmarks/risk.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from corral.risk import classify

ROUNDS = 7
MEDIAN_US, P99_US, RATIO = 100, 1000, 12

LINES: dict[str, Callable[[int], str]] = {
    "one command, many words": lambda size: "echo" + " word" * (size // 5),
    "many commands": lambda size: "ls -l;" * (size // 6),
    "one quoted word": lambda size: "echo '" + "x" * size + "'",
    "many substitutions": lambda size: "echo" + " $(ls)" * (size // 6),
}


def seconds(command: str) -> float:
    start = time.perf_counter()
    classify(command)
    return time.perf_counter() - start


def work(command: str) -> float:
    start = time.process_time()
    classify(command)
    return time.process_time() - start


def main() -> int:
    # In place of this directory, where this very file would be found as `risk`.
    sys.path[0] = str(Path(__file__).resolve().parent.parent / "tests")
    from risk.everyday import everyday

    commands = [command for _, _, command in everyday()]
    for command in commands:
        classify(command)
    best = sorted(min(seconds(command) for _ in range(ROUNDS)) * 1e6 for command in commands)
    median, p99 = statistics.median(best), best[int(len(best) * 0.99)]
    print(f"{len(commands)} everyday commands, best of {ROUNDS} each")
    print(f"median {median:7.1f} us   target {MEDIAN_US}")
    print(f"p99    {p99:7.1f} us   target {P99_US}")
    missed = median > MEDIAN_US or p99 > P99_US
    for name, line in LINES.items():
        short, long = line(100_000), line(1_000_000)
        # Processor time, and turn by turn: what else the machine does must not look like growth.
        turns = [(work(short), work(long), work(short)) for _ in range(3)]
        small = min(used for before, _, after in turns for used in (before, after))
        large = min(middle for _, middle, _ in turns)
        missed = missed or large / small > RATIO
        print(f"{name:<24} 100 KB {small * 1e3:7.1f} ms   1 MB {large * 1e3:7.1f} ms", end="")
        print(f"   ratio {large / small:5.1f}   target {RATIO}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
