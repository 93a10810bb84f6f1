"""Fixtures for the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.typed import Person
from corral.state import account_home
from jail.world import BACKENDS, new_world, remove


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def known_host() -> Iterator[Path]:
    """One state directory for all of them: this host is examined once."""
    made = Path(tempfile.mkdtemp(prefix="corral-cli-state-", dir=account_home()))
    yield made
    remove(made)


@pytest.fixture
def person(known_host: Path) -> Iterator[Person]:
    with new_world() as world:
        yield Person(world, known_host)
