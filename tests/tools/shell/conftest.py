"""A room whose commands are jailed, by each mechanism in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral import Policy
from jail.world import BACKENDS, World, new_world
from tools.room import Room, open_room


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with new_world() as made:
        monkeypatch.setenv("HOME", str(made.home))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CORRAL_CONFIG_DIR", "CORRAL_STATE_DIR", "TMPDIR"):
            monkeypatch.delenv(name, raising=False)
        yield made


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def room(world: World, backend: str) -> Iterator[Room]:
    policy = Policy.workspace_write(backend=backend)
    with open_room(world.workspace, policy) as made:
        yield made


@pytest.fixture
def any_room(world: World) -> Iterator[Room]:
    """Where the mechanism makes no difference."""
    with open_room(world.workspace, Policy.workspace_write()) as made:
        yield made
