"""How launch.py measures: rounds of shuffled launches, jobs on files inside and outside, a sleeping jail."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from corral import CorralError, LocalEnvironment, Policy

Case = tuple[str, str, float | None]  # what, over what, at most
Job = tuple[str, str]  # name, shell line
Once = Callable[[], float]  # does it, and returns the seconds it took

Times = dict[str, list[tuple[float, float]]]  # seconds until it returned, and until all of it was gone

WARM_UP = 3
LONGEST_LEAVING = 0.01


class Row(NamedTuple):
    """``value``: the median, or the best of a job. ``ratio``: the median of the ratios within a round; ``gone_ratio``:
    the same until all its processes are gone, which may be after the call returned."""

    what: str
    value: float
    over: str
    target: float | None
    unit: str = "ms"
    over_value: float | None = None
    ratio: float | None = None
    gone_ratio: float | None = None


class Table(NamedTuple):
    uid: int
    user: str
    rows: list[Row]
    notes: list[str]


# ---- one launch ----


def outside(argv: list[str], **options: object) -> Once:
    def once() -> float:
        started = time.perf_counter()
        done = subprocess.run(argv, **options)  # type: ignore[call-overload]
        took = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{argv[0]}: exit code {done.returncode}: {done.stderr!r}")
        return took

    return once


def captured(argv: list[str], **options: object) -> Once:
    """What a jailed run does too: output kept, nothing to read."""
    return outside(argv, capture_output=True, stdin=subprocess.DEVNULL, **options)


def inside(environment: LocalEnvironment, argv: list[str]) -> Once:
    def once() -> float:
        started = time.perf_counter()
        done = environment.run(argv)
        took = time.perf_counter() - started
        if done.exit_code:
            raise RuntimeError(f"{argv[0]}: exit code {done.exit_code}: {done.stderr_bytes!r}")
        return took

    return once


def progress(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


# ---- launches ----


def launches(
    cases: tuple[Case, ...],
    bwrap: tuple[tuple[str, ...], ...],
    workspace: Path,
    rounds: int,
    large: int,
    notes: list[str],
) -> list[Row]:
    wanted = {name for what, over, _ in cases for name in (what, over)}
    contestants: dict[str, Once] = {}
    environments: list[LocalEnvironment] = []
    held: list[subprocess.Popen[bytes]] = []
    try:
        for name, make in _makers(bwrap, workspace, large, environments, held).items():
            if name not in wanted:
                continue
            try:
                contestants[name] = make()
                for _ in range(WARM_UP):
                    contestants[name]()
            except (CorralError, RuntimeError, OSError) as error:
                contestants.pop(name, None)
                notes.append(f"{name}: not on this host: {error}")
        if contestants:
            progress(f"{rounds} rounds of {len(contestants)} launches")
        times = interleaved(contestants, rounds, settle)
    finally:
        for environment in environments:
            environment.close()
        for process in held:
            process.communicate()
    return [_launch_row(case, times) for case in cases if case[0] in times and case[1] in times]


def interleaved(contestants: dict[str, Once], rounds: int, between: Callable[[], None]) -> Times:
    """Everybody once a round, each round in another order: what one leaves for the kernel to do hits all alike."""
    times: Times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name in random.sample(list(contestants), len(contestants)):
            took = contestants[name]()
            over = time.perf_counter()
            between()
            times[name].append((took, took + time.perf_counter() - over))
    return times


def settle() -> None:
    """Until a supervisor that tells how its run ended, and only then takes the jail down, is gone too: it must not
    run into the next one's time. A child that stays (a holder of namespaces) is not waited for."""
    until = time.perf_counter() + LONGEST_LEAVING
    with contextlib.suppress(ChildProcessError):
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.perf_counter() > until:
                return
            time.sleep(20e-6)


def _launch_row(case: Case, times: Times) -> Row:
    what, over, target = case
    pairs = list(zip(times[what], times[over], strict=True))
    return Row(
        what,
        median(took for took, _ in times[what]) * 1e3,
        over,
        target,
        over_value=median(took for took, _ in times[over]) * 1e3,
        ratio=median(a[0] / b[0] for a, b in pairs),
        gone_ratio=median(a[1] / b[0] for a, b in pairs),
    )


def _makers(
    bwrap: tuple[tuple[str, ...], ...],
    workspace: Path,
    large: int,
    environments: list[LocalEnvironment],
    held: list[subprocess.Popen[bytes]],
) -> dict[str, Callable[[], Once]]:
    """``large``: how many files a large home has. What is put into the lists is ended by the caller."""

    def jail(**fields: str) -> Callable[[], Once]:
        def make() -> Once:
            environments.append(LocalEnvironment(workspace, Policy.workspace_write(**fields)))
            return inside(environments[-1], ["true"])

        return make

    def casual() -> Once:
        environments.append(LocalEnvironment(workspace, Policy.casual(jail="library")))
        return inside(environments[-1], ["true"])

    def joining() -> Once:
        held.append(_held([*in_casual, "-j", "held", "--", "cat"], workspace))
        return captured([*in_casual, "-j", "held", "--", "true"], cwd=workspace)

    def with_home_of(count: int) -> Callable[[], Once]:
        def make() -> Once:
            home = fill_home(workspace.parent / f"home-{count}", count)
            variables = {**os.environ, "HOME": str(home)}
            return captured(
                [*in_casual, "-j", f"of-{count}", "--", "true"], cwd=home / "project", env=variables
            )

        return make

    corral = f"{sys.prefix}/bin/corral"
    in_casual = [corral, "run", "-m", "casual"]
    run = [corral, "run", "-m", "workspace-write", "--", "true"]
    bare = [os.path.realpath(sys.executable), "-I", "-S", "-c", "pass"]
    return {
        "subprocess.run, captured": lambda: captured(["true"], cwd=workspace),
        "subprocess.run, plain": lambda: outside(["true"]),
        "true, landlock": jail(backend="landlock"),
        "true, namespaces, network open": jail(backend="namespaces", network="open"),
        "true, namespaces, network off": jail(backend="namespaces", network="off"),
        "bwrap, network open": lambda: _peer(bwrap, workspace, "open"),
        "bwrap, network off": lambda: _peer(bwrap, workspace, "off"),
        "python3 -I -S -c pass": lambda: captured(bare, cwd=workspace),
        "corral run -- true": lambda: captured(run, cwd=workspace),
        "corral run -m casual -- true": lambda: captured([*in_casual, "--", "true"], cwd=workspace),
        "the same, joining a run": joining,
        "the same, library": casual,
        "the same, a home of 10 files": with_home_of(10),
        "the same, a large home": with_home_of(large),
    }


def _held(argv: list[str], workspace: Path) -> subprocess.Popen[bytes]:
    """A run that lasts until its input is closed, and has begun."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, cwd=workspace, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    if process.stdout.read(1) != b"\n":
        raise RuntimeError(f"{argv[0]}: exit code {process.wait()}")
    return process


def fill_home(home: Path, count: int) -> Path:
    """So many names in it, a thousand to a directory; files are links of one another, as far as a file system lets."""
    (home / "project").mkdir(parents=True)
    for number in range(count):
        directory, name = home / f"d{number // 1000}", f"{number % 1000}"
        if number % 1000 == 0:
            directory.mkdir()
            (directory / name).touch()
        else:
            os.link(directory / "0", directory / name)
    return home


def _peer(line: tuple[tuple[str, ...], ...], workspace: Path, network: str) -> Once:
    """The peer's command line, with what Corral does in the same place read from Corral's own plan."""
    policy = Policy.workspace_write(backend="namespaces", network=network)
    with LocalEnvironment(workspace, policy) as environment:
        steps = environment.plan(["true"]).steps
    content = next(bytes.fromhex(words[1]) for words, _ in steps if words[0] == "seccomp")
    program = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(program, content)
    filled = {
        "{--unshare-net}": ["--unshare-net"] if network == "off" else [],
        "{--dev /dev}": ["--dev", "/dev"] if os.getuid() == 0 else ["--dev-bind", "/dev", "/dev"],
        "{--tmpfs HIDDEN}": [word for path in _hidden(workspace) for word in _covering(path)],
        "{workspace}": [str(workspace)],
        "{filter}": [str(program)],
    }
    argv = [word for option in line for part in option for word in filled.get(part, [part])]
    start = captured(argv, pass_fds=(program,))

    def once() -> float:
        os.lseek(program, 0, os.SEEK_SET)  # it reads on from where the last one ended
        return start()

    return once


def _hidden(workspace: Path) -> Iterator[Path]:
    """What Corral hides and what is there to be hidden."""
    explain = [f"{sys.prefix}/bin/corral", "explain", "--json", "-m", "workspace-write", "--", "true"]
    told = subprocess.run(explain, cwd=workspace, capture_output=True, check=True).stdout
    for name in json.loads(told)["hidden"]:
        if os.path.lexists(name):
            yield Path(name)


def _covering(path: Path) -> list[str]:
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]


# ---- work on files ----

TREE = (40, 50, 2000)  # directories, files in each, bytes of each
UNIT = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n" + "".join(
    f"int part{n}(const char *s) {{ return (int)strlen(s) + printf(s, {n}); }}\n" for n in range(40)
)


def prepare_workspace(workspace: Path) -> None:
    directories, count, size = TREE
    for d in range(directories):
        directory = workspace / "tree" / f"d{d}"
        directory.mkdir(parents=True)
        for f in range(count):
            (directory / f"f{f}.txt").write_bytes(random.randbytes(size // 2).hex().encode())
    (workspace / "unit.c").write_text(UNIT)
    (workspace / ".gitignore").write_text("out/\n*.tar\n")
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "tree"]):
        subprocess.run(["git", *words], cwd=workspace, check=True)
    subprocess.run(["tar", "-cf", "tree.tar", "tree"], cwd=workspace, check=True)
    (workspace / "out").mkdir()


def files(
    jobs: tuple[Job, ...],
    target: float,
    only: str,
    workspace: Path,
    seconds: float,
    times: int,
    notes: list[str],
) -> list[Row]:
    tiers = ("landlock", "namespaces")
    chosen = {name: [tier for tier in tiers if only in f"{name}, {tier}"] for name, _ in jobs}
    if not any(chosen.values()):
        return []
    prepare_workspace(workspace)
    rows: list[Row] = []
    environments: dict[str, LocalEnvironment] = {}
    try:
        for tier in tiers:
            try:
                environments[tier] = LocalEnvironment(workspace, Policy.workspace_write(backend=tier))
            except CorralError as error:
                notes.append(f"files, {tier}: not on this host: {error}")
        for name, line in jobs:
            held = {tier: environments[tier] for tier in chosen[name] if tier in environments}
            if held:
                progress(name)
                rows += _job_rows(name, line, target, held, workspace, seconds, times)
    finally:
        for environment in environments.values():
            environment.close()
    return rows


def _job_rows(
    name: str,
    line: str,
    target: float,
    environments: dict[str, LocalEnvironment],
    workspace: Path,
    seconds: float,
    times: int,
) -> list[Row]:
    argv = _long_enough(line, workspace, seconds)
    work = {"outside": captured(argv, cwd=workspace)}
    idle = {"outside": captured(["true"], cwd=workspace)}
    for tier, environment in environments.items():
        work[tier], idle[tier] = inside(environment, argv), inside(environment, ["true"])
    launch = _best(interleaved(idle, 20, settle))
    best = {tier: took - launch[tier] for tier, took in _best(interleaved(work, times, os.sync)).items()}
    out = best["outside"] * 1e3
    inner = {tier: best[tier] * 1e3 for tier in environments}
    return [
        Row(f"{name}, {tier}", ms, "outside", target, over_value=out, ratio=ms / out)
        for tier, ms in inner.items()
    ]


def _best(times: Times) -> dict[str, float]:
    return {name: min(took for took, _ in taken) for name, taken in times.items()}


def _long_enough(line: str, workspace: Path, seconds: float) -> list[str]:
    """The job, repeated in one shell until it takes that long outside even on a better moment than this."""

    def repeated(count: int) -> list[str]:
        return ["sh", "-ec", f"n={count}; while [ $n -gt 0 ]; do {line}; n=$((n - 1)); done"]

    captured(repeated(1), cwd=workspace)()  # what only the first one has to do
    count = 1
    while (took := captured(repeated(count), cwd=workspace)()) < 1.2 * seconds:
        count = math.ceil(count * min(10, 1.4 * seconds / took))
    return repeated(count)


# ---- memory ----


def memory(what: str, target: float, workspace: Path, notes: list[str]) -> list[Row]:
    try:
        environment = LocalEnvironment(workspace, Policy.workspace_write(backend="namespaces"))
    except CorralError as error:
        notes.append(f"{what}: not on this host: {error}")
        return []
    with environment:
        environment.run(["true"])
        jail = threading.Thread(target=environment.run, args=(["sleep", "1"],))
        jail.start()
        try:
            time.sleep(0.5)
            (supervisor,) = _children(os.getpid())
            (init,) = _children(supervisor)
            kilobytes, source = _resident_kb(init)
        finally:
            jail.join()
    return [Row(what, kilobytes, source, target, unit="KB")]


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # gone meanwhile
            if int(after_name[1]) == parent and after_name[0] != "Z":
                found.append(int(entry.name))
    return found


def _resident_kb(pid: int) -> tuple[float, str]:
    """Exact where we may look. PID 1 lets nobody but root; for others there are the kernel's rough counters."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(float(line.split()[1]) for line in file if line.startswith("Rss:")), "smaps_rollup"
    except OSError:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024, "statm"
