"""Fixtures for the file layer: every test of it runs on both ways to open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from files.yard import OPENERS, OUTSIDE, Yard


@pytest.fixture(params=OPENERS)
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path / "root", tmp_path / "outside", OPENERS[request.param]())
    made.root.mkdir()
    made.outside.mkdir()
    (made.outside / "secret").write_bytes(OUTSIDE)
    yield made
    for anchor in made.anchors:
        anchor.close()
