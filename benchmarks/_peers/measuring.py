"""What is measured. All contestants of a table take turns, each round in another order, so that the machine's moods
hit all alike; a ratio is the median of the ratios within a round."""

from __future__ import annotations

import math
import random
import resource
import subprocess
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

from _measure import progress

from .contestants import PLAIN, REFERENCES, Contestant, Place
from .libraries import Library
from .rates import finished_in

Table = dict[str, dict[str, float]]  # contestant → what → value

TRUE = ["true"]
WARM_UP = 3
WORKERS = 2
CROWD = 200
SLOW = 4.0  # seconds: who takes longer for a job does it once
JOBS: dict[str, str] = {
    "git status": "git status --porcelain > out/status",
    # Not every contestant gives a temporary directory.
    "compile": "TMPDIR=$PWD/out gcc -c -o out/unit.o unit.c",
    "find": "find /usr/include /usr/share/doc -xdev -type f -size +100k > out/found",
    "tar": "tar -cf out/tree.tar tree",
    # Over what is there: ext4 is slow to use again the inodes of files that were just removed.
    "untar": "tar --overwrite -xf tree.tar -C out",
    "imports": "/usr/bin/python3 -c 'import asyncio, json, email.message, http.client, unittest'",
}


class Effort:
    """How much of everything."""

    def __init__(self, quick: bool) -> None:
        self.launches = 8 if quick else 40
        self.calls = 20 if quick else 150
        self.slices, self.slice_seconds = (1, 0.3) if quick else (3, 0.7)
        self.job_rounds, self.job_seconds = (2, 0.05) if quick else (4, 0.2)
        self.crowds = 1 if quick else 3


def in_turn(names: list[str], rounds: int, once: Callable[[str], float]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in random.sample(names, len(names)):
            taken[name].append(once(name))
    return taken


def summary(taken: dict[str, list[float]]) -> Table:
    """In milliseconds, beside the plain ones of the same rounds."""
    plain = taken[PLAIN]
    return {
        name: {
            "median": median(times) * 1e3,
            "p95": _p95(times) * 1e3,
            "ratio": median(a / b for a, b in zip(times, plain, strict=False)),
        }
        for name, times in taken.items()
    }


def _p95(times: list[float]) -> float:
    return quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]


def run_line(words: list[str], argv: list[str], place: Place) -> str:
    done = subprocess.run(
        [*words, *argv], cwd=place.workspace, capture_output=True, stdin=subprocess.DEVNULL, text=True
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        raise RuntimeError(f"{words[0] if words else argv[0]}: exit code {done.returncode}: {said}")
    return done.stdout


# ---- launches ----


def command_lines(contestants: list[Contestant], place: Place, effort: Effort) -> Table:
    lines = {one.name: (one.words(place), TRUE) for one in contestants if one.words}
    lines |= {name: ([], argv) for name, argv in REFERENCES}
    used = dict.fromkeys(lines, 0.0)

    def once(name: str) -> float:
        before, started = _children_cpu(), time.perf_counter()
        run_line(*lines[name], place)
        took = time.perf_counter() - started
        used[name] += _children_cpu() - before
        return took

    in_turn(list(lines), WARM_UP, once)
    used.update(dict.fromkeys(lines, 0.0))
    progress(f"{effort.launches} rounds of {len(lines)} command lines")
    table = summary(in_turn(list(lines), effort.launches, once))
    for name, row in table.items():
        row["cpu"] = used[name] / effort.launches * 1e3
    return table


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def library_calls(libraries: dict[str, Library], effort: Effort) -> Table:
    spent: dict[str, list[float | None]] = {name: [] for name in libraries}

    def once(name: str) -> float:
        answer = libraries[name].ask("run", argv=TRUE)
        if answer["code"]:
            raise RuntimeError(f"{name}: exit code {answer['code']}")
        spent[name].append(answer["cpu"])
        return float(answer["seconds"])

    in_turn(list(libraries), WARM_UP, once)
    progress(f"{effort.calls} rounds of {len(libraries)} library calls")
    table = summary(in_turn(list(libraries), effort.calls, once))
    for name, row in table.items():
        first, last = spent[name][WARM_UP - 1], spent[name][-1]
        if first is not None and last is not None:
            row["cpu"] = (last - first) / effort.calls * 1e3
    return table


# ---- throughput ----


def throughput(
    contestants: list[Contestant], libraries: dict[str, Library], place: Place, effort: Effort
) -> tuple[Table, Table]:
    """Finished in a second with two workers: command lines, and library calls."""
    lines = {one.name: one.words(place) for one in contestants if one.words}

    def by_line(name: str) -> float:
        return finished_in(lambda: run_line(lines[name], TRUE, place), effort.slice_seconds, WORKERS)

    def by_call(name: str) -> float:
        answer = libraries[name].ask("rate", seconds=effort.slice_seconds, threads=WORKERS)
        return float(answer["rate"])

    progress(f"{WORKERS} workers, {effort.slices} slices each")
    tables = []
    for names, once in ((list(lines), by_line), (list(libraries), by_call)):
        taken = in_turn(names, effort.slices, once)
        tables.append({name: {"rate": median(rates)} for name, rates in taken.items()})
    return tables[0], tables[1]


# ---- work inside ----


def work_inside(contestants: list[Contestant], place: Place, effort: Effort) -> dict[str, Table]:
    """The time is taken by the shell in the jail: no launch is in it."""
    lines = {one.name: one.words(place) for one in contestants if one.words}
    tables = {}
    for job, line in JOBS.items():
        argv = _long_enough(line, place, effort.job_seconds)
        once = _job(lines, argv, place)
        progress(f"{job}, {effort.job_rounds} rounds")
        tables[job] = summary(in_turn(list(lines), effort.job_rounds, once))
    return tables


def _job(lines: dict[str, list[str]], argv: list[str], place: Place) -> Callable[[str], float]:
    slow: dict[str, float] = {}

    def once(name: str) -> float:
        if name in slow:
            return slow[name]
        try:
            took = _microseconds(run_line(lines[name], argv, place)) / 1e6
        except RuntimeError as error:
            progress(f"{name}: {error}")
            took = slow[name] = math.nan
        if took > SLOW:
            slow[name] = took
        return took

    return once


def _timed(line: str, count: int) -> list[str]:
    work = f"for ((n = 0; n < {count}; n++)); do {line}; done"
    return ["bash", "-ec", f"s=$EPOCHREALTIME; {work}; e=$EPOCHREALTIME; echo $((${{e/./}} - ${{s/./}}))"]


def _microseconds(output: str) -> float:
    return float(output.strip().splitlines()[-1])


def _long_enough(line: str, place: Place, seconds: float) -> list[str]:
    run_line([], _timed(line, 1), place)  # what only the first one has to do
    once = _microseconds(run_line([], _timed(line, 1), place)) / 1e6
    return _timed(line, max(1, math.ceil(seconds / once)))


# ---- many at once, from an event loop ----


def crowds(libraries: dict[str, Library], effort: Effort) -> Table:
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in libraries}

    def once(name: str) -> float:
        if not answers[name] or answers[name][-1]["total"] < SLOW:
            answers[name].append(libraries[name].ask("crowd", count=CROWD))
        return float(answers[name][-1]["total"])

    progress(f"{CROWD} at once, {effort.crowds} times each")
    table = summary(in_turn(list(libraries), effort.crowds, once))
    for name, row in table.items():
        row["stall"] = median(answer["stall"] for answer in answers[name]) * 1e3
        row["failed"] = sum(answer["failed"] for answer in answers[name]) / len(answers[name])
    return table
