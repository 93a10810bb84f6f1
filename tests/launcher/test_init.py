"""PID 1 of a jail: small, deaf to those inside, and closed to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.driver import Watched, children_of, eventually, jail, launch, python

pytestmark = [pytest.mark.jail, pytest.mark.usefixtures("user_namespaces")]

RESIDENT_KILOBYTES = 64
ALONE = [*jail(), "nonewprivs", "nocaps"]


@pytest.fixture
def running() -> Iterator[Watched]:
    environment = {"PATH": os.environ["PATH"], "BIG": "x" * 10_000}
    with Watched(ALONE, ["sleep", "100"], env=environment) as run:
        assert run.line() == "run"
        yield run


def pid_1_of(run: Watched) -> int:
    (pid,) = children_of(run.pid)
    return pid


def test_it_keeps_at_most_64_kilobytes_resident(running: Watched) -> None:
    def resident() -> int:
        pages = int(Path(f"/proc/{pid_1_of(running)}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024

    assert 0 < resident() <= RESIDENT_KILOBYTES


def test_the_supervisor_is_as_small(running: Watched) -> None:
    pages = int(Path(f"/proc/{running.pid}/statm").read_text().split()[1])
    assert pages * os.sysconf("SC_PAGE_SIZE") // 1024 <= RESIDENT_KILOBYTES


def test_it_holds_two_descriptors(running: Watched) -> None:
    held = Path(f"/proc/{pid_1_of(running)}/fd")
    if os.geteuid() == 0:
        assert eventually(lambda: len(list(held.iterdir())) == 2)
        assert {os.readlink(entry).split(":")[0] for entry in held.iterdir()} == {"socket", "anon_inode"}
    else:  # it is closed to its own user as well
        assert eventually(lambda: not os.access(held, os.R_OK))


def test_the_supervisor_holds_status_control_signals_and_the_mounts_to_take_down(running: Watched) -> None:
    def held() -> list[str]:
        return sorted(os.readlink(entry).split(":")[0] for entry in Path(f"/proc/{running.pid}/fd").iterdir())

    # It gives way to PID 1 first, and may have the rest to do when the command already runs.
    eventually(lambda: len(held()) == 4)
    assert held() == ["anon_inode", "mnt", "socket", "socket"]


@pytest.mark.parametrize("name", ["environ", "root", "cwd", "mem", "maps", "fd", "exe", "map_files"])
def test_nothing_of_it_can_be_read_from_inside(name: str) -> None:
    attempt = python(
        "import os, sys\n"
        "def look(path):\n"
        "    if sys.argv[1] in ('root', 'cwd', 'exe'): return os.readlink(path)\n"
        "    if sys.argv[1] in ('fd', 'map_files'): return os.readlink(path + '/' + os.listdir(path)[0])\n"
        "    return os.read(os.open(path, os.O_RDONLY), 1)\n"
        "for pid in ('1', 'self'):\n"
        "    try: look(f'/proc/{pid}/{sys.argv[1]}'); print(pid, 'readable')\n"
        "    except PermissionError: print(pid, 'refused')\n"
        "    except OSError: print(pid, 'readable')",  # an address that is not mapped: the right was there
        name,
    )
    done = launch(ALONE, ["sh", "-c", 'sleep 0.1; "$@"', "sh", *attempt])
    assert done.stdout.decode().splitlines() == ["1 refused", "self readable"], done


def test_the_same_holds_from_the_first_moment_on() -> None:
    """The command may be faster than PID 1 is after it has started it."""
    attempt = python(
        "import os, sys\n"
        "for _ in range(200):\n"
        "    try: os.open('/proc/1/environ', os.O_RDONLY); sys.exit('readable')\n"
        "    except PermissionError: pass"
    )
    for _ in range(10):
        done = launch(ALONE, attempt)
        assert done.returncode == 0, done


def test_it_cannot_be_traced_from_inside() -> None:
    attempt = python(
        "import ctypes, os, time\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def seize(pid):\n"
        "    done = libc.ptrace(0x4206, pid, None, None)\n"
        "    return done if done == 0 else ctypes.get_errno()\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(100)\n"
        "print(seize(child), seize(1))"
    )
    assert launch(ALONE, attempt).stdout == b"0 1\n"


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1]
)
def test_no_signal_from_inside_reaches_it(number: signal.Signals) -> None:
    done = launch(ALONE, ["sh", "-c", f"kill -{int(number)} 1; sleep 0.05; echo lived; exit 6"])
    assert (done.returncode, done.stdout) == (6, b"lived\n"), done


def test_a_signal_to_everybody_inside_spares_it_and_the_end_is_still_told() -> None:
    with Watched(ALONE, ["sh", "-c", "trap '' TERM; kill -TERM -1; echo lived; exit 6"]) as run:
        assert run.read_output() == b"lived\n"
        assert run.lines()[-1].split()[:2] == ["end", str(6 << 8)]


def test_its_death_from_outside_ends_the_run(running: Watched) -> None:
    os.kill(pid_1_of(running), signal.SIGKILL)
    assert running.lines()[-1].startswith("end 9 ")


def test_the_command_line_of_it_holds_no_variable() -> None:
    done = launch(
        ALONE, ["sh", "-c", "cat /proc/1/cmdline"], env={"PATH": os.environ["PATH"], "SECRET": "hidden-value"}
    )
    assert b"hidden-value" not in done.stdout


def test_it_reaps_what_is_left_to_it() -> None:
    count = python(
        "import os, time\n"
        "for _ in range(50):\n"
        "    if os.fork() == 0:\n"
        "        if os.fork() == 0: os._exit(0)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "time.sleep(0.2)\n"
        "print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))"
    )
    assert launch(ALONE, count).stdout == b"[1, 2]\n"
