"""A room without a jail: what these tools may see is decided by the path layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corral import Policy
from tools.room import Room, open_room


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(tmp_path / "config"))
    root = home / "work"
    root.mkdir(parents=True)
    with open_room(root, Policy.off()) as made:
        yield made
