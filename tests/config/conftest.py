"""Each test of the config has a home of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from config.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(tmp_path)
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(desk.config))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(desk.state))
    return desk


@pytest.fixture
def as_somebody() -> Callable[[Callable[[], object]], object]:
    """Call something without root's right to read everything."""

    def call(action: Callable[[], object]) -> object:
        if os.geteuid() != 0:
            return action()
        os.seteuid(65534)
        try:
            return action()
        finally:
            os.seteuid(0)

    return call
