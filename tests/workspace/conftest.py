"""Fixtures for workspaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jail.world import BACKENDS, new_world
from workspace.desk import Desk, new_desk

SETTINGS = (
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "CORRAL_CONFIG_DIR",
    "CORRAL_STATE_DIR",
    "TMPDIR",
)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with new_world() as world:
        monkeypatch.setenv("HOME", str(world.home))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for name in SETTINGS:
            monkeypatch.delenv(name, raising=False)
        yield new_desk(world)
