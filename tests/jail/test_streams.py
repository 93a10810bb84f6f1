"""Standard descriptors carry the host's mounts into a jail: what may be on them, and what can be done through them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from hostfacts import block_device, skip_unless_host
from jail.fences import without
from jail.inline import REFUSED, inline_plan, run_inline, words
from jail.world import PYTHON, World, fingerprint, python

pytestmark = pytest.mark.jail

CHANGE_MODE = "import os; os.fchmod(0, 0o600)"
WRITE_AGAIN = "import os; os.write(os.open('/proc/self/fd/0', os.O_WRONLY), b'x')"
TRUNCATE = "import os; os.truncate('/proc/self/fd/0', 0)"


def test_a_file_on_standard_input_is_read_from_where_it_stood(backend: str, world: World) -> None:
    victim = world.outside / "victim"
    with inline_plan(world.workspace, ["cat"], backend=backend) as plan, victim.open("rb") as file:
        os.lseek(file.fileno(), 2, os.SEEK_SET)
        done = run_inline(plan, stdin=file)
    assert (done.returncode, done.stdout) == (0, "touched")


@pytest.mark.parametrize("attack", [WRITE_AGAIN, TRUNCATE])
def test_a_file_on_standard_input_cannot_be_written_through_its_descriptor(
    backend: str, world: World, attack: str
) -> None:
    victim = world.outside / "victim"
    before = fingerprint(victim)
    with inline_plan(world.workspace, python(attack), backend=backend) as plan, victim.open("rb") as file:
        done = run_inline(plan, stdin=file)
    assert done.returncode == 1
    assert "PermissionError" in done.stderr or "Read-only" in done.stderr
    assert fingerprint(victim) == before


def test_the_mode_of_a_file_on_standard_input_stays_and_only_because_it_is_opened_anew(world: World) -> None:
    victim = world.outside / "victim"
    victim.chmod(0o644)
    before = fingerprint(victim)
    with inline_plan(world.workspace, python(CHANGE_MODE), backend="namespaces") as plan:
        with victim.open("rb") as file:
            assert "Read-only" in run_inline(plan, stdin=file).stderr
        assert fingerprint(victim) == before
        with victim.open("rb") as file:
            assert run_inline(plan, weaken=without("stdio"), stdin=file).returncode == 0
    assert victim.stat().st_mode & 0o777 == 0o600


def test_the_landlock_tier_says_that_it_does_not_hold_the_mode_of_a_file_on_standard_input(
    world: World,
) -> None:
    with inline_plan(world.workspace, python(CHANGE_MODE), backend="landlock") as plan:
        with (world.outside / "victim").open("rb") as file:
            assert run_inline(plan, stdin=file).returncode == 0
        assert "metadata" in plan.not_covered


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_directory_on_a_standard_descriptor_is_refused(backend: str, world: World, number: int) -> None:
    with inline_plan(world.workspace, ["touch", "ran"], backend=backend) as plan:
        assert refuses(plan.inline(), number, world.outside, os.O_RDONLY | os.O_DIRECTORY)
    assert not (world.workspace / "ran").exists()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_descriptor_without_access_is_refused(backend: str, world: World, number: int) -> None:
    with inline_plan(world.workspace, ["touch", "ran"], backend=backend) as plan:
        assert refuses(plan.inline(), number, world.outside / "victim", os.O_PATH)
    assert not (world.workspace / "ran").exists()


def test_a_block_device_on_standard_input_is_refused(backend: str, world: World) -> None:
    skip_unless_host("block-device")
    device = block_device()
    assert device is not None
    with inline_plan(world.workspace, ["touch", "ran"], backend=backend) as plan:
        assert refuses(plan.inline(), 0, device, os.O_RDONLY | os.O_NONBLOCK)
    assert not (world.workspace / "ran").exists()


def refuses(inline: list[str], number: int, path: Path, flags: int) -> bool:
    """Whether the launcher refuses to start with this opened as that standard descriptor."""
    fd = os.open(path, flags)
    try:
        actions = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in (0, 1, 2) if n != number]
        launcher = launcher_path()
        pid = os.posix_spawn(
            launcher, [launcher, *inline], {}, file_actions=[*actions, (os.POSIX_SPAWN_DUP2, fd, number)]
        )
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == REFUSED
    finally:
        os.close(fd)


@pytest.mark.parametrize("name", [".ssh/id_test", ".netrc"])
def test_a_hidden_file_on_standard_input_is_refused(world: World, name: str) -> None:
    """It would have to be opened again inside, where it is not."""
    with inline_plan(world.workspace, ["cat"], backend="namespaces") as plan:
        with (world.home / name).open("rb") as file:
            assert run_inline(plan, stdin=file).returncode == REFUSED
        with (world.home / ".profile").open("rb") as file:
            assert run_inline(plan, stdin=file).stdout == "plain"


def test_pipes_null_and_files_without_a_name_are_taken_as_they_are(backend: str, world: World) -> None:
    with inline_plan(world.workspace, ["cat"], backend=backend) as plan:
        assert run_inline(plan, stdin=None, input="piped").stdout == "piped"
        assert run_inline(plan).stdout == ""
        nameless = os.memfd_create("here-document")
        try:
            os.write(nameless, b"here")
            os.lseek(nameless, 0, os.SEEK_SET)
            assert run_inline(plan, stdin=nameless).stdout == "here"
        finally:
            os.close(nameless)


def test_a_file_that_is_open_for_writing_is_the_callers_wish(backend: str, world: World) -> None:
    """`run CMD > log`: the log is written, wherever it lies."""
    log = world.outside / "log"
    with inline_plan(world.workspace, ["sh", "-c", "echo kept >&2"], backend=backend) as plan:
        redirected = ["sh", "-c", 'log=$1; shift; exec "$@" 2> "$log"', "sh", str(log), *words(plan)]
        subprocess.run(redirected, check=True, timeout=20, stdin=subprocess.DEVNULL)
    assert log.read_text() == "kept\n"


def test_a_descriptor_that_leaked_into_the_caller_does_not_reach_the_command(
    backend: str, world: World
) -> None:
    listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    directory = os.open(world.outside, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(directory, True)
    try:
        with world.environment(backend) as environment:
            # Three streams, and the one that lists.
            assert environment.run([PYTHON, "-I", "-S", "-c", listing]).stdout == "[0, 1, 2, 3]\n"
    finally:
        os.close(directory)
