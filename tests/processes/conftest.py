"""Fixtures for commands that are talked to while they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jail.world import BACKENDS, World, new_world


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One command has run in it: what is made once for a whole program is there, and no leak."""
    with new_world() as made:
        monkeypatch.setenv("HOME", str(made.home))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CORRAL_CONFIG_DIR", "CORRAL_STATE_DIR", "TMPDIR"):
            monkeypatch.delenv(name, raising=False)
        for backend in BACKENDS:
            with made.environment(backend) as environment:
                environment.run(["true"])
        yield made
