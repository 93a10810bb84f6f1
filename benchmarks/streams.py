"""Streams and launches from an event loop, each beside the same thing without a jail in the same round.

    python benchmarks/streams.py [--rounds N] [--json]

Throughput is what arrives from `dd bs=64k`, over a plain pipe read in the same way (more is better). Launches: 200 at
once from asyncio, over `create_subprocess_exec`; the total, and the longest stall of the loop (less is better).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from corral import AsyncLocalEnvironment, CorralError, LocalEnvironment, Policy
from corral.state import account_home

BACKENDS = ("namespaces", "landlock")
STREAM_BYTES = 512 << 20
CHUNK = 1 << 16
LAUNCHES = 200
PRINT = ["dd", "if=/dev/zero", f"bs={CHUNK}", f"count={STREAM_BYTES // CHUNK}", "status=none"]
TRUE = "/bin/true"

# What is measured, its ratio over the plain way in each round, the bound, and whether the ratio may be more or less.
Row = tuple[str, list[float], float, str]


# ---- streams: bytes a second ----


def plain_pipe() -> float:
    started = time.perf_counter()
    with subprocess.Popen(
        PRINT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        fd, got = process.stdout.fileno(), 0
        while chunk := os.read(fd, CHUNK):
            got += len(chunk)
    assert got == STREAM_BYTES
    return got / (time.perf_counter() - started)


def jailed_pipe(environment: LocalEnvironment) -> float:
    started = time.perf_counter()
    with environment.start(PRINT) as process:
        got = sum(len(output.data) for output in process)
    assert got == STREAM_BYTES
    return got / (time.perf_counter() - started)


async def plain_stream() -> float:
    started = time.perf_counter()
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*PRINT, stdout=pipe, stderr=pipe, stdin=null)
    assert process.stdout is not None
    got = 0
    while chunk := await process.stdout.read(CHUNK):
        got += len(chunk)
    await process.wait()
    assert got == STREAM_BYTES
    return got / (time.perf_counter() - started)


async def jailed_stream(environment: AsyncLocalEnvironment) -> float:
    started = time.perf_counter()
    got = 0
    async with await environment.start(PRINT) as process:
        async for output in process:
            got += len(output.data)
    assert got == STREAM_BYTES
    return got / (time.perf_counter() - started)


# ---- launches: seconds in all, and the longest stall of the loop ----


async def launches(once: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    longest, over = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not over:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.02)
    started = time.perf_counter()
    await asyncio.gather(*(once() for _ in range(LAUNCHES)))
    total = time.perf_counter() - started
    over = True
    await ticking
    return total, longest


async def plain_launch() -> None:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(TRUE, stdout=pipe, stderr=pipe, stdin=null)
    await process.communicate()
    assert process.returncode == 0


async def measure_loop(workspace: Path, backend: str, rounds: int) -> list[Row]:
    stream: list[float] = []
    total: list[float] = []
    stall: list[float] = []
    policy = Policy.workspace_write(backend=backend)
    async with AsyncLocalEnvironment(workspace, policy) as environment:

        async def jailed_launch() -> None:
            assert (await environment.run([TRUE])).exit_code == 0

        for _ in range(rounds):
            stream.append(1 / await plain_stream() * await jailed_stream(environment))
            plain, jailed = await launches(plain_launch), await launches(jailed_launch)
            total.append(jailed[0] / plain[0])
            stall.append(jailed[1] / plain[1])
    return [
        (f"{backend}: stream on the loop, over asyncio's", stream, 0.8, "at least"),
        (f"{backend}: {LAUNCHES} launches at once, in all", total, 1.5, "at most"),
        (f"{backend}: {LAUNCHES} launches at once, longest stall", stall, 0.3, "at most"),
    ]


def measure(workspace: Path, backend: str, rounds: int) -> list[Row]:
    with LocalEnvironment(workspace, Policy.workspace_write(backend=backend)) as environment:
        pairs = [(plain_pipe(), jailed_pipe(environment)) for _ in range(rounds)]
    first = (f"{backend}: stream, over a plain pipe", [b / a for a, b in pairs], 0.8, "at least")
    return [first, *asyncio.run(measure_loop(workspace, backend, rounds))]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="one object, for other programs")
    options = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="corral-bench-", dir=account_home()) as workspace:
        for backend in BACKENDS:
            try:
                rows += measure(Path(workspace), backend, options.rounds)
            except CorralError as error:
                print(f"{backend}: not here: {error}", file=sys.stderr)
    if options.json:
        print(json.dumps({what: {"ratios": ratios, "bound": bound} for what, ratios, bound, _ in rows}))
        return 0
    for what, ratios, bound, side in rows:
        met = median(ratios) >= bound if side == "at least" else median(ratios) <= bound
        print(f"{what:<54} {median(ratios):6.2f}x   {side} {bound}x   {'ok' if met else 'NOT MET'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
