"""`lifetime="environment"`: one jail for all commands. What one leaves running the next finds; close() ends it all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral import LocalEnvironment, NotEnforceable, Policy, PolicyError
from jail.world import PYTHON, World, carrying, eventually, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

SERVER = [PYTHON, "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1"]
FETCH = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/greeting', timeout=10).read().decode())"
LEAVE = "setsid sh -c 'while :; do sleep 0.05; done' \"$0\" > /dev/null 2>&1 < /dev/null & echo $!"


@pytest.fixture
def shared(world: World) -> Iterator[LocalEnvironment]:
    policy = Policy.workspace_write(backend="namespaces")
    with (
        no_leaks(world.base),
        LocalEnvironment(world.workspace, policy, lifetime="environment") as environment,
    ):
        yield environment
        (world.workspace / "greeting").unlink(missing_ok=True)


# ---- what is shared ----


def test_a_server_in_the_background_is_reached_by_a_command_with_the_network_off(
    shared: LocalEnvironment, world: World
) -> None:
    (world.workspace / "greeting").write_text("hello from inside")
    assert shared.posture.network == "off"
    server = shared.background("web", SERVER)
    assert eventually(lambda: "Serving" in server.output, 20)
    assert shared.run(python(FETCH)).stdout == "hello from inside\n"
    with shared.start(python(FETCH)) as process:
        assert process.wait().exit_code == 0
    assert '"GET /greeting' in server.output
    refused = subprocess.run([sys.executable, "-c", FETCH], capture_output=True, text=True)
    assert "refused" in refused.stderr


def test_without_it_each_command_has_a_network_of_its_own(world: World) -> None:
    (world.workspace / "greeting").write_text("hello")
    with world.environment("namespaces") as environment:
        server = environment.background("web", SERVER)
        assert eventually(lambda: "Serving" in server.output, 20)
        assert "refused" in environment.run(python(FETCH)).stderr


def test_a_daemon_left_by_one_command_is_found_and_stopped_by_the_next(shared: LocalEnvironment) -> None:
    mark = new_mark()
    pid = shared.run(["sh", "-c", LEAVE, mark]).stdout.strip()
    assert eventually(lambda: len(carrying(mark)) >= 1)
    assert (
        mark
        in shared.run(["tr", "\\0", " "], stdin=shared.run(["cat", f"/proc/{pid}/cmdline"]).stdout).stdout
    )
    assert shared.run(["kill", pid]).exit_code == 0
    assert eventually(lambda: carrying(mark) == [])
    assert shared.run(["kill", "-0", pid]).exit_code == 1


def test_closing_ends_everything_that_was_left(world: World) -> None:
    mark = new_mark()
    policy = Policy.workspace_write(backend="namespaces")
    with no_leaks(world.base):
        with LocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
            for _ in range(3):
                environment.run(["sh", "-c", LEAVE, mark])
            job = environment.background("left", ["sh", "-c", LEAVE + "; sleep 300", mark])
            process = environment.start(["sh", "-c", LEAVE + "; sleep 300", mark])
            assert eventually(lambda: len(carrying(mark)) >= 7)
        assert carrying(mark) == []
        assert not job.is_running
        assert process.wait().signal == signal.SIGKILL


def test_by_default_a_command_leaves_nothing(backend: str, world: World) -> None:
    mark = new_mark()
    with world.environment(backend) as environment:
        assert environment.lifetime == "command"
        pid = environment.run(["sh", "-c", LEAVE, mark]).stdout.strip()
        assert pid.isdecimal()
        assert carrying(mark) == []


def test_temporary_files_shared_memory_and_the_process_list_are_one(shared: LocalEnvironment) -> None:
    shared.run(["sh", "-c", "echo a > /tmp/a; echo b > /dev/shm/b"], check=True)
    assert shared.run(["cat", "/tmp/a", "/var/tmp/a", "/dev/shm/b"]).stdout == "a\na\nb\n"
    assert not os.path.exists("/dev/shm/b")
    inode = shared.run(
        ["readlink", *(f"/proc/self/ns/{kind}" for kind in ("pid", "net", "ipc", "mnt", "user"))]
    )
    assert inode.stdout == shared.run(list(inode.argv)).stdout
    assert all(
        os.readlink(f"/proc/self/ns/{kind}") not in inode.stdout for kind in ("pid", "net", "ipc", "mnt")
    )


# ---- what holds as for any command ----


def test_time_out_and_stop_end_all_that_the_command_started_and_nothing_else(
    shared: LocalEnvironment,
) -> None:
    kept, ended = new_mark(), new_mark()
    shared.run(["sh", "-c", LEAVE, kept])
    done = shared.run(["sh", "-c", LEAVE + "; sleep 300", ended], timeout=0.3)
    assert done.timed_out
    assert carrying(ended) == []
    with shared.start(["sh", "-c", LEAVE + "; sleep 300", ended]) as process:
        process.read(10)
    assert carrying(ended) == []
    assert len(carrying(kept)) >= 1


def test_results_are_those_of_any_command(shared: LocalEnvironment) -> None:
    assert shared.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).exit_code == 3
    assert shared.run(["sh", "-c", "kill -TERM $$"]).signal == signal.SIGTERM
    assert shared.run(["cat"], stdin=b"x" * 1000000).stdout_bytes == b"x" * 1000000
    assert shared.run(["pwd"], cwd="/usr").stdout == "/usr\n"
    with pytest.raises(FileNotFoundError):
        shared.run(["no-such-command"])
    with shared.start(python("import os; print(os.isatty(0)); input()"), pty=True) as process:
        output = process.read(10)
        assert output is not None
        assert output.text.startswith("True")
        process.signal(signal.SIGTERM)
        assert process.wait(10).signal == signal.SIGTERM


ATTEMPTS = {
    "writes outside": "open({outside!r} + '/new', 'w')",
    "changes a mode outside": "os.chmod({outside!r} + '/victim', 0o600)",
    "reads a key": "open({home!r} + '/.ssh/id_test').read()",
    "makes a user namespace": "os.unshare(os.CLONE_NEWUSER)"
    if hasattr(os, "unshare")
    else "ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0 or 1 / 0",
    "mounts": "ctypes.CDLL(None, use_errno=True).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0 or 1 / 0",
    "reaches the network": "socket.create_connection(('192.0.2.1', 80), 1)",
    "looks into the supervisor": "os.readlink(f'/proc/{{os.getppid()}}/cwd')",
    "reads the supervisor's memory": "open(f'/proc/{{os.getppid()}}/mem', 'rb')",
    "traces the supervisor": "ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0 or 1 / 0",
    "takes a descriptor of the supervisor": "os.readlink(f'/proc/{{os.getppid()}}/fd/3')",
    "looks into the jail's own process": "os.readlink('/proc/1/cwd')",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_command_that_joined_is_fenced_as_any_other(
    shared: LocalEnvironment, world: World, attempt: str
) -> None:
    body = ATTEMPTS[attempt].format(outside=str(world.outside), home=str(world.home))
    source = (
        f"import ctypes, os, socket\nopen('here', 'w').close()\nos.remove('here')\n{body}\nprint('succeeded')"
    )
    shared.run(["true"])
    done = shared.run(python(source))
    assert done.exit_code == 1, done
    assert "Error" in done.stderr
    assert "succeeded" not in done.stdout


def test_many_commands_join_at_once(shared: LocalEnvironment) -> None:
    processes = [shared.start(["sh", "-c", "echo $$; sleep 0.1"]) for _ in range(30)]
    pids = {process.wait().stdout for process in processes}
    assert len(pids) == 30


def test_a_flood_from_something_left_behind_does_not_hold_up_the_command_that_left_it(
    shared: LocalEnvironment,
) -> None:
    started = time.monotonic()
    assert shared.run(["sh", "-c", "yes & echo done"]).exit_code == 0
    with shared.start(["sh", "-c", "yes & echo done"]) as process:
        assert process.wait().exit_code == 0
    assert time.monotonic() - started < 20


# ---- what is refused ----


def test_a_tier_without_a_jail_to_share_is_refused_by_name(world: World) -> None:
    with no_leaks():
        for policy in (Policy.workspace_write(backend="landlock"), Policy.off()):
            with pytest.raises(NotEnforceable, match="needs the namespaces tier") as refused:
                LocalEnvironment(world.workspace, policy, lifetime="environment")
            assert "\n" not in str(refused.value)
        with pytest.raises(PolicyError, match="lifetime is command or environment"):
            LocalEnvironment(world.workspace, lifetime="forever")  # type: ignore[arg-type]


def test_a_jail_that_was_ended_from_outside_is_not_silently_replaced(world: World) -> None:
    policy = Policy.workspace_write(backend="namespaces")
    mark = new_mark()
    with LocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
        environment.run(["sh", "-c", LEAVE, mark])
        shared = environment._gate._shared
        assert shared is not None
        assert shared._holder is not None
        os.kill(shared._holder.pid, signal.SIGKILL)
        assert eventually(lambda: carrying(mark) == [])
        with pytest.raises(NotEnforceable, match="ended from outside"):
            environment.run(["true"])


CALLER = """
import sys
from corral import LocalEnvironment, Policy
environment = LocalEnvironment(sys.argv[1], Policy.workspace_write(backend="namespaces"), lifetime="environment")
environment.run(["sh", "-c", sys.argv[2], sys.argv[3][::-1]])
print("left", flush=True)
sys.stdin.read()
"""


def test_when_the_caller_is_killed_nothing_of_the_jail_is_left(world: World) -> None:
    mark = new_mark()
    command = [sys.executable, "-c", CALLER, str(world.workspace), LEAVE, mark[::-1]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"left\n"
        assert eventually(lambda: len(carrying(mark)) >= 1)  # before its exec it does not carry it yet
        caller.kill()
    assert eventually(lambda: carrying(mark) == [], 2)


def test_the_jail_stays_even_where_the_launcher_is_out_of_sight_inside(world: World) -> None:
    """A package below /tmp, which is private in a jail: what holds the jail open must not be looked up there."""
    import corral

    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        shutil.copytree(
            Path(str(corral.__file__)).parent, place / "corral", ignore=shutil.ignore_patterns("__pycache__")
        )
        command = [sys.executable, "-c", CALLER, str(world.workspace), "cat /tmp/not-there; true", "mark"]
        environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert "left" in done.stdout, done.stderr
    finally:
        shutil.rmtree(place)
