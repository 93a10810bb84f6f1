"""Fixtures for the launcher alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostfacts import skip_unless_host


@pytest.fixture
def user_namespaces() -> None:
    skip_unless_host("user-namespaces")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to mount on, with something of the host's in it."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "of-the-host").write_text("host\n")
    return place
