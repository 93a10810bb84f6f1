"""Commands in the background: their output is taken all the time, to the limit, and they end with the environment."""

from __future__ import annotations

import signal
import threading

import pytest

from cases import case
from corral import (
    PIPE,
    CommandNotFound,
    InputClosed,
    JobExists,
    LocalEnvironment,
    Policy,
    PolicyError,
    StillRunning,
)
from jail.world import World, carrying, eventually, new_mark
from leaks import no_leaks

pytestmark = pytest.mark.jail

TREE = "sleep 300 & setsid sh -c 'sleep 300; :' \"$0\" & echo up; sleep 300; :"


@case("rubino-41")
def test_a_job_runs_beside_other_commands_and_shows_its_output_so_far(backend: str, world: World) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        job = environment.background("count", ["sh", "-c", "echo one; echo two >&2; exec sleep 300"])
        assert environment.run(["echo", "beside"]).stdout == "beside\n"
        assert eventually(lambda: job.output == "one\ntwo\n")
        assert (job.name, job.is_running, job.argv[0]) == ("count", True, "sh")
        assert environment.jobs == {"count": job}
        done = job.stop()
        assert not job.is_running
        assert (done.signal, done.stdout) == (signal.SIGKILL, "one\ntwo\n")
        assert job.output == "one\ntwo\n"


@case("rubino-41")
def test_the_exit_code_is_the_commands_own_in_the_background_and_through_a_pipe(
    backend: str, world: World
) -> None:
    with world.environment(backend) as environment:
        done = environment.background("fails", ["sh", "-c", "echo out; exit 3"]).wait(10)
        assert (done.stdout, done.exit_code) == ("out\n", 3)
        assert environment.shell("set -o pipefail; false | cat").exit_code == 1
        assert environment.shell("set -o pipefail; yes | head -n1").exit_code == 128 + signal.SIGPIPE
        assert "never-started" not in environment.jobs


@case("rubino-23")
def test_a_job_is_confined_as_any_command_is(backend: str, world: World) -> None:
    line = (
        f"echo x > {world.outside}/new; echo x > {world.outside}/victim; cat {world.home}/.ssh/id_test; "
        "echo in > inside; cat inside; rm inside"
    )
    with world.environment(backend) as environment:
        foreground = environment.shell(line)
        background = environment.background("job", ["bash", "-c", line], stderr="apart").wait(10)
        assert (background.stdout, background.exit_code) == (foreground.stdout, foreground.exit_code)
        assert background.posture == foreground.posture
    assert background.stdout.endswith("in\n")
    assert [path.name for path in world.outside.iterdir()] == ["victim"]
    assert (world.outside / "victim").read_text() == "untouched"


def test_streams_of_a_job_may_be_kept_apart(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        job = environment.background("apart", ["sh", "-c", "echo out; echo err >&2"], stderr="apart")
        assert job.wait(10).exit_code == 0
        assert (job.output, job.error_output) == ("out\n", "err\n")


def test_jobs_end_with_the_environment(backend: str, world: World) -> None:
    mark = new_mark()
    with no_leaks(world.base):
        with world.environment(backend) as environment:
            jobs = [environment.background(f"job {n}", ["sh", "-c", TREE, mark]) for n in range(5)]
            assert eventually(lambda: all(job.output == "up\n" for job in jobs))
            assert len(carrying(mark)) >= 10
        assert carrying(mark) == []
        assert [job.is_running for job in jobs] == [False] * 5
        assert jobs[0].wait().signal == signal.SIGKILL
        with pytest.raises(PolicyError, match="closed"):
            environment.background("late", ["true"])


def test_a_name_is_refused_while_its_job_runs_and_free_afterwards(backend: str, world: World) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        first = environment.background("web", ["sleep", "300"])
        with pytest.raises(JobExists, match="'web' is running"):
            environment.background("web", ["true"])
        first.stop()
        second = environment.background("web", ["echo", "again"])
        assert second.wait(10).stdout == "again\n"
        assert environment.jobs == {"web": second}
        with pytest.raises(PolicyError, match="name"):
            environment.background("", ["true"])


def test_a_job_that_cannot_start_says_so_and_leaves_its_name_free(backend: str, world: World) -> None:
    with no_leaks(world.base), world.environment(backend) as environment:
        with pytest.raises(CommandNotFound):
            environment.background("web", ["no-such-command"])
        assert environment.jobs == {}
        assert environment.background("web", ["true"]).wait(10).exit_code == 0


def test_output_that_nobody_asks_for_is_bounded_and_holds_up_nothing(backend: str, world: World) -> None:
    with world.environment(backend, output_limit=1000) as environment:
        flood = environment.background("flood", ["sh", "-c", "head -c 20000000 /dev/zero; echo; echo end"])
        endless = environment.background("endless", ["yes"])
        assert flood.wait(30).exit_code == 0
        assert flood.output.endswith("\nend\n")
        assert (len(flood.output_bytes), flood.output_bytes_dropped) == (1000, 20000005 - 1000)
        assert eventually(lambda: endless.output_bytes_dropped > 1 << 20, 20)
        assert endless.is_running


def test_a_job_takes_input_and_signals(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        echo = environment.background("echo", ["cat"], stdin=PIPE)
        echo.write("hello")
        assert eventually(lambda: echo.output == "hello")
        with pytest.raises(StillRunning, match="'echo'"):
            echo.wait(0.05)
        echo.close_stdin()
        assert echo.wait(10).exit_code == 0
        with pytest.raises(InputClosed):
            echo.write("more")
        sleeper = environment.background("sleeper", ["sleep", "300"])
        sleeper.signal(signal.SIGTERM)
        assert sleeper.wait(10).signal == signal.SIGTERM


def test_all_jobs_have_one_thread(world: World) -> None:
    before = threading.active_count()
    with no_leaks(), LocalEnvironment(world.workspace, Policy.workspace_write()) as environment:
        for number in range(20):
            environment.background(str(number), ["sleep", "300"])
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
