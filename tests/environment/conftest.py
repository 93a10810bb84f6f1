"""What holds for all tests of environments."""

from __future__ import annotations

import pytest

from corral import LocalEnvironment, Policy
from jail.conftest import world as world  # the same fixture


@pytest.fixture(scope="session", autouse=True)
def what_a_program_makes_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Is there before a test looks for leaks."""
    with LocalEnvironment(tmp_path_factory.mktemp("first"), Policy.off()) as environment:
        environment.run(["true"])
