"""How a run in a unit ends, and that all of it does: by itself, by time, by us, and when somebody dies."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from cases import case

if TYPE_CHECKING:
    from systemd.conftest import Bed

UNDER_WAY = "touch ready; sleep 300"


def wait_for(bed: Bed, path: str = "ready") -> None:
    bed.sh(f"while [ ! -e ~/work/{path} ]; do sleep 0.02; done")


def wait_until_no_unit(bed: Bed) -> None:
    bed.sh("for i in $(seq 500); do pgrep -u 60999 -x sleep >/dev/null || exit 0; sleep 0.01; done; exit 1")
    bed.sh(
        "for i in $(seq 300); do [ -z \"$(systemctl --user list-units --all --no-legend 'corral-*')\" ] && exit 0; "
        "sleep 0.01; done; exit 1"
    )


# command, what the result says, and why that is not something else
ENDS = {
    "exit 7": (7, None),
    "exit 226": (226, None),  # what systemd itself says of a mount namespace that failed
    "exit 255": (255, None),  # what systemd-run says of any signal
    "kill -TERM $$": (143, signal.SIGTERM),
    "kill -KILL $$": (137, signal.SIGKILL),
    "exec nosuch-program": (127, None),
}


@case("hive-22")
@pytest.mark.parametrize("line", ENDS)
def test_the_exit_code_or_signal_of_the_command_is_told(bed: Bed, line: str) -> None:
    code, number = ENDS[line]
    answer = bed.script(line)
    assert (answer["exit_code"], answer["signal"]) == (code, number)


@case("hive-22")
def test_a_program_that_is_not_there_is_an_error_of_its_own(bed: Bed) -> None:
    answer = bed.jail(["nosuch-program"])
    assert (answer["error"], answer["text"]) == (
        "CommandNotFound",
        "nosuch-program: not found inside the jail",
    )
    assert bed.corral("run", "--backend", "systemd-run", "nosuch-program").returncode == 127
    assert bed.corral("run", "--backend", "systemd-run", "/usr").returncode == 126
    assert bed.corral("run", "--backend", "systemd-run", "--timeout", "0.2", "sleep", "9").returncode == 124


@case("hive-24")
def test_what_the_command_left_is_gone_when_it_is_even_if_it_holds_the_output(bed: Bed) -> None:
    leave = (
        "sleep 300 & setsid sleep 300 & (setsid bash -c 'trap : TERM; sleep 300; sleep 300' &) ; echo done"
    )
    answer = bed.script(leave)
    assert (answer["exit_code"], answer["stdout"]) == (0, "done\n")
    assert answer["duration"] < 10
    assert bed.sh("pgrep -u 60999 -x sleep || echo none") == "none\n"


def test_the_time_is_up(bed: Bed) -> None:
    answer = bed.script("echo begun; trap '' TERM; sleep 300", timeout=0.3)
    assert (answer["timed_out"], answer["over"], answer["stdout"]) == (True, "deadline", "begun\n")
    assert answer["duration"] < 10
    wait_until_no_unit(bed)


def test_a_launcher_that_does_not_end_its_run_is_ended_by_the_manager_after_the_time(bed: Bed) -> None:
    (client,) = bed.script("true", timeout=7)["started"]
    assert "RuntimeMaxSec=27.000" in client["argv"]
    assert not any("RuntimeMaxSec" in word for word in bed.script("true")["started"][0]["argv"])


def test_cancelling_ends_the_unit(bed: Bed) -> None:
    answer = bed.script(UNDER_WAY, cancel="ready")
    assert (answer["over"], answer["signal"], answer["timed_out"]) == ("cancel", signal.SIGKILL, False)
    wait_until_no_unit(bed)


@case("hive-25")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_unit_is_stopped_when_systemd_run_is_killed(bed: Bed, number: int) -> None:
    with bed.start(["bash", "-c", UNDER_WAY]) as driver:
        wait_for(bed)
        bed.sh(f"pkill -u 60999 -{int(number)} -x systemd-run")
        driver.wait(20)
        assert driver.returncode == 0
    wait_until_no_unit(bed)
    assert '"signal": 9' in bed.sh("cat ~/answer")


@case("hive-5.12")
def test_the_unit_is_stopped_when_its_caller_is_killed(bed: Bed) -> None:
    with bed.start(["bash", "-c", UNDER_WAY]) as driver:
        wait_for(bed)
        bed.sh("pkill -KILL -u 60999 -f driver.py")
        driver.wait(20)
    wait_until_no_unit(bed)


def test_a_child_that_the_caller_forked_does_not_keep_the_unit_alive(bed: Bed) -> None:
    program = (
        "import os, threading, time; os.chdir('work'); from corral import *\n"
        "run = lambda: open_jail('systemd-run').run(RunOpts(None, ['bash', '-c', 'touch ready; sleep 300']))\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "while not os.path.exists('ready'): time.sleep(0.01)\n"
        "if os.fork() == 0: os.closerange(0, 3); time.sleep(30); os._exit(0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    begun = time.monotonic()
    bed.python(program)
    wait_until_no_unit(bed)
    assert time.monotonic() - begun < 20


def test_stopping_the_unit_by_hand_ends_the_run_as_a_kill(bed: Bed) -> None:
    with bed.start(["bash", "-c", UNDER_WAY]) as driver:
        wait_for(bed)
        bed.sh("systemctl --user stop 'corral-*'")
        driver.wait(20)
    assert '"signal": 9' in bed.sh("cat ~/answer")


def test_a_flood_is_kept_to_the_limit_and_counted(bed: Bed) -> None:
    answer = bed.script("head -c 200000 /dev/zero | tr '\\0' x; echo END", policy={"output_limit": 1024})
    assert answer["stdout"].endswith("xEND\n")
    assert (len(answer["stdout"]), answer["stdout_bytes_dropped"]) == (1024, 200004 - 1024)


def test_a_signal_to_corral_run_reaches_the_command(bed: Bed) -> None:
    main = "import os, sys; os.chdir('work'); from corral.cli import main; sys.exit(main())"
    line = "trap 'echo got it; exit 5' USR1; touch ready; while :; do sleep 0.05; done"
    words = ("/usr/bin/python3", "-c", main, "run", "--backend", "systemd-run", "bash", "-c", line)
    with bed.testbed.start(*words, variables=bed.variables) as run:
        wait_for(bed)
        bed.sh("pkill -USR1 -u 60999 -o -f 'sys.exit.[m]ain'")
        assert run.wait(20) == 5
        assert run.stdout is not None
        assert run.stdout.read() == "got it\n"
