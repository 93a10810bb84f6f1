"""Two thousand launches from eight threads leave nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from corral import CommandNotFound, CorralError, LocalEnvironment
from jail.world import World
from leaks import no_leaks

pytestmark = [pytest.mark.jail, pytest.mark.timeout(120)]

LAUNCHES, THREADS = 2000, 8


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files that no other program on the host uses."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


@pytest.fixture
def warm(backend: str, world: World, temp: Path) -> None:
    """What the first environment of a process makes for all that follow is there: a pidfd of ourselves."""
    with world.environment(backend) as environment:
        environment.run(["true"])


def from_threads(function: Callable[[int], object], times: int) -> list[object]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, range(times)))


@pytest.mark.usefixtures("warm")
def test_two_thousand_launches_from_eight_threads_leak_nothing(
    backend: str, world: World, temp: Path
) -> None:
    def run(number: int) -> bool:
        command = ["sh", "-c", "sleep 9 & exit $0", str(number % 7)]
        return environment.run(command, env={"PATH": "/usr/bin:/bin"}).exit_code == number % 7

    with no_leaks(world.base, temp), world.environment(backend) as environment:
        assert all(from_threads(run, LAUNCHES))


def test_an_environment_whose_first_commands_come_at_once_makes_one_temp_directory(
    backend: str, world: World, temp: Path
) -> None:
    for _ in range(5):
        with world.environment(backend) as environment:
            shown = from_threads(partial(inode_of_temp, environment), 16)
        assert len(set(shown)) == 1
    assert [path for top in temp.iterdir() for path in top.iterdir()] == []


def inode_of_temp(environment: LocalEnvironment, _: int) -> str:
    return environment.shell("stat -c %i ${TMPDIR:-/tmp}").stdout


def attempt(environment: LocalEnvironment, number: int) -> str:
    try:
        if number % 3 == 0:
            environment.run(["no-such-program"])
        elif number % 3 == 1:
            return f"timed out: {environment.run(['sleep', '9'], timeout=0.01).timed_out}"
        else:
            environment.run(["true"], cwd="missing")
    except CommandNotFound:
        return "not found"
    except CorralError:
        return "refused"
    return "ran"


@pytest.mark.usefixtures("warm")
def test_launches_that_fail_leak_nothing(backend: str, world: World, temp: Path) -> None:
    with no_leaks(world.base, temp), world.environment(backend) as environment:
        answers = from_threads(partial(attempt, environment), 300)
    assert set(answers) == {"not found", "timed out: True", "refused"}


@pytest.mark.usefixtures("warm")
def test_an_environment_leaves_nothing_when_it_is_closed(backend: str, world: World, temp: Path) -> None:
    with no_leaks(world.base, temp):
        for _ in range(20):
            with world.environment(backend) as environment:
                assert environment.shell(
                    "mktemp -d; mkdir -p ${TMPDIR:-/tmp}/a/b; chmod 0 ${TMPDIR:-/tmp}/a"
                ).ok
