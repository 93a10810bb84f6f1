"""Control groups: where one may be made, that each run has its own and leaves none, and what it counts.

Controllers are rare where tests run; the groups themselves are not. What needs a controller is tried wherever there is
one, and on every kernel of tests/kernels.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral import Limits, NotEnforceable, Policy
from corral.jail import cgroups, delegation
from corral.jail.cgroups import Group
from corral.jail.delegation import Delegation
from corral.jail.enclosure import Enclosure
from corral.jail.host import launcher_path
from hostfacts import own_control_group, skip_unless_host
from jail.world import World, python

pytestmark = pytest.mark.jail

# ---- where ----

# What the files of the group above ours and of our own say, and the answer. Plain files stand for them.
BESIDE: dict[str, tuple[dict[str, str], bool]] = {
    "given": ({"above/cgroup.subtree_control": "cpu memory pids"}, True),
    "without processes": ({"above/cgroup.subtree_control": "memory"}, True),
    "not given": ({"above/cgroup.subtree_control": "cpu pids"}, False),
    "nothing given": ({"above/cgroup.subtree_control": ""}, False),
    "free": ({"own/memory.max": "max", "own/cpu.max": "max 100000", "own/io.max": ""}, True),
    "bound in memory": ({"own/memory.max": "1073741824"}, False),
    "throttled in memory": ({"own/memory.high": "1073741824"}, False),
    "bound in time": ({"own/cpu.max": "50000 100000"}, False),
    "bound to processors": ({"own/cpuset.cpus": "0-1"}, False),
}


@pytest.mark.parametrize("row", BESIDE)
def test_a_group_is_made_beside_ours_only_where_ours_has_no_limit_to_escape(row: str, tmp_path: Path) -> None:
    files, expected = BESIDE[row]
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    for name, text in files.items():
        (tmp_path / name.removeprefix("above/")).write_text(text)
    place, why_not = delegation._beside(str(own))
    assert (place is not None, why_not == "") == (expected, expected)


def test_a_group_beside_ours_may_have_no_more_processes_than_ours(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    (own / "pids.max").write_text("500")
    place, _ = delegation._beside(str(own))
    assert place is not None
    assert place.processes == 500


def test_our_own_group_takes_others_below_it_only_if_we_are_alone_in_it(tmp_path: Path) -> None:
    for name, text in (("controllers", "memory pids"), ("subtree_control", ""), ("type", "domain")):
        (tmp_path / f"cgroup.{name}").write_text(text)
    for processes, expected in ((f"{os.getpid()}\n", True), (f"1\n{os.getpid()}\n", False)):
        (tmp_path / "cgroup.procs").write_text(processes)
        place, _ = delegation._below(str(tmp_path))
        assert (place is not None) == (expected and not os.path.isdir("/run/systemd/system"))
        if place is not None:
            assert (place.enable, place.step_down) == (("memory", "pids"), True)


def test_the_first_group_of_all_may_have_processes_itself(tmp_path: Path) -> None:
    for name, text in (("controllers", "memory pids"), ("subtree_control", "pids"), ("procs", "1\n")):
        (tmp_path / f"cgroup.{name}").write_text(text)
    place, _ = delegation._below(str(tmp_path))
    assert place is not None
    assert (place.enable, place.step_down) == (("memory",), False)


def test_a_host_without_one_says_why_and_holds_memory_by_the_sum() -> None:
    place, why_not = delegation.find_delegation()
    outlook = delegation.outlook()
    assert (place is None) == (why_not != "") == (outlook.group == "")
    assert ("a control group in" in outlook.words) == (place is not None)
    assert ("a sum" in outlook.words) == (outlook.group != "alone")


def test_a_run_that_needs_no_group_asks_for_none(backend: str, world: World) -> None:
    """It costs a launch milliseconds."""
    for limits, expected in (
        (Limits(), False),
        (Limits(wall=5, cpu=5), False),
        (Limits(memory=1 << 28), True),
    ):
        enclosure = Enclosure(str(world.workspace), Policy.workspace_write(backend=backend, limits=limits))
        try:
            assert enclosure.wants_group() == expected
        finally:
            enclosure.close()


# ---- a group's life ----


@pytest.fixture
def place() -> Iterator[Delegation]:
    """A real group, which gives those below it no controllers."""
    skip_unless_host("control-groups")
    top = Path(own_control_group(), f"corral-test-{os.getpid()}")
    top.mkdir()
    try:
        yield Delegation(str(top), ())
    finally:
        deadline = time.monotonic() + 5
        while not cgroups._removed(str(top)) and time.monotonic() < deadline:
            (top / "cgroup.kill").write_text("1")


def groups_in(place: Delegation) -> list[str]:
    return [entry.name for entry in os.scandir(place.directory) if entry.is_dir()]


@contextlib.contextmanager
def running_in(group: Group) -> Iterator[int]:
    """Something in the group that lasts."""
    words = [launcher_path(), "fd", "0", str(group.procs), "group", "0", "--", "sleep", "100"]
    with subprocess.Popen(words, pass_fds=(group.procs,)) as process:
        inner = Path(group.directory, "in/cgroup.procs")
        while not inner.read_text() and process.poll() is None:
            pass
        yield process.pid
        process.kill()


def test_a_group_takes_a_process_and_is_gone_afterwards(place: Delegation) -> None:
    group = cgroups._make(place, Limits(processes=None))
    assert groups_in(place) == [Path(group.directory).name]
    assert cgroups._takes_one(group.procs)
    group.remove()
    assert groups_in(place) == []


def test_what_still_runs_keeps_its_group_until_it_is_gone(place: Delegation) -> None:
    group = cgroups._make(place, Limits(processes=None))
    with running_in(group):
        group.remove()
        cgroups.remove_left()
        assert len(groups_in(place)) == 1
    cgroups.remove_left()
    assert groups_in(place) == []


def test_groups_that_a_command_made_in_its_own_are_removed_too(place: Delegation) -> None:
    group = cgroups._make(place, Limits(processes=None))
    Path(group.directory, "in/deep/deeper").mkdir(parents=True)
    group.remove()
    assert groups_in(place) == []


LEAVE = """
import os, signal, sys
from corral import Limits
from corral.jail import cgroups, delegation
group = cgroups._make(delegation.Delegation(sys.argv[1], ()), Limits(processes=None))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_group_whose_caller_is_gone_is_swept_away_and_one_that_is_held_is_not(place: Delegation) -> None:
    held = cgroups._make(place, Limits(processes=None))
    subprocess.run([sys.executable, "-c", LEAVE, place.directory])
    assert len(groups_in(place)) == 2
    cgroups._sweep(place.directory)
    assert groups_in(place) == [Path(held.directory).name]
    held.remove()


def test_what_runs_in_a_group_that_nobody_holds_is_ended(place: Delegation) -> None:
    """In the Landlock tier a supervisor that is killed leaves what its command had started."""
    group = cgroups._make(place, Limits(processes=None))
    with running_in(group) as pid:
        os.close(group._lock)
        group._lock = -1
        cgroups._sweep(place.directory)
        assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_status == signal.SIGKILL  # type: ignore[union-attr]
    cgroups._sweep(place.directory)
    assert groups_in(place) == []
    group.remove()


def test_a_user_moves_a_process_only_below_a_group_that_was_given_to_it(place: Delegation) -> None:
    """From a group beside it, also ours, the way leads over one above them that is the host's."""
    skip_unless_host("root-only")
    top = Path(place.directory)
    for name in ("given", "given/session", "other"):
        (top / name).mkdir()
        for path in (top / name, top / name / "cgroup.procs"):
            os.chown(path, NOBODY, NOBODY)
    assert entered_as_nobody(top / "given/session", top / "given") == f"{top.name}/given/corral-run-"
    assert entered_as_nobody(top / "other", top / "given") == "Permission denied"


NOBODY = 65534


def entered_as_nobody(start: Path, into: Path) -> str:
    """Where a process of another user's gets that begins in one group and enters a new one."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            (start / "cgroup.procs").write_text(str(os.getpid()))
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            group = cgroups._make(Delegation(str(into), ()), Limits(processes=None))
            os.write(group.procs, b"0")
            said = own_control_group().removesuffix("/in")[: -len("0123456789ab")]
            (start / "cgroup.procs").write_text(str(os.getpid()))
            group.remove()
        except OSError as error:
            said = str(error.strerror)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said.removeprefix(f"{own_control_group()}/")


# ---- what it counts ----

FILL_FILE = """
import os, sys
file = os.memfd_create("filled")
for _ in range(int(sys.argv[1])):
    os.write(file, bytes(1 << 20))
print("kept")
"""


def test_memory_in_files_that_nobody_maps_is_counted(backend: str, world: World) -> None:
    skip_unless_host("memory-group")
    with world.environment(backend, limits=Limits(memory=200 << 20)) as environment:
        much = environment.run(python(FILL_FILE, "300"), timeout=20)
        assert (much.over, much.stdout) == ("memory", "")
        assert environment.run(python(FILL_FILE, "100"), timeout=20).stdout == "kept\n"


def test_a_limit_that_only_a_sum_holds_is_a_gap_that_is_told(backend: str, world: World) -> None:
    counted = cgroups.usable_delegation() is not None
    with world.environment(backend, limits=Limits(memory=200 << 20)) as environment:
        assert ("memory-limit" in environment.run(["true"]).not_covered) == (not counted)
    with world.environment(backend) as environment:
        assert "memory-limit" not in environment.run(["true"]).not_covered


def test_a_group_can_be_demanded(backend: str, world: World) -> None:
    limits, demands = Limits(memory=200 << 20), ("memory-limit",)
    if cgroups.usable_delegation() is None:
        with pytest.raises(NotEnforceable, match=r"no process maps.*Remedy: start it where a control group"):
            world.environment(backend, limits=limits, demands=demands)
    else:
        with world.environment(backend, limits=limits, demands=demands) as environment:
            assert environment.run(["true"]).ok


def test_without_a_group_such_memory_escapes_the_sum(backend: str, world: World) -> None:
    """A plan for somebody else's spawner has none anywhere: what the documentation says is so."""
    policy = Policy.workspace_write(backend=backend, limits=Limits(memory=200 << 20))
    enclosure = Enclosure(str(world.workspace), policy)
    try:
        words = [launcher_path(), *enclosure.plan(python(FILL_FILE, "300"), wrapped=True).inline()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        assert "memory-limit" in enclosure.plan(["true"], wrapped=True).not_covered
    finally:
        enclosure.close()
    assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr
