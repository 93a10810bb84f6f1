"""group: the command and all it starts are in the control group; whoever watches it is not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostfacts import own_control_group, skip_unless_host
from launcher.driver import KEEPERS, LIST_DESCRIPTORS, Watched, held_descriptors, launch, python, refused_step

pytestmark = pytest.mark.jail

EBADF, ENODEV = 9, 19
SHOW = "import os; print(open('/proc/self/cgroup').read().rsplit('0::')[-1].strip(), flush=True)\n"


@pytest.fixture
def group() -> Iterator[Path]:
    """An empty one below ours; what is limited by one is tried on other kernels, which have the controllers."""
    skip_unless_host("control-groups")
    made = Path(own_control_group(), f"corral-test-{os.getpid()}")
    made.mkdir()
    yield made
    with contextlib.suppress(FileNotFoundError):
        made.rmdir()


@contextlib.contextmanager
def way_into(group: Path, flags: int = os.O_WRONLY) -> Iterator[int]:
    fd = os.open(group / "cgroup.procs", flags)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture(params=list(KEEPERS))
def keeper(request: pytest.FixtureRequest) -> list[object]:
    if request.param == "init":
        skip_unless_host("user-namespaces")
    return list(KEEPERS[request.param])


def entering(keeper: list[object], fd: int) -> list[object]:
    """In the place that it has in a plan: the supervisor is on its own by then, PID 1 is not there yet."""
    at = len(keeper) - 1 if keeper[-1] == "init" else len(keeper)
    return ["fd", 0, fd, *keeper[:at], "group", 0, *keeper[at:]]


def test_the_command_and_what_it_starts_are_in_the_group(group: Path, keeper: list[object]) -> None:
    forking = python(f"{SHOW}if os.fork() == 0:\n    {SHOW}else:\n    os.wait()")
    with way_into(group) as fd:
        inside = launch(entering(keeper, fd), forking, pass_fds=(fd,))
        outside = launch(keeper, forking)
    assert [Path(line).name for line in inside.stdout.decode().split()] == [group.name] * 2, inside
    assert group.name not in outside.stdout.decode()
    assert (group / "cgroup.procs").read_text() == ""


def test_the_supervisor_stays_outside(group: Path, keeper: list[object]) -> None:
    waiting = python("print('up', flush=True); import sys; sys.stdin.read()")
    with way_into(group) as fd:
        reader, writer = os.pipe()
        with Watched(entering(keeper, fd), waiting, stdin=reader, pass_fds=(fd,)) as run:
            os.close(reader)
            assert run.line() == "run"
            supervisor = Path(f"/proc/{run.process.pid}/cgroup").read_text()
            within = (group / "cgroup.procs").read_text().split()
            os.close(writer)
            assert run.line().startswith("end 0 ")
    assert group.name not in supervisor
    assert len(within) == (2 if keeper[-1] == "init" else 1)  # PID 1 is counted too, where there is one
    assert str(run.process.pid) not in within


def test_the_command_does_not_get_the_way_in(group: Path, keeper: list[object]) -> None:
    with way_into(group) as fd:
        done = launch(entering(keeper, fd), LIST_DESCRIPTORS, pass_fds=(fd,))
    assert not [path for path in held_descriptors(done).values() if "cgroup" in path]


def test_a_group_that_cannot_be_entered_is_refused(group: Path) -> None:
    with way_into(group, os.O_RDONLY) as fd:
        assert refused_step(launch(["fd", 0, fd, "group", 0], ["true"], pass_fds=(fd,))) == (1, EBADF)
    with way_into(group) as fd:
        group.rmdir()
        assert refused_step(launch(["fd", 0, fd, "group", 0], ["true"], pass_fds=(fd,))) == (1, ENODEV)
