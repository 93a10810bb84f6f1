"""`@case("tracker-50")` says which numbered cases of conformance/cases.toml a test holds."""

from __future__ import annotations

import pytest


def case(*ids: str) -> pytest.MarkDecorator:
    return pytest.mark.case(*ids)
