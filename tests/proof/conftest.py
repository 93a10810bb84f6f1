"""A world for proofs: nothing is known of this host at first, neither in this process nor on disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.jail import memory
from jail.world import BACKENDS, World, new_world


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with new_world() as made:
        monkeypatch.setenv("HOME", str(made.home))
        for name in (
            *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR"),
            *("CORRAL_CONFIG_DIR", "CORRAL_STATE_DIR"),
        ):
            monkeypatch.delenv(name, raising=False)
        memory.forget()
        yield made
    memory.forget()
