"""supervise, status, life, parent: the whole tree ends with the command, with the caller, and when told to."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.jail import kernel
from corral.jail.host import launcher_path
from hostfacts import landlock_abi, skip_unless_host
from launcher.driver import (
    KEEPERS,
    SECONDS,
    TIME_UP,
    Watched,
    adopting,
    as_bytes,
    children_of,
    eventually,
    jail,
    launch,
    namespaces,
    python,
    read_to_end,
)
from leaks import no_leaks

pytestmark = pytest.mark.jail

EBADF = 9


@pytest.fixture(params=list(KEEPERS))
def keeper(request: pytest.FixtureRequest) -> list[object]:
    if request.param == "init":
        skip_unless_host("user-namespaces")
    plan: list[object] = list(KEEPERS[request.param])
    return plan


# Ways to outlive a command. Each leaves a process that holds standard output for 100 seconds.
LEFT_BEHIND = {
    "background": "sleep 100 &",
    "orphan": "(sleep 100 & )",
    "session": "setsid sleep 100 &",
    "double fork in a session": "setsid sh -c '(sleep 100 & ) & exit' &",
    "deaf": "sh -c 'trap \"\" TERM HUP INT; sleep 100; sleep 100' &",
    "stopped": "sh -c 'kill -STOP $$' &",
    "many": "for i in $(seq 100); do sleep 100 & done",
    "reparented again": "setsid sh -c 'setsid sh -c \"sleep 100 & sleep 0.05\" & sleep 0.02' &",
}


@pytest.mark.parametrize("way", LEFT_BEHIND)
def test_nothing_outlives_the_command(way: str, keeper: list[object]) -> None:
    with no_leaks():
        started = time.monotonic()
        done = launch(keeper, ["sh", "-c", f"{LEFT_BEHIND[way]}\nsleep 0.1; echo done; exit 5"])
        assert (done.returncode, done.stdout) == (5, b"done\n"), done
        assert time.monotonic() - started < 5


def test_without_a_supervisor_such_a_process_would_live_on() -> None:
    """The control of the test above: the same command in place leaves its process behind."""
    with subprocess.Popen(
        [launcher_path(), "--", "sh", "-c", "setsid sleep 30 & echo $!"],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        process.wait(SECONDS)
        os.kill(left, 0)
        os.kill(left, signal.SIGKILL)


COMETS = """
import os, time
end = time.monotonic() + 0.5
for _ in range(8):
    if os.fork() == 0:
        while time.monotonic() < end + 30:
            if os.fork():
                os._exit(0)
            os.setsid()
time.sleep(0.3)
print("done", flush=True)
"""


@pytest.mark.parametrize("kind", ["supervise", "init"])
def test_processes_that_fork_and_exit_all_the_time_are_caught(kind: str) -> None:
    if kind == "init":
        skip_unless_host("user-namespaces")
    with no_leaks():
        assert launch(KEEPERS[kind], python(COMETS)).stdout == b"done\n"


# ---- status lines ----


def test_a_run_is_told_by_two_lines(keeper: list[object]) -> None:
    with Watched(keeper, ["sh", "-c", "exit 42"]) as run:
        first, last = run.lines()
        assert first == "run"
        word, status, *numbers = last.split()
        assert (word, int(status)) == ("end", 42 << 8)
        assert len(numbers) == 3
        assert run.process.wait(SECONDS) == 0
        assert run.process.stderr is not None
        assert run.process.stderr.read() == b""


def test_a_signal_is_told_as_a_wait_status(keeper: list[object]) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2):
        with Watched(keeper, ["sh", "-c", f"kill -{int(number)} $$"]) as run:
            assert run.lines()[-1].split()[:2] == ["end", str(int(number))]


def test_time_and_memory_used_are_told(keeper: list[object]) -> None:
    burn = python("import time; block = bytearray(50 << 20)\nwhile time.process_time() < 0.3: block[0] = 1")
    with Watched(keeper, burn) as run:
        _, _, user, system, kilobytes = run.lines()[-1].split()
    assert 250_000 < int(user) + int(system) < 5_000_000
    assert 50_000 < int(kilobytes) < 500_000


def test_run_is_told_when_the_command_begins_and_not_when_it_ends(keeper: list[object]) -> None:
    with Watched(keeper, ["sleep", "100"]) as run:
        assert run.line() == "run"
        assert run.process.poll() is None


def test_a_failed_step_is_told_by_its_number_and_nothing_is_printed(
    keeper: list[object], tmp_path: Path
) -> None:
    missing = ["open", 5, "/", tmp_path / "missing", 0, 0o40000, "-", "-"]
    for plan, step in (([*missing, *keeper], 2), ([*keeper, *missing], None)):
        with Watched(plan, ["touch", tmp_path / "witness"]) as run:
            (line,) = run.lines()
            assert line.startswith("fail ")
            assert line.endswith(" 2")
            assert step is None or int(line.split()[1]) == step
            assert run.process.wait(SECONDS) == 125
            assert run.process.stderr is not None
            assert run.process.stderr.read() == b""
    assert not (tmp_path / "witness").exists()


def test_the_command_does_not_hold_the_status_descriptor(keeper: list[object]) -> None:
    count = python("import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))")
    with Watched(keeper, count) as run:
        assert run.read_output() == b"[0, 1, 2, 3]\n"  # 3 is the listing itself
        assert run.lines()[-1].startswith("end 0 ")


def test_the_end_of_the_status_socket_ends_the_run(keeper: list[object]) -> None:
    with no_leaks(), Watched(keeper, ["sh", "-c", "setsid sleep 100 & echo up; sleep 100"]) as run:
        run.await_output(b"up\n")
        run.hang_up()
        assert run.read_output() == b""
        assert run.lines()[-1].startswith("end 9 ")


def test_a_status_descriptor_below_three_is_refused_or_works() -> None:
    """Standard error as the status descriptor must not end in a run that is killed without a word."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        plan = ["fd", 0, 2, "status", 0, "supervise", 0]
        done = launch(
            plan,
            ["sh", "-c", "sleep 0.2; echo lived"],
            capture_output=False,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        theirs.close()
        told = ours.recv(4096)
    assert told != b""
    assert (done.returncode, done.stdout) in ((0, b"lived\n"), (125, b""))


# ---- the caller ----


@contextmanager
def started(*words: object, pass_fds: tuple[int, ...] = ()) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process and the read end of its standard output; it is killed at the end, if it is still there."""
    with subprocess.Popen(
        as_bytes(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=pass_fds,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.fileno()
        finally:
            if process.poll() is None:
                process.kill()


def await_word(fd: int, word: bytes) -> None:
    assert select.select([fd], [], [], SECONDS)[0]
    assert word in os.read(fd, 100)


TREE = ["sh", "-c", "setsid sleep 100 & echo up; sleep 100"]


@pytest.mark.parametrize("plan", [["parent"], ["parent", "close"]], ids=["parent", "parent, close"])
def test_the_death_of_the_parent_ends_the_run(plan: list[str], keeper: list[object]) -> None:
    """It is the shell that starts the launcher; killed, it can tell nobody."""
    words = [launcher_path(), *plan, *keeper, "--", *TREE]
    with no_leaks(), adopting(), started("sh", "-c", '"$@" & wait', "sh", *words) as (shell, output):
        await_word(output, b"up")
        time.sleep(0.1)
        assert not select.select([output], [], [], 0)[0], "the run ended before its parent did"
        shell.kill()
        assert read_to_end(output) == b""


def test_a_run_lives_as_long_as_it_needs_when_its_parent_does(keeper: list[object]) -> None:
    done = launch(["parent", "close", *keeper], ["sh", "-c", "sleep 0.3; echo lived"])
    assert (done.returncode, done.stdout) == (0, b"lived\n")


def test_the_death_of_the_process_behind_life_ends_the_run(keeper: list[object]) -> None:
    with no_leaks(), adopting(), started("sleep", "100") as (caller, _):
        life = os.pidfd_open(caller.pid)
        try:
            words = [launcher_path(), "fd", 0, life, "life", 0, "close", *keeper, "--", *TREE]
            with started(*words, pass_fds=(life,)) as (launcher, output):
                await_word(output, b"up")
                time.sleep(0.1)
                assert launcher.poll() is None
                caller.kill()
                assert read_to_end(output) == b""
                assert launcher.wait(SECONDS) != 0
        finally:
            os.close(life)


def test_a_run_whose_caller_is_dead_already_ends_at_once(keeper: list[object]) -> None:
    with started("true") as (caller, _):
        life = os.pidfd_open(caller.pid)
        caller.wait(SECONDS)
    try:
        begun = time.monotonic()
        launch(["fd", 0, life, "life", 0, *keeper], ["sleep", "100"], pass_fds=(life,))
        assert time.monotonic() - begun < 5
    finally:
        os.close(life)


def test_the_end_of_the_thread_that_started_it_does_not_end_the_run(keeper: list[object]) -> None:
    runs: list[Watched] = []
    thread = threading.Thread(
        target=lambda: runs.append(Watched(["parent", *keeper], ["sh", "-c", "sleep 0.4; echo lived"]))
    )
    thread.start()
    thread.join()
    with runs[0] as run:
        assert run.read_output() == b"lived\n"
        assert run.lines()[-1].startswith("end 0 ")


def test_a_killed_launcher_takes_its_namespace_along() -> None:
    skip_unless_host("user-namespaces")
    with (
        no_leaks(),
        adopting(),
        started(launcher_path(), *KEEPERS["init"], "--", *TREE) as (launcher, output),
    ):
        await_word(output, b"up")
        launcher.kill()
        assert read_to_end(output) == b""


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_launcher_takes_the_command_along_without_a_namespace(number: int) -> None:
    """Its grandchildren are not promised in this tier."""
    with (
        no_leaks(),
        adopting(),
        started(launcher_path(), "supervise", number, "--", "sh", "-c", "echo up; exec sleep 100") as (
            launcher,
            output,
        ),
    ):
        await_word(output, b"up")
        launcher.kill()
        assert read_to_end(output) == b""


def test_a_launcher_killed_at_any_moment_of_its_start_leaves_nothing() -> None:
    skip_unless_host("user-namespaces")
    with no_leaks(), adopting():
        for delay in range(40):
            with started(launcher_path(), *KEEPERS["init"], "--", "sleep", "100") as (launcher, output):
                time.sleep(delay / 10_000)
                launcher.kill()
                assert read_to_end(output) == b""


# ---- signals ----


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, signal.SIGWINCH]
)
def test_a_signal_sent_to_the_launcher_reaches_the_command(
    number: signal.Signals, keeper: list[object]
) -> None:
    wait = python(
        "import signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [int(sys.argv[1])])\n"
        "print('up', flush=True)\n"
        "print('caught', int(signal.sigwait([int(sys.argv[1])])))\n"
        "sys.exit(7)",
        str(int(number)),
    )
    with Watched(keeper, wait) as run:
        run.await_output(b"up\n")
        run.send(number)
        assert run.read_output() == f"caught {int(number)}\n".encode()
        assert run.lines()[-1].split()[:2] == ["end", str(7 << 8)]


def test_a_signal_the_command_does_not_catch_ends_it_and_the_launcher_dies_of_it_too(
    keeper: list[object],
) -> None:
    with started(launcher_path(), *keeper, "--", *TREE) as (launcher, output):
        await_word(output, b"up")
        launcher.send_signal(signal.SIGTERM)
        assert read_to_end(output) == b""
        assert launcher.wait(SECONDS) == -signal.SIGTERM


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE, signal.SIGABRT]
)
def test_the_launcher_dies_of_the_signal_that_killed_the_command(
    number: signal.Signals, keeper: list[object]
) -> None:
    die = python(
        "import os, signal, sys; n = int(sys.argv[1]); n != 9 and signal.signal(n, 0); os.kill(os.getpid(), n)",
        str(int(number)),
    )
    done = launch(keeper, die)
    assert (done.returncode, done.stderr) == (-number, b"")


def test_a_signal_on_its_way_when_the_command_ends_does_not_lose_its_exit_code(keeper: list[object]) -> None:
    """SIGCONT does nothing to a command that runs; it is only there to be on its way."""
    for _ in range(40):
        with started(launcher_path(), *keeper, "--", "sh", "-c", "echo up; exit 4") as (launcher, output):
            await_word(output, b"up")
            while launcher.poll() is None:
                launcher.send_signal(signal.SIGCONT)
            assert launcher.returncode == 4


def test_a_stop_is_told_and_a_continue_passed_on(keeper: list[object]) -> None:
    with Watched(keeper, ["sh", "-c", "kill -STOP $$; echo on again"]) as run:
        assert [run.line(), run.line()] == ["run", "stop 19"]
        run.send(signal.SIGCONT)
        assert run.read_output() == b"on again\n"
        assert run.lines()[-1].startswith("end 0 ")


def test_without_a_status_descriptor_the_launcher_stops_as_the_command_did(keeper: list[object]) -> None:
    with started(launcher_path(), *keeper, "--", "sh", "-c", "kill -STOP $$; echo on again; exit 4") as (
        launcher,
        output,
    ):
        assert os.waitpid(launcher.pid, os.WUNTRACED)[1] & 0xFF == 0x7F
        launcher.send_signal(signal.SIGCONT)
        assert read_to_end(output) == b"on again\n"
        assert launcher.wait(SECONDS) == 4


STOPS_OFTEN = """
import os, signal, time
parent = os.getpid()
if os.fork() == 0:
    while True:
        os.kill(parent, signal.SIGSTOP)
        time.sleep(0.001)
        os.kill(parent, signal.SIGCONT)
        time.sleep(0.001)
time.sleep(100)
"""


def test_a_caller_that_does_not_read_of_all_the_stops_does_not_stop_the_clock(keeper: list[object]) -> None:
    """Some three hundred lines fill the socket; the supervisor must not wait for room."""
    with no_leaks(), Watched(["deadline", 2000, *keeper], python(STOPS_OFTEN)) as run:
        assert run.read_output() == b""
        lines = run.lines()
        assert lines.count("stop 19") > 100
        assert lines[-2] == "over deadline"
        assert lines[-1].startswith("end 9 ")


STOPS_ITSELF = ["sh", "-c", "setsid sleep 100 & echo up; kill -STOP $$"]


def test_a_command_that_stops_itself_does_not_stop_the_clock(keeper: list[object]) -> None:
    """What it has started goes on running; without the clock it would do so for ever."""
    with (
        no_leaks(),
        started(launcher_path(), "deadline", 500, *keeper, "--", *STOPS_ITSELF) as (launcher, output),
    ):
        await_word(output, b"up")
        assert read_to_end(output) == b""
        assert launcher.wait(SECONDS) == TIME_UP


def test_a_command_that_stops_itself_does_not_outlive_its_caller(keeper: list[object]) -> None:
    words = [launcher_path(), "parent", *keeper, "--", *STOPS_ITSELF]
    with no_leaks(), adopting(), started("sh", "-c", '"$@" & wait', "sh", *words) as (shell, output):
        await_word(output, b"up")
        time.sleep(0.1)
        shell.kill()
        assert read_to_end(output) == b""


# ---- what the supervisor is ----


def test_the_supervisor_does_not_keep_the_commands_pipes_open(keeper: list[object]) -> None:
    with Watched(keeper, ["sh", "-c", "exec >&- 2>&-; sleep 100"]) as run:
        assert run.read_output() == b""
        assert run.process.stderr is not None
        assert read_to_end(run.process.stderr.fileno()) == b""
        assert run.process.poll() is None


def test_a_slot_is_closed_in_the_supervisor_once_the_command_runs(keeper: list[object]) -> None:
    reader, writer = os.pipe()
    try:
        with Watched(["fd", 0, writer, *keeper], ["sleep", "100"], pass_fds=(writer,)) as run:
            os.close(writer)
            assert run.line() == "run"
            assert read_to_end(reader) == b""
    finally:
        os.close(reader)


def test_scoped_the_command_cannot_signal_the_supervisor() -> None:
    """Its domain nests in the supervisor's; both keep signals in."""
    abi = landlock_abi()
    assert abi >= 6
    domain = ["nonewprivs", "ruleset", 0, 0, kernel.SCOPE_SIGNAL, kernel.ruleset_size(abi), "restrict"]
    kill = ["sh", "-c", "kill -9 $PPID; echo lived"]
    done = launch(["supervise", 1, *domain], kill)
    assert (done.returncode, done.stdout) == (0, b"lived\n")
    assert b"not permitted" in done.stderr
    assert launch(["supervise", 0], kill).returncode == -9


def test_scoped_only_the_tree_is_ended_and_no_other_process_of_ours() -> None:
    with started("sleep", "100") as (bystander, _):
        for number in (0, 1):
            assert launch(["supervise", number], ["sh", "-c", "setsid sleep 100 &"]).returncode == 0
        time.sleep(0.05)
        assert bystander.poll() is None


def test_orphans_are_reaped_while_the_command_runs(keeper: list[object]) -> None:
    script = "for i in 1 2 3 4 5; do (true & ) ; done; sleep 0.2; echo up; read never"
    reader, writer = os.pipe()
    try:
        with Watched(keeper, ["sh", "-c", script], stdin=reader) as run:
            run.await_output(b"up\n")
            reaper = run.pid if keeper[0] == "supervise" else children_of(run.pid)[0]
            assert eventually(lambda: len(children_of(reaper)) == 1), children_of(reaper)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_namespace_without_an_init_is_one_process() -> None:
    """The command is PID 1 itself; how it ends is told all the same."""
    skip_unless_host("user-namespaces")
    done = launch(namespaces("mnt", "pid"), ["sh", "-c", "echo $$; exit 7"])
    assert (done.returncode, done.stdout) == (7, b"1\n")


@pytest.mark.parametrize(
    "keepers",
    [
        ["init"],
        ["supervise", 0, "init"],
        ["supervise", 0, "supervise", 0],
        [*jail(), "init"],
        [*jail(), "supervise", 0],
    ],
    ids=["init alone", "supervise, init", "supervise twice", "init twice", "init, supervise"],
)
def test_a_plan_with_an_odd_keeper_is_refused_or_tells_the_truth(keepers: list[object]) -> None:
    skip_unless_host("user-namespaces")
    assert launch(keepers, ["sh", "-c", "exit 7"]).returncode in (7, 125)


def test_children_that_were_there_before_are_left_alone(keeper: list[object]) -> None:
    """`exec corral-launch … > >(tee log)`: the tee is a child of ours that we did not start."""
    before = ["sh", "-c", 'sleep 100 > /dev/null 2>&1 & echo $!; exec "$@"', "sh", launcher_path()]
    with adopting():
        done = launch([], [*before, *keeper, "--", "sh", "-c", "setsid sleep 100 & exit 7"])
        earlier = int(done.stdout)
        os.kill(earlier, signal.SIGKILL)  # fails if it is gone
    assert done.returncode == 7


def test_what_reads_our_output_as_our_child_gets_all_of_it(keeper: list[object], tmp_path: Path) -> None:
    line = f'exec "$@" > >(sleep 0.2; cat > {tmp_path}/log) 2>&1'
    with adopting():
        done = launch([], ["bash", "-c", line, "bash", launcher_path(), *keeper, "--", "echo", "logged"])
    assert done.returncode == 0
    assert (tmp_path / "log").read_text() == "logged\n"
