"""The interpreter and the package that run Corral, where they lie in a workspace: a .venv in the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from corral import LocalEnvironment, NotEnforceable, Policy

pytestmark = pytest.mark.jail


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter's directory inside the workspace."""
    place = tmp_path / "work" / ".venv"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "tool").write_text("as it was\n")
    monkeypatch.setattr(sys, "prefix", str(place))
    return place


def test_it_is_read_only_inside_and_the_rest_is_not(prefix: Path) -> None:
    with LocalEnvironment(prefix.parent, Policy.workspace_write(backend="namespaces")) as environment:
        assert environment.shell("echo owned > .venv/bin/tool").exit_code != 0
        assert environment.shell("rm -rf .venv; mv .venv gone").exit_code != 0
        assert environment.shell("echo x > here").exit_code == 0
    assert (prefix / "bin" / "tool").read_text() == "as it was\n"
    assert sorted(os.listdir(prefix.parent)) == [".venv", "here"]


def test_landlock_cannot_narrow_and_refuses_with_the_remedies(prefix: Path) -> None:
    with pytest.raises(NotEnforceable, match="trust-prefix = true"):
        LocalEnvironment(prefix.parent, Policy.workspace_write(backend="landlock"))


@pytest.mark.parametrize("backend", ["namespaces", "landlock"])
def test_who_trusts_it_may_write_it(prefix: Path, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend, trust_prefix=True)
    with LocalEnvironment(prefix.parent, policy) as environment:
        assert environment.shell("echo new > .venv/bin/tool").exit_code == 0
    assert (prefix / "bin" / "tool").read_text() == "new\n"
