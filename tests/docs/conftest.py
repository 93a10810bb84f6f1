"""A home that is gone afterwards; not below /tmp, which a jail has its own of."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.state import account_home
from docs.reader import Reader
from jail.world import remove


@pytest.fixture(scope="session")
def known_host() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="corral-docs-state-", dir=account_home()))
    yield made
    remove(made)


@pytest.fixture
def reader(known_host: Path) -> Iterator[Reader]:
    base = Path(tempfile.mkdtemp(prefix="corral-docs-", dir=account_home()))
    try:
        home = base / "home"
        home.mkdir()
        yield Reader(home, known_host)
    finally:
        remove(base)
