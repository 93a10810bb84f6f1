"""Fields on whatever can carry an overlay here."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.field import Field
from hostfacts import skip_unless_host


@pytest.fixture
def field(tmp_path: Path) -> Field:
    skip_unless_host("no-overlay")
    return Field(tmp_path / "field")
