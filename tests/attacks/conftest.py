"""Fixtures for attacks by what runs inside, and by what an earlier run left behind."""

from __future__ import annotations

import os

import pytest

from homes.conftest import dweller as dweller
from homes.conftest import fresh_home as fresh_home
from homes.conftest import known_host as known_host
from homes.dweller import Dweller
from hostfacts import skip_unless_host
from jail.conftest import world as world

# Casual and bare are not for root.
MODES = ("workspace-write", "strict") if os.getuid() == 0 else ("workspace-write", "casual", "bare", "strict")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def anybody(fresh_home: tuple[object, object]) -> Dweller:
    return Dweller(*fresh_home)  # type: ignore[arg-type]


@pytest.fixture
def root(request: pytest.FixtureRequest) -> Dweller:
    skip_unless_host("root-attacks")
    return Dweller(*request.getfixturevalue("fresh_home"))
