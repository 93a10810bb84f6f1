"""Limits bind what is inside, and never raise what the caller has."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from corral import Limits
from jail.world import World, python

pytestmark = pytest.mark.jail


def test_a_file_grows_to_its_limit_and_no_further(backend: str, world: World) -> None:
    with world.environment(backend, limits=Limits(file_size=4096)) as environment:
        done = environment.run(["sh", "-c", "head -c 4096 /dev/zero > whole; head -c 4097 /dev/zero > more"])
    assert done.exit_code != 0
    assert (world.workspace / "whole").stat().st_size == 4096
    assert (world.workspace / "more").stat().st_size == 4096


def test_processor_time_is_bounded(backend: str, world: World) -> None:
    with world.environment(backend, limits=Limits(cpu=1)) as environment:
        done = environment.run(python("while True: pass"), timeout=10)
        assert (done.timed_out, done.signal) in ((False, signal.SIGXCPU), (False, signal.SIGKILL))
        assert environment.run(["sleep", "1.2"]).ok


def test_open_files_are_bounded(backend: str, world: World) -> None:
    count = """
import os
fds = []
try:
    while True:
        fds.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    print(max(fds) + 1)
"""
    with world.environment(backend, limits=Limits(open_files=40)) as environment:
        assert environment.run(python(count)).stdout == "40\n"


FORK = """
import os, sys, time
count = 0
try:
    while count < int(sys.argv[1]):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count)
"""


def test_processes_are_bounded_in_the_namespaces_tier(world: World) -> None:
    """Root is bound by the namespace's pid_max, which cannot be below 301; so that is the number here."""
    with world.environment("namespaces", limits=Limits(processes=320)) as environment:
        bounded = int(environment.run(python(FORK, "1000"), timeout=20).stdout)
        assert 280 <= bounded <= 320
    with world.environment("namespaces") as environment:
        assert environment.run(python(FORK, "400"), timeout=20).stdout == "400\n"


def test_memory_of_one_process_is_bounded(backend: str, world: World) -> None:
    with world.environment(backend, limits=Limits(memory=200 << 20)) as environment:
        assert environment.run(python("bytearray(100 << 20)")).ok
        assert not environment.run(python("bytearray(400 << 20)")).ok


TOGETHER = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        block = bytearray(os.urandom(1 << 16) * (16 * 60))
        time.sleep(5)
        os._exit(0)
time.sleep(2)
"""


def test_memory_of_the_whole_tree_is_bounded(backend: str, world: World) -> None:
    """Each process stays below the limit; together they pass it, and the run is ended."""
    with world.environment(backend, limits=Limits(memory=200 << 20)) as environment:
        many = environment.run(python(TOGETHER, "6"), timeout=20)
        assert (many.over, many.ok) == ("memory", False)
        one = environment.run(python(TOGETHER, "1"), timeout=20)
        assert (one.over, one.ok) == ("", True)


def test_memory_files_count_where_they_are_private(world: World) -> None:
    fill = "head -c 300M /dev/zero > /dev/shm/x"
    with world.environment("namespaces", limits=Limits(memory=200 << 20)) as environment:
        assert not environment.shell(fill).ok
        assert environment.shell(fill.replace("300M", "100M")).ok


def test_wall_clock_time_is_bounded_and_a_call_may_only_shorten_it(backend: str, world: World) -> None:
    with world.environment(backend, limits=Limits(wall=0.6)) as environment:
        for timeout in (None, 20):
            done = environment.run(["sleep", "5"], timeout=timeout)
            assert done.timed_out
            assert done.duration < 2
        assert environment.run(["sleep", "5"], timeout=0.1).duration < 0.6
        assert environment.run(["true"]).ok


# Started with lower limits than the policy names, and prints what is left inside.
CALLER = """
import json, resource, sys
from corral import Limits, LocalEnvironment, Policy
for name, value in (("NOFILE", 500), ("FSIZE", 1 << 20), ("CPU", 30)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
wide = Limits(open_files=1000, file_size=1 << 30, cpu=1000)
with LocalEnvironment(sys.argv[1], Policy.workspace_write(backend=sys.argv[2], limits=wide)) as environment:
    print(environment.run(["sh", "-c", "ulimit -n; ulimit -f; ulimit -t; ulimit -Hn; ulimit -Hf; ulimit -Ht"]).stdout)
"""


def test_a_limit_never_raises_what_the_caller_has(backend: str, world: World) -> None:
    command = [sys.executable, "-c", CALLER, str(world.workspace), backend]
    seen = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout.split()
    blocks = str((1 << 20) // 512)  # sh counts in those
    assert seen == ["500", blocks, "30"] * 2


def test_nothing_inside_raises_a_limit_again(backend: str, world: World) -> None:
    raise_it = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))"
    with world.environment(backend, limits=Limits(file_size=4096)) as environment:
        assert "ValueError" in environment.run(python(raise_it)).stderr


def test_without_a_limit_the_callers_own_hold(backend: str, world: World) -> None:
    show = "import json, resource; print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))"
    with world.environment(backend) as environment:
        inside = json.loads(environment.run(python(show)).stdout)
    assert tuple(inside) == resource.getrlimit(resource.RLIMIT_NOFILE)
    assert os.getpid() > 0
