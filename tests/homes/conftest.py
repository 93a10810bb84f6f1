"""Fixtures for jails with a home of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.state import account_home
from homes.dweller import Dweller
from hostfacts import skip_unless_host
from jail.world import World, new_world, remove

# Of a state directory: what is known of the host, and nothing of anybody's jails.
KNOWLEDGE = ("host", "proofs")


@pytest.fixture(scope="session")
def known_host() -> Iterator[Path]:
    """What was found out about this host, which is examined once."""
    made = Path(tempfile.mkdtemp(prefix="corral-homes-state-", dir=account_home()))
    with new_world() as world:
        for mode in ("casual", "bare", "strict"):
            Dweller(world, made).runs("true", mode=mode)
    yield made
    remove(made)


@pytest.fixture
def fresh_home(known_host: Path) -> Iterator[tuple[World, Path]]:
    """A world, and a state directory in which no jail was ever made."""
    with new_world() as world:
        state = world.base / "state"
        state.mkdir(0o700)
        for name in KNOWLEDGE:
            shutil.copy(known_host / name, state)
        yield world, state


@pytest.fixture
def dweller(request: pytest.FixtureRequest) -> Dweller:
    """Somebody who may use every mode: root may not use casual and bare, which has tests of its own."""
    skip_unless_host("ordinary-user")
    return Dweller(*request.getfixturevalue("fresh_home"))
