"""Fixtures for jails with a home of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.state import account_home
from homes.dweller import Dweller
from hostfacts import skip_unless_host
from jail.world import new_world, remove


@pytest.fixture(scope="session")
def known_host() -> Iterator[Path]:
    """One state directory for all of them: this host is examined once."""
    made = Path(tempfile.mkdtemp(prefix="corral-homes-state-", dir=account_home()))
    yield made
    remove(made)


@pytest.fixture
def dweller(known_host: Path) -> Iterator[Dweller]:
    """Somebody who may use every mode: root may not use casual and bare, which has tests of its own."""
    skip_unless_host("ordinary-user")
    with new_world() as world:
        yield Dweller(world, known_host)
