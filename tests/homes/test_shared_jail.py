"""One jail for all commands of an environment, where that jail has a home of its own."""

from __future__ import annotations

import os

import pytest

from corral import LocalEnvironment, Policy
from jail.conftest import world as world  # the same fixture
from jail.world import World

pytestmark = pytest.mark.jail

MODES = ("strict",) if os.getuid() == 0 else ("casual", "bare", "strict")


@pytest.mark.parametrize("mode", MODES)
def test_what_one_command_left_running_is_the_next_ones_to_end(world: World, mode: str) -> None:
    policy = Policy(mode=mode)  # type: ignore[arg-type]
    with LocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
        environment.shell("sleep 100 & echo $! > /tmp/pid; echo kept > ~/file")
        done = environment.shell("kill $(cat /tmp/pid) && cat ~/file")
        assert (done.exit_code, done.stdout) == (0, "kept\n")
        assert environment.shell(f"echo x > {world.outside}/victim").exit_code == (
            0 if mode == "casual" else 1
        )
        assert environment.run(["ls", "/proc/1/fd/"]).exit_code != 0
    assert (world.outside / "victim").read_text() == "untouched"
