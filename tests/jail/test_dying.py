"""Nothing outlives its run: not the launcher's death, not the caller's, not the end of the thread that spawned it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from cases import case
from corral.jail.spawn import Run, Streams
from jail.fences import without
from jail.inline import inline_plan, run_inline, words
from jail.world import ENVIRONMENT, World, carrying, eventually, new_mark, python

pytestmark = pytest.mark.jail

TIMES = int(os.environ.get("CORRAL_TEST_KILLS", "300"))
# A tree with everything that tries to stay: a child, one in a session of its own, one forked twice.
TREE = (
    "sleep 300 & setsid sh -c 'sleep 300; :' \"$0\" & (sh -c 'sleep 300; :' \"$0\" &) ; echo up; sleep 300; :"
)


def end(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_up_time(command: list[str]) -> float:
    """How long this launch takes to its first output, here and now."""
    started = time.monotonic()
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        taken = time.monotonic() - started
        run.kill()
    return taken


def test_a_launcher_killed_at_any_moment_leaves_nothing_in_the_namespaces_tier(world: World) -> None:
    mark, started = new_mark(), 0
    with inline_plan(world.workspace, ["sh", "-c", TREE, mark], backend="namespaces") as plan:
        command = words(plan)
        whole = max(start_up_time(command) for _ in range(3))
        for turn in range(TIMES):
            with subprocess.Popen(
                command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
            ) as run:
                time.sleep(random.Random(turn).uniform(0, 2 * whole))
                run.kill()
                # The pipe ends only when everyone who could hold it is gone.
                assert run.stdout is not None
                started += run.stdout.read() == b"up\n"
    try:
        assert eventually(lambda: not carrying(mark), 1)
    finally:
        end(carrying(mark))
    # Killed before as well as after the command began, or only one half was tried.
    assert 0 < started < TIMES


def test_a_launcher_killed_at_any_moment_takes_the_command_along_in_the_landlock_tier(world: World) -> None:
    """The command itself; what it started may stay, and the security model says so."""
    mark = new_mark()
    source = "import time; print('up', flush=True); time.sleep(300)"
    with inline_plan(world.workspace, python(source, mark), backend="landlock") as plan:
        command = words(plan)
        whole = max(start_up_time(command) for _ in range(3))
        for turn in range(TIMES // 3):
            with subprocess.Popen(
                command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            ) as run:
                time.sleep(random.Random(turn).uniform(0, 1.5 * whole))
                run.kill()
    try:
        assert eventually(lambda: not carrying(mark), 1)
    finally:
        end(carrying(mark))


CALLER = """
import sys
from corral import LocalEnvironment, Policy
with LocalEnvironment(sys.argv[1], Policy.workspace_write(backend=sys.argv[2])) as environment:
    environment.run(["sh", "-c", sys.argv[3], sys.argv[4][::-1]])
"""


@case("peers-I14")
def test_the_whole_tree_is_dead_a_second_after_its_caller_was_killed(backend: str, world: World) -> None:
    mark = new_mark()
    # Handed over backwards: the caller itself is not to be found by it.
    command = [sys.executable, "-c", CALLER, str(world.workspace), backend, TREE, mark[::-1]]
    with subprocess.Popen(command) as caller:
        try:
            assert eventually(lambda: len(carrying(mark)) >= 3, 10)
        finally:
            caller.kill()
    try:
        assert eventually(lambda: not carrying(mark), 1)
    finally:
        end(carrying(mark))


def test_a_run_goes_on_when_the_thread_that_spawned_it_has_ended(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        plan = environment.plan(["sh", "-c", "sleep 0.3; echo still here"])
        runs: list[Run] = []

        def spawn() -> None:
            runs.append(Run(plan, plan.encode(), ENVIRONMENT, Streams(None, False, 1024), 10))

        thread = threading.Thread(target=spawn)
        thread.start()
        thread.join()
        outcome = runs[0].finish()
    assert (outcome.wait_status, outcome.stdout.content()) == (0, b"still here\n")


COMETS = """
import os, sys, time
for _ in range(16):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
print("launched", flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0.1", "300"])
def test_processes_that_fork_and_exit_without_end_are_caught(
    backend: str, world: World, seconds: str
) -> None:
    """Ended by the command's own end, and by a time-out."""
    mark = new_mark()
    with world.environment(backend) as environment:
        done = environment.run(python(COMETS, seconds, mark), timeout=1.5)
    try:
        assert done.stdout == "launched\n"
        assert done.timed_out == (seconds == "300")
        assert carrying(mark) == []
    finally:
        end(carrying(mark))


@case("peers-I13")
@pytest.mark.parametrize("timeout", [None, 1.0])
def test_what_left_its_session_or_forked_twice_is_gone_when_the_call_returns(
    backend: str, world: World, timeout: float | None
) -> None:
    mark = new_mark()
    tree = TREE if timeout else TREE.replace("; sleep 300; :", "")
    with world.environment(backend) as environment:
        done = environment.run(["sh", "-c", tree, mark], timeout=timeout)
    try:
        assert carrying(mark) == []
        assert done.stdout == "up\n"
        assert done.timed_out == (timeout is not None)
    finally:
        end(carrying(mark))


def test_what_an_interrupted_call_started_is_gone_when_the_exception_arrives(
    backend: str, world: World
) -> None:
    mark = new_mark()
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        if eventually(lambda: len(carrying(mark)) >= 3):
            signal.pthread_kill(main, signal.SIGINT)

    with world.environment(backend) as environment:
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                environment.run(["sh", "-c", TREE, mark], timeout=20)
        finally:
            thread.join()
    try:
        assert carrying(mark) == []
    finally:
        end(carrying(mark))


def test_without_a_supervisor_the_tree_would_outlive_its_run(world: World) -> None:
    """The fence of this file, shown to matter in the tier that has no PID namespace."""
    mark = new_mark()
    left = f"setsid sh -c 'sleep 300; :' {mark} > /dev/null 2>&1 & echo up"
    with inline_plan(world.workspace, ["sh", "-c", left], backend="landlock") as plan:
        assert run_inline(plan).stdout == "up\n"
        assert carrying(mark) == []
        assert run_inline(plan, weaken=without("supervise")).stdout == "up\n"
        try:
            deadline = time.monotonic() + 5  # it may be on its way to its own name still
            while not carrying(mark) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(carrying(mark)) >= 1
        finally:
            parents = carrying(mark)
            children = [pid for parent in parents for pid in children_of(parent)]
            end(parents + children)


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []
