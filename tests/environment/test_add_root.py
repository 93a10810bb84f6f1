"""A root that the host adds while an environment is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral import LocalEnvironment, Policy, PolicyError

pytestmark = pytest.mark.jail


@pytest.fixture(params=["namespaces", "landlock"])
def policy(request: pytest.FixtureRequest) -> Policy:
    return Policy.workspace_write(backend=request.param)


def test_an_added_root_counts_at_the_next_command_and_not_before(policy: Policy, tmp_path: Path) -> None:
    work, added = tmp_path / "work", tmp_path / "added"
    work.mkdir()
    added.mkdir()
    with LocalEnvironment(work, policy) as environment:
        line = f"echo x > {added}/note"
        assert environment.shell(line).exit_code != 0
        assert (
            environment.shell("echo kept > $TMPDIR/kept 2>/dev/null || echo kept > /tmp/kept").exit_code == 0
        )
        environment.add_root(added)
        assert environment.shell(line).exit_code == 0
        assert environment.shell("echo x > here").exit_code == 0
        assert environment.shell("cat ${TMPDIR:-/tmp}/kept").stdout == "kept\n"
        environment.shell(f"echo x > {tmp_path}/note")  # in a private /tmp it may land, and stays there
    assert not (tmp_path / "note").exists()
    assert (added / "note").read_text() == "x\n"


def test_a_root_that_is_not_there_is_refused_and_changes_nothing(policy: Policy, tmp_path: Path) -> None:
    with LocalEnvironment(tmp_path, policy) as environment:
        with pytest.raises(PolicyError, match="missing"):
            environment.add_root(tmp_path / "missing")
        assert environment.shell("echo x > here").exit_code == 0
        assert environment.policy == policy
