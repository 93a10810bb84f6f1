"""A command that is talked to while it runs: its output as it comes, its input, signals, and its end."""

from __future__ import annotations

import resource
import signal
import threading
import time

import pytest

from cases import case
from corral import (
    PIPE,
    CommandNotFound,
    InputClosed,
    LocalEnvironment,
    Output,
    Policy,
    PolicyError,
    Process,
    StillRunning,
)
from jail.world import World, carrying, eventually, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

FLOOD = 100 << 20
TREE = (
    "sleep 300 & setsid sh -c 'sleep 300; :' \"$0\" & (sh -c 'sleep 300; :' \"$0\" &) ; echo up; sleep 300; :"
)


def text_of(outputs: list[Output], stream: str) -> str:
    return b"".join(data for name, data in outputs if name == stream).decode()


# ---- output ----


def test_output_comes_while_the_command_runs_and_the_streams_are_apart(backend: str, world: World) -> None:
    script = "echo one; read line; echo two >&2; read line; echo three"
    with no_leaks(world.base), world.environment(backend) as environment:
        with environment.start(["sh", "-c", script], stdin=PIPE) as process:
            assert process.read(10) == ("stdout", b"one\n")
            assert process.is_running
            process.write("go\n")
            two = process.read(10)
            assert two is not None
            assert (two.stream, two.data, two.text) == ("stderr", b"two\n", "two\n")
            process.write(b"go\n")
            assert list(process) == [("stdout", b"three\n")]
            done = process.wait()
        assert (done.exit_code, done.stdout, done.stderr) == (0, "one\nthree\n", "two\n")
        assert done.posture.mechanism == backend


def test_merged_streams_come_as_one_in_order(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        script = "for n in 1 2 3; do echo o$n; echo e$n >&2; done"
        with environment.start(["sh", "-c", script], stderr="merged") as process:
            outputs = list(process)
    assert text_of(outputs, "stdout") == "o1\ne1\no2\ne2\no3\ne3\n"
    assert text_of(outputs, "stderr") == ""


def test_what_nobody_read_is_in_the_result_to_the_limit(backend: str, world: World) -> None:
    with (
        world.environment(backend) as environment,
        environment.start(["sh", "-c", "seq 100000; echo last"], output_limit=10) as process,
    ):
        done = process.wait()
    assert done.stdout == "00000\nlast"[-9:] + "\n"
    assert done.stdout_bytes_dropped == 588895 + 5 - 10


def test_a_flood_is_bounded_in_memory_whether_it_is_read_or_not(backend: str, world: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = ["head", "-c", str(FLOOD), "/dev/zero"]
    with no_leaks(), world.environment(backend, output_limit=1 << 20) as environment:
        with environment.start(flood) as process:
            assert sum(len(output.data) for output in process) == FLOOD
        with environment.start(flood) as process:
            done = process.wait()
    assert (len(done.stdout_bytes), done.stdout_bytes_dropped) == (1 << 20, FLOOD - (1 << 20))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 << 10


@case("peers-L2")
@pytest.mark.soak
def test_ten_gigabytes_are_bounded_in_memory(backend: str, world: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        no_leaks(),
        world.environment(backend) as environment,
        environment.start(["head", "-c", str(100 * FLOOD), "/dev/zero"]) as process,
    ):
        assert sum(len(output.data) for output in process) == 100 * FLOOD
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_flood_on_one_stream_does_not_hold_up_the_other(backend: str, world: World) -> None:
    with (
        world.environment(backend) as environment,
        environment.start(["sh", "-c", "sleep 0.2; echo here >&2 & exec cat /dev/zero"]) as process,
    ):
        deadline = time.monotonic() + 20
        assert any(output == ("stderr", b"here\n") or time.monotonic() > deadline for output in process)
        assert time.monotonic() < deadline


def test_fifty_streams_at_once_each_get_their_own(backend: str, world: World) -> None:
    script = 'for n in 1 2 3; do echo "$0 $n"; read line; done'
    with no_leaks(world.base), world.environment(backend) as environment:
        processes = [environment.start(["sh", "-c", script, str(n)], stdin=PIPE) for n in range(50)]
        for turn in (1, 2, 3):
            for number, process in enumerate(processes):
                assert process.read(20) == ("stdout", f"{number} {turn}\n".encode())
            for process in processes:
                process.write("on\n")
        assert [process.wait().exit_code for process in processes] == [0] * 50


def test_a_command_that_closes_its_pipes_and_lives_on_has_no_more_output_and_is_waited_for(
    backend: str, world: World
) -> None:
    with (
        no_leaks(world.base),
        world.environment(backend) as environment,
        environment.start(["sh", "-c", "echo bye; exec >&- 2>&- <&-; sleep 0.4; exit 7"]) as process,
    ):
        assert [output.data for output in process] == [b"bye\n"]
        assert process.is_running
        with pytest.raises(StillRunning, match="still running"):
            process.wait(0.05)
        assert process.wait().exit_code == 7


def test_reading_with_a_time_to_wait_says_that_nothing_came(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(["sleep", "300"]) as process:
        started = time.monotonic()
        with pytest.raises(StillRunning):
            process.read(0.1)
        assert 0.09 < time.monotonic() - started < 5
        assert issubclass(StillRunning, TimeoutError)


# ---- input ----


def test_input_given_at_the_start_is_fed_and_ends_however_long_it_is(backend: str, world: World) -> None:
    content = b"0123456789abcdef" * (1 << 18)
    with world.environment(backend) as environment:
        with environment.start(["cat"], stdin=content) as process:
            assert b"".join(output.data for output in process) == content
        with environment.start(["cat"], stdin="text") as process:
            assert process.wait().stdout == "text"
        with environment.start(["cat"], stdin="") as process:
            assert process.wait().stdout == ""


def test_without_input_there_is_nothing_to_read_and_nothing_to_write_to(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(["cat"]) as process:
        with pytest.raises(InputClosed, match="closed"):
            process.write("x")
        assert process.wait().stdout == ""


def test_a_command_that_never_reads_its_input_ends_as_it_likes(backend: str, world: World) -> None:
    much = b"x" * (10 << 20)
    with no_leaks(world.base), world.environment(backend) as environment:
        with environment.start(["sleep", "0.2"], stdin=much) as process:
            assert process.wait().exit_code == 0
        with environment.start(["sleep", "0.3"], stdin=PIPE) as process:
            with pytest.raises(InputClosed, match="does not read"):
                process.write(much)
            assert process.wait().exit_code == 0
        with environment.start(["sleep", "300"], stdin=PIPE, timeout=0.3) as process:
            with pytest.raises(InputClosed):
                process.write(much)
            assert process.wait().timed_out


def test_one_thread_may_write_without_end_while_another_reads(backend: str, world: World) -> None:
    size, pieces = 1 << 20, 32
    with (
        no_leaks(),
        world.environment(backend) as environment,
        environment.start(["cat"], stdin=PIPE) as process,
    ):

        def write_all() -> None:
            for _ in range(pieces):
                process.write(b"x" * size)
            process.close_stdin()

        writer = threading.Thread(target=write_all)
        writer.start()
        assert sum(len(output.data) for output in process) == size * pieces
        writer.join()


def test_a_closed_input_is_the_end_for_who_reads_it_and_closed_for_who_writes(
    backend: str, world: World
) -> None:
    with world.environment(backend) as environment, environment.start(["cat"], stdin=PIPE) as process:
        process.write("all")
        process.close_stdin()
        with pytest.raises(InputClosed):
            process.write("more")
        assert process.wait().stdout == "all"


# ---- the end ----


def test_leaving_the_block_ends_the_whole_tree(backend: str, world: World) -> None:
    mark = new_mark()
    with no_leaks(world.base), world.environment(backend) as environment:
        with environment.start(["sh", "-c", TREE, mark]) as process:
            assert process.read(10) == ("stdout", b"up\n")
            assert eventually(lambda: len(carrying(mark)) >= 3)
        assert carrying(mark) == []
        assert process.wait().signal == signal.SIGKILL
        process.close()


def test_an_exception_in_the_block_ends_the_tree_too(backend: str, world: World) -> None:
    mark = new_mark()
    with world.environment(backend) as environment:
        with pytest.raises(ZeroDivisionError), environment.start(["sh", "-c", TREE, mark]) as process:
            process.read(10)
            raise ZeroDivisionError
        assert carrying(mark) == []


def test_closing_the_environment_ends_what_still_runs_in_it(backend: str, world: World) -> None:
    mark = new_mark()
    with no_leaks(world.base):
        with world.environment(backend) as environment:
            processes = [environment.start(["sh", "-c", TREE, mark]) for _ in range(3)]
            for process in processes:
                process.read(10)
        assert carrying(mark) == []
        assert [process.wait().signal for process in processes] == [signal.SIGKILL] * 3
        assert processes[0].read() is None
        with pytest.raises(PolicyError, match="closed"):
            environment.start(["true"])


def test_stopping_from_another_thread_ends_a_read(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(["sleep", "300"]) as process:
        timer = threading.Timer(0.1, process.stop)
        timer.start()
        assert list(process) == []
        timer.join()
        assert process.wait().signal == signal.SIGKILL


def test_the_time_is_up_for_a_started_command_as_for_any(backend: str, world: World) -> None:
    with (
        world.environment(backend) as environment,
        environment.start(["sleep", "300"], timeout=0.2) as process,
    ):
        assert list(process) == []
        assert process.wait().timed_out


def test_a_command_that_is_not_there_is_refused_at_the_start(backend: str, world: World) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        with pytest.raises(CommandNotFound):
            environment.start(["no-such-command"])
        with pytest.raises(CommandNotFound):
            environment.start(["no-such-command"], pty=True)
        with pytest.raises(TypeError, match="shell"):
            environment.start("echo hi")
        with pytest.raises(PolicyError, match="PIPE"):
            environment.start(["cat"], stdin=5)
        with pytest.raises(PolicyError, match="output_limit"):
            environment.start(["cat"], output_limit=0)


def test_a_command_without_a_fence_can_be_talked_to_as_well(world: World) -> None:
    with no_leaks(), LocalEnvironment(world.workspace, Policy.off()) as environment:
        with environment.start(["cat"], stdin=PIPE) as process:
            process.write("hello")
            assert process.read(10) == ("stdout", b"hello")
        assert isinstance(process, Process)


# ---- signals ----

# Waited for, not handled: a handler of Python's is not called for a signal that comes right before a sleep.
TRAPS = """
import os, signal
said = {signal.SIGTERM: b"term\\n", signal.SIGUSR1: b"usr1\\n"}
signal.pthread_sigmask(signal.SIG_BLOCK, said)
os.write(1, b"ready\\n")
while True: os.write(1, said[signal.sigwait(said)])
"""


def test_signals_reach_the_command(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(python(TRAPS)) as process:
        assert process.read(10) == ("stdout", b"ready\n")
        process.signal(signal.SIGTERM)
        assert process.read(10) == ("stdout", b"term\n")
        process.signal(signal.SIGUSR1)
        assert process.read(10) == ("stdout", b"usr1\n")
        process.signal(signal.SIGHUP)
        assert process.wait().signal == signal.SIGHUP
        process.signal(signal.SIGTERM)


def test_the_killing_signal_ends_the_whole_tree_and_the_stopping_one_is_refused(
    backend: str, world: World
) -> None:
    mark = new_mark()
    with world.environment(backend) as environment, environment.start(["sh", "-c", TREE, mark]) as process:
        process.read(10)
        with pytest.raises(PolicyError, match="SIGTSTP"):
            process.signal(signal.SIGSTOP)
        process.signal(signal.SIGKILL)
        assert process.wait().signal == signal.SIGKILL
        assert eventually(lambda: carrying(mark) == [], 0.1)
