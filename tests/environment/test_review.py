"""Review: commands and file methods work in one copy of the workspace; nothing is real until the host applies it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corral import AsyncLocalEnvironment, LocalEnvironment, Policy
from corral.errors import NotEnforceable, PolicyError
from corral.jail.homes import is_initial_root
from corral.state import made_state_directory
from hostfacts import skip_unless_host
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
    """Only the host's root may leave the mark that such a rename needs."""
    (project / "d").mkdir()
    (project / "d/f").touch()
    begun = "git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm first"
    with LocalEnvironment(project, REVIEW) as environment:
        done = environment.shell(f"{begun} && {line}")
        if is_initial_root():
            assert (done.exit_code, done.denials) == (0, ())
            return
        (denial,) = done.denials
        assert (denial.rule, denial.what) == ("copied", str(project / "d"))
        assert "use mv" in denial.text()
        assert environment.shell("mv d e && git add -A && git status --short").stdout == "R  d/f -> e/f\n"


class TestTheCopyOfTheHostsRoot:
    """It is mounted outside of any user namespace, with marks that no program inside can make."""

    RENAMES = """if 1:
        import os
        os.rename("d/e", "d/moved")
        os.rename("d", "n")
        open("n/moved/f", "a").write("more")
        os.rename("n", "m")
        os.mkdir("d")
        os.rename("m/moved", "d/again")
    """

    @pytest.fixture(autouse=True)
    def _as_root(self) -> None:
        skip_unless_host("not-initial-root")

    @pytest.fixture
    def tree(self, project: Path) -> Path:
        (project / "d/e/deep").mkdir(parents=True)
        for name in ("d/g", "d/e/f", "d/e/deep/h"):
            (project / name).write_text(f"{name}\n")
        return project

    @staticmethod
    def contents(top: Path) -> dict[str, str | None]:
        """Of every file by its path; None: a directory."""
        return {
            str(path.relative_to(top)): None if path.is_dir() else path.read_text() for path in top.rglob("*")
        }

    def test_directories_are_renamed_and_apply_makes_it_so(self, tree: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        shutil.copytree(tree, outside)
        subprocess.run([sys.executable, "-c", self.RENAMES], cwd=outside, check=True)
        before = self.contents(tree)
        with LocalEnvironment(tree, REVIEW) as environment:
            assert environment.run(["python3", "-c", self.RENAMES]).stderr == ""
            assert environment.read_file("d/again/f") == "d/e/f\nmore"
            assert self.contents(tree) == before
            environment.apply()
            assert environment.changes() == []
            assert environment.run(["cat", "m/g", "d/again/deep/h"]).stdout == "d/g\nd/e/deep/h\n"
        assert self.contents(tree) == self.contents(outside)

    def test_a_directory_that_was_renamed_is_back_when_all_is_discarded(self, tree: Path) -> None:
        before = self.contents(tree)
        with LocalEnvironment(tree, REVIEW) as environment:
            environment.run(["python3", "-c", self.RENAMES], check=True)
            environment.discard()
            assert environment.changes() == []
            assert environment.run(["cat", "d/e/f"]).stdout == "d/e/f\n"
        assert self.contents(tree) == before

    def test_no_program_inside_makes_such_marks(self, tree: Path) -> None:
        """A redirect to any other place would show it through the eyes of root."""
        mark = "import os; os.setxattr('d', 'trusted.overlay.redirect', b'/../../etc')"
        with LocalEnvironment(tree, REVIEW) as environment:
            environment.run(["mv", "d/g", "d/i"], check=True)
            done = environment.run(["python3", "-c", mark])
            assert "Operation not permitted" in done.stderr
        subprocess.run([sys.executable, "-c", mark.replace("redirect", "other")], cwd=tree, check=True)

    def test_it_has_no_capability_in_it(self, tree: Path) -> None:
        tries = ("mknod d/device c 1 3", "mount -t tmpfs none d", "setfattr -n security.capability -v x d/g")
        with LocalEnvironment(tree, REVIEW) as environment:
            for _ in range(3):  # the scene is set by the first run, and kept from the second on
                for line in tries:
                    assert environment.shell(line).exit_code != 0, line
                status = environment.run(["cat", "/proc/self/status"]).stdout
                assert [line.split()[1] for line in status.split("\n") if line.startswith("Cap")] == [
                    "0" * 16
                ] * 5

    def test_what_was_begun_with_other_marks_goes_on_with_them(self, tree: Path) -> None:
        policy = Policy(review=True, jail="marks")
        with LocalEnvironment(tree, policy) as environment:
            environment.shell("rm -r d; mkdir d; echo new > d/only", check=True)
        (trusted,) = Path(made_state_directory() or "").glob("jails/marks/review/trusted")
        upper = trusted.parent / "changes"
        assert os.getxattr(upper / "d", "trusted.overlay.opaque") == b"y"
        trusted.unlink()
        os.removexattr(upper / "d", "trusted.overlay.opaque")
        os.setxattr(upper / "d", "user.overlay.opaque", b"y")
        with LocalEnvironment(tree, policy) as environment:
            assert environment.run(["ls", "d"]).stdout == "only\n"
            assert environment.run(["python3", "-c", "import os; os.rename('kept', 'k')"]).exit_code == 0
            assert {change.path for change in environment.changes()} >= {"d/only", "d/e", "d/g", "k"}
        assert not trusted.exists()

    def test_in_a_container_it_cannot_be_gone_on_with(self, tree: Path) -> None:
        policy = "Policy(review=True, jail='marks')"
        code = f"from corral import *; LocalEnvironment({str(tree)!r}, {policy}).run(['true'], check=True)"
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=True)
        inside = subprocess.run(["unshare", "-Ur", *command], capture_output=True, text=True)
        assert "was begun by root outside of any container" in inside.stderr
        other = [sys.executable, "-c", code.replace("marks", "others")]
        subprocess.run(["unshare", "-Ur", *other], check=True)


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
