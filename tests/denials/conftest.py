"""Fixtures for refusals: the world of the attacks, with something in it for tools to work on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from denials.refusals import furnish
from jail.world import BACKENDS, World, new_world


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with new_world() as made:
        monkeypatch.setenv("HOME", str(made.home))
        for name in (
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "CORRAL_CONFIG_DIR",
            "CORRAL_STATE_DIR",
            "TMPDIR",
            "CORRAL",
        ):
            monkeypatch.delenv(name, raising=False)
        furnish(made)
        yield made


@pytest.fixture
def repository(world: World) -> World:
    """The world, with a git repository outside."""
    git = ["git", "-C", str(world.outside)]
    subprocess.run([*git, "init", "-q", "repo"], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run([*git, "-C", "repo", "config", name, value], check=True)
    (world.outside / "repo/file").write_text("x")
    return world
