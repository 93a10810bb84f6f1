"""Fixtures for the front ends of the tools."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.typed import CORRAL
from corral.state import account_home
from jail.world import World, new_world, remove
from serve.talk import Caller


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as made:
        yield made


@pytest.fixture(scope="session")
def known_host() -> Iterator[Path]:
    """A state directory that knows this host: it is examined once."""
    made = Path(tempfile.mkdtemp(prefix="corral-serve-state-", dir=account_home()))
    variables = {"CORRAL_STATE_DIR": str(made), "HOME": account_home(), "PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory(dir=account_home()) as somewhere:
        words = [CORRAL, "tool", '{"tool":"run_shell","args":{"command":"true"}}']
        subprocess.run(words, cwd=somewhere, env=variables, check=True, timeout=60, capture_output=True)
    shutil.rmtree(made / "audit")
    yield made
    remove(made)


@pytest.fixture
def caller(world: World, known_host: Path) -> Caller:
    state = world.home / ".local/state/corral"
    shutil.copytree(known_host, state)
    return Caller(world, state)
