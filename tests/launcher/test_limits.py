"""rlimit, deadline, memory, oom: limits are lowered and never raised, and what passes them is ended."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from hostfacts import skip_unless_host
from launcher.driver import KEEPERS, TIME_UP, Watched, launch, namespaces, python, refused_step

pytestmark = pytest.mark.jail

EINVAL = 22
NOFILE, FSIZE, CORE = resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE
SHOW_NOFILE = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]
MEBIBYTE = 1 << 20


@pytest.fixture(params=list(KEEPERS))
def keeper(request: pytest.FixtureRequest) -> list[object]:
    if request.param == "init":
        skip_unless_host("user-namespaces")
    plan: list[object] = list(KEEPERS[request.param])
    return plan


# ---- rlimit ----


def test_a_limit_is_lowered_soft_and_hard() -> None:
    assert launch(["rlimit", NOFILE, 64], SHOW_NOFILE).stdout.split() == [b"64", b"64"]
    assert launch([], SHOW_NOFILE).stdout.split() != [b"64", b"64"]


def test_a_limit_is_never_raised_not_by_root_either() -> None:
    inner = [launcher_path(), "rlimit", NOFILE, 100, "--", *SHOW_NOFILE]
    assert launch(["rlimit", NOFILE, 50], inner).stdout.split() == [b"50", b"50"]
    assert launch(["rlimit", NOFILE, 150], inner).stdout.split() == [b"100", b"100"]


def test_a_soft_limit_below_the_value_stays_where_it_is() -> None:
    lowered = [
        "sh",
        "-c",
        'ulimit -Sn 40; exec "$@"',
        "sh",
        launcher_path(),
        "rlimit",
        str(NOFILE),
        "60",
        "--",
    ]
    assert launch([], [*lowered, *SHOW_NOFILE]).stdout.split() == [b"40", b"60"]


def test_a_file_size_limit_binds_what_the_command_writes(tmp_path: Path) -> None:
    write = ["sh", "-c", 'exec head -c 4096 /dev/zero > "$0"', tmp_path / "out"]
    assert launch(["rlimit", FSIZE, 4096], write).returncode == 0
    assert launch(["rlimit", FSIZE, 4095], write).returncode != 0
    assert (tmp_path / "out").stat().st_size == 4095


def test_an_unknown_resource_is_refused() -> None:
    assert refused_step(launch(["rlimit", 99, 1], ["true"])) == (0, EINVAL)


# ---- deadline ----


def test_a_run_past_its_deadline_is_ended_and_says_so(keeper: list[object]) -> None:
    started = time.monotonic()
    done = launch(["deadline", 200, *keeper], ["sh", "-c", "echo begun; sleep 100"])
    assert done.returncode == TIME_UP
    assert done.stdout == b"begun\n"
    assert done.stderr == b"corral: the time is up; the run was ended\n"
    assert 0.2 <= time.monotonic() - started < 5


def test_a_deadline_is_reported_on_the_status_descriptor(keeper: list[object]) -> None:
    with Watched(["deadline", 200, *keeper], ["sleep", "100"]) as run:
        assert run.line() == "run"
        assert run.line() == "over deadline"
        assert run.line().startswith("end 9 ")
        assert run.lines() == []


def test_a_command_that_is_done_before_its_deadline_is_not_touched(keeper: list[object]) -> None:
    with Watched(["deadline", 10_000, *keeper], ["sh", "-c", "exit 3"]) as run:
        first, last = run.lines()
    assert (first, last.split()[:2]) == ("run", ["end", str(3 << 8)])


def test_a_deadline_ends_a_command_that_ignores_every_signal_it_can(keeper: list[object]) -> None:
    ignore = python(
        "import signal, time\n"
        "for n in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(n, signal.SIG_IGN)\n"
        "print('deaf', flush=True); time.sleep(100)"
    )
    done = launch(["deadline", 1500, *keeper], ignore)
    assert (done.returncode, done.stdout) == (TIME_UP, b"deaf\n")


def test_a_deadline_ends_a_command_that_stopped_itself(keeper: list[object]) -> None:
    with Watched(["deadline", 500, *keeper], ["sh", "-c", "kill -STOP $$"]) as run:
        assert [run.line(), run.line(), run.line()] == ["run", "stop 19", "over deadline"]
        assert run.line().startswith("end 9 ")


# ---- memory ----

FILL_MEMORY = """
import os, sys, threading, time
def fill():
    block = bytearray(int(sys.argv[1]))
    for i in range(0, len(block), 4096):
        block[i] = 1
    time.sleep(float(sys.argv[2]))
    print("kept it", flush=True)
def fork_and_wait():
    child = os.fork()
    if child == 0:
        fill()
        os._exit(0)
    os.waitpid(child, 0)
"""
DIRECTLY = FILL_MEMORY + "fill()"
IN_A_CHILD = FILL_MEMORY + "fork_and_wait()"
IN_AN_ORPHAN = FILL_MEMORY + "if os.fork() == 0: fork_and_wait()\nelse: time.sleep(float(sys.argv[2]))"
FROM_A_THREAD = FILL_MEMORY + "t = threading.Thread(target=fork_and_wait); t.start(); t.join()"
WAYS = {"directly": DIRECTLY, "child": IN_A_CHILD, "orphan": IN_AN_ORPHAN, "thread": FROM_A_THREAD}


@pytest.mark.parametrize("way", WAYS)
def test_a_tree_that_keeps_too_much_in_memory_is_ended(way: str, keeper: list[object]) -> None:
    done = launch(["memory", 100 * MEBIBYTE, *keeper], python(WAYS[way], str(200 * MEBIBYTE), "5"))
    assert done.returncode == 128 + 9, done
    assert done.stdout == b""
    assert done.stderr == b"corral: the memory limit was passed; the run was ended\n"


def test_a_tree_within_its_memory_is_not_touched(keeper: list[object]) -> None:
    done = launch(["memory", 200 * MEBIBYTE, *keeper], python(IN_A_CHILD, str(20 * MEBIBYTE), "0.6"))
    assert (done.returncode, done.stdout) == (0, b"kept it\n")


def test_memory_is_counted_right_without_a_proc_of_its_own() -> None:
    """Where the host lends its own /proc, PID 1 of that is not ours."""
    skip_unless_host("user-namespaces")
    keeper = [*namespaces("mnt", "pid"), "init"]
    small = launch(["memory", 100 * MEBIBYTE, *keeper], ["sh", "-c", "sleep 0.7; echo lived"])
    assert (small.returncode, small.stdout) == (0, b"lived\n"), small
    large = launch(["memory", 100 * MEBIBYTE, *keeper], python(IN_A_CHILD, str(200 * MEBIBYTE), "5"))
    assert (large.returncode, large.stdout) == (128 + 9, b"")


def test_the_memory_limit_is_reported_on_the_status_descriptor(keeper: list[object]) -> None:
    with Watched(["memory", 100 * MEBIBYTE, *keeper], python(DIRECTLY, str(200 * MEBIBYTE), "5")) as run:
        assert [run.line(), run.line()] == ["run", "over memory"]
        assert run.line().startswith("end 9 ")


def test_a_deep_chain_of_processes_hides_no_memory(keeper: list[object], tmp_path: Path) -> None:
    """Eighty shells, each waiting for the next; the last runs the command."""
    chain = tmp_path / "chain"
    chain.write_text('if [ "$1" -gt 0 ]; then n=$1; shift; sh "$0" $((n - 1)) "$@"; exit $?; fi; shift; "$@"')
    fill = python(DIRECTLY, str(600 * MEBIBYTE), "5")
    done = launch(["memory", 400 * MEBIBYTE, *keeper], ["sh", chain, 80, *fill])
    assert done.returncode == 128 + 9, done
    assert done.stdout == b""


# ---- oom ----


def test_the_oom_score_is_set_for_the_command() -> None:
    assert launch(["oom", 1000], ["cat", "/proc/self/oom_score_adj"]).stdout == b"1000\n"


def test_an_oom_score_the_kernel_does_not_take_is_refused() -> None:
    assert refused_step(launch(["oom", 2000], ["true"])) == (0, EINVAL)
