"""A glob that a command cannot be bound to: refused with what was probably meant, or, if asked for, its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral import LocalEnvironment, PathNotAllowed, Policy, PolicyError

pytestmark = pytest.mark.jail

# By glob: the directory of the workspace that a command may write if the policy takes the wider bound.
WIDER = {"*.md": ".", "**/x.md": ".", ".": ".", "new.md": ".", "out/new.md": "out", "out/sub": "out"}


@pytest.mark.parametrize("glob", WIDER)
def test_the_wider_bound_is_taken_only_where_the_policy_asks_for_it(glob: str, tmp_path: Path) -> None:
    (tmp_path / "out/sub").mkdir(parents=True)
    with pytest.raises(PolicyError, match="writable glob"):
        LocalEnvironment(tmp_path, Policy.workspace_write(writable=[glob]))
    where = WIDER[glob]
    with LocalEnvironment(tmp_path, Policy.workspace_write(writable=[glob], wide_globs=True)) as env:
        assert env._gate.enclosure.bounds == {glob: f"{where}/ and all below it"}
        assert env.shell(f"echo x > {where}/by-command").exit_code == 0
        assert (env.shell("echo x > beside").exit_code == 0) == (where == ".")
        with pytest.raises(PathNotAllowed):  # files are held to the glob itself
            env.write_file("out/other.txt", "x")


def test_what_a_command_can_be_bound_to_stays_as_narrow_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    policy = Policy.workspace_write(writable=["file", "out/*.md"], wide_globs=True)
    with LocalEnvironment(tmp_path, policy) as env:
        assert env.shell("echo x > file && echo x > out/y").exit_code == 0
        assert env.shell("echo x > beside").exit_code != 0


def test_of_two_policies_the_narrower_one_counts() -> None:
    wide, narrow = Policy(wide_globs=True), Policy()
    assert not (wide & narrow).wide_globs
    assert (wide & wide).wide_globs
