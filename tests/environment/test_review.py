"""Review: commands and file methods work in one copy of the workspace; nothing is real until the host applies it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral import AsyncLocalEnvironment, LocalEnvironment, Policy
from corral.errors import NotEnforceable, PolicyError
from jail.world import World

pytestmark = pytest.mark.jail

REVIEW = Policy(review=True)


@pytest.fixture
def project(world: World) -> Path:
    (world.workspace / "kept").write_text("old\n")
    (world.workspace / "doomed").write_text("old\n")
    return world.workspace


def test_a_file_that_is_written_leaves_the_project_untouched(project: Path) -> None:
    with LocalEnvironment(project, REVIEW) as environment:
        environment.write_file("kept", "new\n")
        environment.write_file("made/deep", "new\n")
        environment.remove_file("doomed")
        assert environment.read_file("kept") == "new\n"
        assert environment.run(["cat", "kept", "made/deep"]).stdout == "new\nnew\n"
        assert environment.run(["ls"]).stdout == "kept\nmade\n"
    assert (project / "kept").read_text() == "old\n"
    assert sorted(os.listdir(project)) == ["doomed", "kept"]


def test_files_see_what_commands_wrote(project: Path) -> None:
    with LocalEnvironment(project, REVIEW) as environment:
        environment.shell("echo more >> kept; echo n > new")
        assert environment.read_file("kept") == "old\nmore\n"
        assert sorted(entry.name for entry in environment.list_dir()) == ["doomed", "kept", "new"]
        assert environment.glob("n*") == ["new"]
    assert (project / "kept").read_text() == "old\n"


def test_changes_are_listed_applied_and_thrown_away(project: Path) -> None:
    with LocalEnvironment(project, REVIEW) as environment:
        environment.shell("echo more >> kept; echo n > new; rm doomed")
        found = {change.path: change.kind for change in environment.changes()}
        assert set(found) == {"kept", "new", "doomed"}
        environment.apply(["kept"])
        assert (project / "kept").read_text() == "old\nmore\n"
        assert not (project / "new").exists()
        assert environment.run(["ls"]).stdout == "kept\nnew\n"
        environment.discard(["new"])
        assert environment.run(["ls"]).stdout == "kept\n"
        assert [change.path for change in environment.changes()] == ["doomed"]
        environment.apply()
        assert environment.changes() == []
    assert sorted(os.listdir(project)) == ["kept"]


def test_what_would_run_later_waits_for_its_name(project: Path) -> None:
    with LocalEnvironment(project, REVIEW) as environment:
        environment.write_file("Makefile", "all:\n")
        environment.write_file("plain", "x")
        (change,) = [change for change in environment.changes() if change.path == "Makefile"]
        assert change.flags
        environment.apply()
        assert sorted(os.listdir(project)) == ["doomed", "kept", "plain"]
        environment.apply(["Makefile"])
    assert (project / "Makefile").exists()


def test_nothing_is_applied_while_a_command_runs(project: Path) -> None:
    with LocalEnvironment(project, REVIEW) as environment:
        environment.write_file("new", "x")
        with environment.start(["cat"]):
            with pytest.raises(PolicyError, match="still runs"):
                environment.apply()
            assert not (project / "new").exists()
        environment.apply()
    assert (project / "new").exists()


def test_where_nothing_is_copied_there_is_nothing_to_review(project: Path) -> None:
    with (
        LocalEnvironment(project, Policy()) as environment,
        pytest.raises(PolicyError, match="nothing to review"),
    ):
        environment.changes()
    with pytest.raises(NotEnforceable, match="a review needs a copy"):
        LocalEnvironment(project, Policy(review=True, backend="landlock"))


@pytest.mark.anyio
async def test_the_async_twin_reviews_too(project: Path) -> None:
    async with AsyncLocalEnvironment(project, REVIEW) as environment:
        await environment.write_file("new", "x")
        assert [change.path for change in await environment.changes()] == ["new"]
        await environment.apply()
        assert await environment.changes() == []
    assert (project / "new").read_text() == "x"


@pytest.mark.parametrize("line", ["git mv d e", "python3 -c \"import os; os.rename('d', 'e')\""])
def test_a_directory_that_cannot_be_renamed_in_the_copy_is_explained(project: Path, line: str) -> None:
    (project / "d").mkdir()
    (project / "d/f").touch()
    begun = "git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm first"
    with LocalEnvironment(project, REVIEW) as environment:
        done = environment.shell(f"{begun} && {line}")
        (denial,) = done.denials
        assert (denial.rule, denial.what) == ("copied", str(project / "d"))
        assert "use mv" in denial.text()
        assert environment.shell("mv d e && git add -A && git status --short").stdout == "R  d/f -> e/f\n"


def test_git_works_in_the_copy_and_leaves_the_project_as_it_was(project: Path) -> None:
    begin = "git init -q -b main . && git add -A && git commit -qm first"
    identity = {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "n"}
    identity |= {"GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "e"}
    steps = [
        begin,
        "git checkout -q -b side && echo side > side && git add side && git commit -qm side",
        "git checkout -q main && echo main > main && git add main && git commit -qm main",
        "git rebase -q main side && git checkout -q main",
        "echo stashed >> kept && git stash -q && git stash pop -q && git checkout -q kept",
        "git worktree add -q ../work/tree side && git worktree remove tree",
        "git status --short",
    ]
    with LocalEnvironment(project, REVIEW) as environment:
        for step in steps:
            done = environment.shell(step, extra_env=identity)
            assert (done.exit_code, done.stdout) == (0, ""), (step, done.stderr)
        assert sorted(os.listdir(project)) == ["doomed", "kept"]
        environment.apply(allow_exec=True)
    assert (project / "main").read_text() == "main\n"
    with LocalEnvironment(project, Policy()) as outside:
        assert outside.shell("git status --short && git log --oneline side | wc -l").stdout == "3\n"
