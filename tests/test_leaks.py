"""The leak check catches a planted leak of every kind, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hostfacts import skip_unless_host
from leaks import LeakFoundError, no_leaks

pytestmark = pytest.mark.jail

SLEEP = ["sleep", "60"]
SLEEP_IN_NEW_NAMESPACE = ["unshare", "--user", "--map-root-user", "--uts", *SLEEP]

# Forks twice into a session of its own and drops its environment: no parent and no variable leads back to us.
START_ORPHAN = """
import os
if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.execve("/bin/sleep", ["sleep", "60"], {})
os.wait()
"""

LEAK_A_MOUNT = """
import subprocess, sys
from pathlib import Path
from leaks import LeakFoundError, no_leaks
try:
    with no_leaks():
        subprocess.run(["mount", "-t", "tmpfs", "planted", sys.argv[1]], check=True)
except LeakFoundError as found:
    assert list(found.leaked) == ["mounts"], found
    assert sys.argv[1] in found.leaked["mounts"][0]
    print("caught")
"""


def test_a_block_that_cleans_up_passes(tmp_path: Path) -> None:
    with no_leaks(tmp_path):
        subprocess.run(["true"], check=True)
        (tmp_path / "file").touch()
        (tmp_path / "file").unlink()


def test_what_ends_within_a_second_is_no_leak(tmp_path: Path) -> None:
    with no_leaks(tmp_path):
        file = tmp_path / "file"
        file.touch()
        threading.Timer(0.3, file.unlink).start()


def test_the_exception_of_the_block_is_the_one_that_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"), no_leaks(tmp_path):
        (tmp_path / "left").touch()
        raise KeyError("mine")


def test_a_planted_descriptor_is_caught() -> None:
    with pytest.raises(LeakFoundError) as found, no_leaks():
        fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)
    assert found.value.leaked == {"descriptors": [f"{fd} -> /dev/null"]}


def test_a_planted_process_is_caught() -> None:
    with pytest.raises(LeakFoundError) as found, no_leaks():
        child = subprocess.Popen(SLEEP)
    with ended(child.pid):
        child.kill()
        child.wait()
    assert found.value.leaked == {"processes": [f"{child.pid} (sleep)"]}


def test_a_planted_zombie_is_caught() -> None:
    with pytest.raises(LeakFoundError) as found, no_leaks():
        pid = os.posix_spawnp("true", ["true"], os.environ)
    os.waitpid(pid, 0)
    assert found.value.leaked == {"processes": [f"{pid} (true) zombie"]}


def test_a_planted_process_that_left_family_session_and_environment_is_caught() -> None:
    with pytest.raises(LeakFoundError) as found, no_leaks():
        start = [sys.executable, "-I", "-c", START_ORPHAN]
        pid = int(subprocess.run(start, stdout=subprocess.PIPE, check=True).stdout)
    with ended(pid):
        assert found.value.leaked == {"processes": [f"{pid} (sleep)"]}


def test_a_planted_namespace_is_caught_with_the_process_in_it() -> None:
    skip_unless_host("user-namespaces")
    with pytest.raises(LeakFoundError) as found, no_leaks():
        child = subprocess.Popen(SLEEP_IN_NEW_NAMESPACE)
    child.kill()
    child.wait()
    assert kinds_of_namespaces(found.value) == ["user", "uts"]
    assert list(found.value.leaked) == ["processes", "namespaces"]


def test_a_planted_namespace_is_caught_when_only_a_descriptor_holds_it() -> None:
    skip_unless_host("user-namespaces")
    with pytest.raises(LeakFoundError) as found, no_leaks():
        fd = descriptor_of_a_new_namespace()
    os.close(fd)
    assert kinds_of_namespaces(found.value) == ["uts"]
    assert list(found.value.leaked) == ["descriptors", "namespaces"]


def test_a_planted_mount_is_caught(tmp_path: Path) -> None:
    skip_unless_host("user-namespaces")
    in_own_mount_namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    leak = [sys.executable, "-c", LEAK_A_MOUNT, str(tmp_path)]
    importing_from_here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [*in_own_mount_namespace, *leak], env=importing_from_here, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("caught\n", "")


def test_a_planted_file_is_caught_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    planted = tmp_path / "state" / "left"
    with pytest.raises(LeakFoundError) as found, no_leaks(tmp_path):
        planted.touch()
    assert found.value.leaked == {"files": [str(planted)]}


def kinds_of_namespaces(error: LeakFoundError) -> list[str]:
    return [link.partition(":")[0] for link in error.leaked["namespaces"]]


def descriptor_of_a_new_namespace() -> int:
    say_when_inside = "echo inside; exec sleep 60"
    unshare = SLEEP_IN_NEW_NAMESPACE[: -len(SLEEP)]
    with subprocess.Popen([*unshare, "sh", "-c", say_when_inside], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        fd = os.open(f"/proc/{child.pid}/ns/uts", os.O_RDONLY)
        child.kill()
    return fd


@contextmanager
def ended(pid: int) -> Iterator[None]:
    """Whatever the block finds, the planted process does not stay."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
