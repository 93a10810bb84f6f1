"""A command with a terminal of its own: it is one, it has a size, ^C and ^D work, and it may be opened by name."""

from __future__ import annotations

import signal

import pytest

from corral import PolicyError, Process
from jail.world import World, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

LOOK = """
import os
print([os.isatty(n) for n in (0, 1, 2)], tuple(os.get_terminal_size()), os.tcgetpgrp(0) == os.getpgrp())
"""
# Waited for, not handled: a handler of Python's is not called for a signal that comes right before a sleep.
WATCH = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
os.write(1, b"ready\\n")
while signal.sigwait([signal.SIGWINCH]):
    os.write(1, b"size %d %d\\n" % os.get_terminal_size())
"""


def read_until(process: Process, text: str) -> str:
    seen = ""
    while text not in seen:
        output = process.read(10)
        assert output is not None, f"no more output, only {seen!r}"
        seen += output.text
    return seen


def test_all_three_streams_are_a_terminal_with_a_size_and_the_command_is_in_its_foreground(
    backend: str, world: World
) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        with environment.start(python(LOOK), pty=True) as process:
            assert process.wait().stdout == "[True, True, True] (80, 24) True\r\n"
        assert environment.run(python("import os; print([os.isatty(n) for n in (0, 1, 2)])")).stdout == (
            "[False, False, False]\n"
        )


def test_a_new_size_is_told_by_a_signal(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(python(WATCH), pty=True) as process:
        read_until(process, "ready")
        process.resize(50, 132)
        assert "size 132 50" in read_until(process, "size 132 50")
        process.resize(10, 20)
        read_until(process, "size 20 10")
    process.resize(1, 1)


def test_only_a_terminal_has_a_size(backend: str, world: World) -> None:
    with (
        world.environment(backend) as environment,
        environment.start(["sleep", "300"]) as process,
        pytest.raises(PolicyError, match="pty=True"),
    ):
        process.resize(24, 80)


@pytest.mark.parametrize("way", ["typed", "signal"])
def test_an_interrupt_ends_it_typed_or_sent(backend: str, world: World, way: str) -> None:
    with (
        world.environment(backend) as environment,
        environment.start(["sh", "-c", "echo ready; exec sleep 300"], pty=True) as process,
    ):
        read_until(process, "ready")
        if way == "typed":
            process.write("\x03")
        else:
            process.signal(signal.SIGINT)
        assert process.wait(10).signal == signal.SIGINT


def test_what_is_typed_is_echoed_and_read_and_the_end_of_input_ends_it(backend: str, world: World) -> None:
    with world.environment(backend) as environment, environment.start(["cat"], pty=True) as process:
        process.write("hello\n")
        assert read_until(process, "hello\r\nhello\r\n")
        process.close_stdin()
        assert process.wait(10).exit_code == 0


def test_the_terminal_may_be_opened_again_by_name(backend: str, world: World) -> None:
    script = "echo tty > /dev/tty; echo out > /dev/stdout; echo err > /dev/stderr"
    with (
        world.environment(backend) as environment,
        environment.start(["sh", "-c", script], pty=True) as process,
    ):
        assert process.wait().stdout == "tty\r\nout\r\nerr\r\n"


def test_nothing_can_be_typed_into_it_from_inside(backend: str, world: World) -> None:
    attack = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')"
    with world.environment(backend) as environment, environment.start(python(attack), pty=True) as process:
        done = process.wait()
    assert done.exit_code == 1
    assert "PermissionError" in done.stdout


def test_an_interactive_shell_has_job_control(backend: str, world: World) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        shell = ["bash", "--norc", "--noprofile", "-i"]
        with environment.start(shell, pty=True, extra_env={"PS1": "> ", "TERM": "dumb"}) as process:
            process.write("sh -c 'echo g\"\"o; exec sleep 300'\n")  # its echo is not what it prints
            read_until(process, "go\r\n")
            process.write("\x1a")
            assert "no job control" not in read_until(process, "Stopped")
            process.write("jobs; kill -9 %1; exit\nexit\n")  # the first may only warn of the job
            assert process.wait(10).stdout.count("Stopped") >= 2
