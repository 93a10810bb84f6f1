"""What an environment keeps from run to run: the view is set once, and no run finds what another one left in it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from corral import PIPE, LocalEnvironment
from corral.jail import keptgrounds
from hostfacts import landlock_abi
from jail.world import World

pytestmark = pytest.mark.jail


@pytest.fixture
def warm(world: World) -> Iterator[LocalEnvironment]:
    """From its second run on it keeps what it set up."""
    with world.environment("namespaces") as environment:
        for _ in range(2):
            environment.run(["true"], check=True)
        yield environment


def is_used_again(environment: LocalEnvironment, line: str) -> bool:
    """Whether what a run stood on is there for the next one; unless something is mounted on the host meanwhile."""
    grounds = environment._gate.enclosure.grounds
    for _ in range(5):
        environment.run(["true"], check=True)
        kept = list(grounds.idle)
        environment.shell(line, check=True)
        if kept and list(grounds.idle) == kept:
            return True
    return False


def test_what_is_kept_is_used_again(warm: LocalEnvironment) -> None:
    assert is_used_again(warm, "true")
    assert is_used_again(warm, "mkdir /dev/shm/d; echo x > /dev/shm/d/x; rm -r /dev/shm/d")
    assert not is_used_again(warm, "echo x > /dev/shm/left")


LEFT = {
    "a file": ("echo secret > /dev/shm/left", "test -e /dev/shm/left"),
    "a file with a hidden name": ("echo secret > /dev/shm/.left", "test -e /dev/shm/.left"),
    "a directory": ("mkdir /dev/shm/left", "test -d /dev/shm/left"),
    "a link": ("ln -s /etc /dev/shm/left", "test -h /dev/shm/left"),
    "a mode": ("chmod 700 /dev/shm", "test $(stat -c %a /dev/shm) = 700"),
    "a file, dated back": ("echo s > /dev/shm/left; touch -d @0 /dev/shm", "test -e /dev/shm/left"),
}


@pytest.mark.parametrize("what", LEFT)
def test_nothing_is_left_in_shared_memory(warm: LocalEnvironment, what: str) -> None:
    leave, find = LEFT[what]
    for _ in range(3):
        assert warm.shell(f"{leave} && {find}").exit_code == 0
        assert warm.shell(find).exit_code == 1


def test_it_would_be_found_if_it_were_not_looked_for(
    warm: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptgrounds, "_look_at", lambda _: [])
    leave, find = LEFT["a file"]
    assert any(warm.shell(leave).exit_code == warm.shell(find).exit_code == 0 for _ in range(5))


def test_runs_at_once_share_no_memory(warm: LocalEnvironment) -> None:
    with warm.start(["sh", "-c", "echo x > /dev/shm/mine; echo up; cat"], stdin=PIPE) as first:
        assert first.read(10) == ("stdout", b"up\n")
        assert warm.shell("test -e /dev/shm/mine").exit_code == 1
        first.close_stdin()
        assert first.wait().exit_code == 0
    assert warm.shell("test -e /dev/shm/mine").exit_code == 1


def test_what_is_thrown_away_is_let_go_and_another_one_is_made(warm: LocalEnvironment) -> None:
    """At once, not with the environment: what was left in it is memory."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(40):  # more than are ever kept
        warm.shell("head -c 64K /dev/zero > /dev/shm/left", check=True)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert is_used_again(warm, "true")


def test_the_rules_are_inherited_by_nobody_else(warm: LocalEnvironment) -> None:
    grounds = warm._gate.enclosure.grounds
    held = [
        fd for ground in grounds.idle for _, fd in (*ground.held, *ground.places, ("rules", ground.rules))
    ]
    assert len(held) >= 3
    assert not any(os.get_inheritable(fd) for fd in held if fd >= 0)
    assert any(ground.rules >= 0 for ground in grounds.idle) == (landlock_abi() >= 1)
