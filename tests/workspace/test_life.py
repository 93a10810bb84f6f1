"""Workspaces are made, loaded, listed and removed, and git runs nothing that a repository names."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from cases import case
from corral import CorralError, PolicyError
from corral.state import state_directory
from corral.workspace import Identity, create, load, remove, workspaces
from corral.workspace.gitcommand import OVERRIDDEN
from workspace.desk import Desk

pytestmark = pytest.mark.jail


@case("hive-15")
def test_a_new_workspace_is_a_worktree_on_its_own_branch_and_known_outside_of_it(desk: Desk) -> None:
    made = desk.new()
    assert Path(made.path).parent == desk.world.home / ".local/share/corral/workspaces"
    assert sorted(os.listdir(made.path)) == [".git", "file"]
    assert made.branch == "corral/fix/work"
    assert made.base == desk.git("rev-parse", "main") == desk.git("rev-parse", made.branch)
    assert desk.git("symbolic-ref", "HEAD", cwd=Path(made.path)) == f"refs/heads/{made.branch}"
    assert f"{made.path} " in desk.git("worktree", "list")
    known = Path(state_directory(), "workspaces/fix.json")
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    assert json.loads(known.read_text())["branch"] == made.branch
    assert load("fix") == made
    assert workspaces() == [made]


@case("hive-18")
def test_nothing_of_ours_counts_as_a_change_and_nothing_to_commit_is_no_error(
    desk: Desk, backend: str
) -> None:
    desk.new()
    done = desk.runs(
        backend,
        "git status --short --ignored; git add -A; git commit -q --allow-empty -m none; git show --stat",
    )
    assert done.exit_code == 0
    assert "corral/" not in done.stdout.partition("none")[2]
    remove("fix", force=True)
    desk.new()
    remove("fix")


@case("hive-14")
def test_outside_of_a_repository_the_refusal_names_what_needs_one(desk: Desk) -> None:
    with pytest.raises(PolicyError, match="git worktree add"):
        create("fix", str(desk.world.outside))
    with pytest.raises(PolicyError, match="git worktree add"):
        create("fix", str(desk.world.outside / "missing"))
    assert workspaces() == []


@case("hive-16")
def test_a_name_that_is_not_known_is_refused_with_those_that_are(desk: Desk) -> None:
    with pytest.raises(PolicyError, match="no workspace 'fix'; there is none yet"):
        load("fix")
    desk.new("one")
    with pytest.raises(PolicyError, match="no workspace 'fix'; one"):
        load("fix")
    Path(state_directory(), "workspaces/cut.json").write_text("{")
    with pytest.raises(PolicyError, match=r"cut\.json"):
        load("cut")


@case("hive-17")
def test_removing_takes_directory_branches_and_all_that_is_known_of_it(desk: Desk) -> None:
    before = set(desk.repository.rglob("*"))
    made = desk.new()
    desk.git("branch", "corral/fix/more", "main")
    desk.git("pack-refs", "--all")
    os.chmod(Path(made.path), 0o500)
    remove("fix")
    assert not os.path.exists(made.path)
    assert workspaces() == []
    assert desk.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    left = {str(path.relative_to(desk.repository)) for path in set(desk.repository.rglob("*")) - before}
    assert left == {".git/packed-refs", ".git/worktrees"}
    desk.new()


def test_work_that_is_nowhere_else_is_only_removed_by_force(desk: Desk, backend: str) -> None:
    made = desk.new()
    desk.runs(backend, "echo more > more")
    with pytest.raises(PolicyError, match="not committed"):
        remove("fix")
    desk.runs(backend, "git add .; git commit -qm more")
    with pytest.raises(PolicyError, match="in no other branch: 1;"):
        remove("fix")
    desk.git("merge", "--quiet", made.branch)
    remove("fix")
    assert (desk.repository / "more").exists()


def test_the_admin_directory_of_another_worktree_is_left_alone(desk: Desk) -> None:
    made = desk.new()
    desk.git("worktree", "remove", "--force", made.path)
    other = desk.world.granted / "fix"
    desk.git("worktree", "add", "--quiet", str(other))
    assert os.path.isdir(made.directory)
    remove("fix", force=True)
    assert desk.git("status", "--short", cwd=other) == ""


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "-x", "A", "a..b", "a.lock", "a.", "a b", "ä", "a\n", "a" * 65]
)
def test_a_name_that_git_or_a_shell_could_misread_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(PolicyError, match="cannot name a workspace"):
        create(name, str(desk.repository))
    with pytest.raises(PolicyError, match="cannot name a workspace"):
        load(name)


def test_a_name_is_taken_once_and_a_failed_try_leaves_nothing(desk: Desk) -> None:
    desk.new()
    with pytest.raises(PolicyError, match="already"):
        desk.new()
    desk.git("branch", "corral/two", "main")  # in the way of corral/two/work
    with pytest.raises(CorralError, match="corral/two"):
        desk.new("two")
    with pytest.raises(CorralError, match="nonesuch"):
        create("three", str(desk.repository), base="nonesuch")
    with pytest.raises(CorralError):
        create("three", str(desk.repository), base="--help")
    assert [w.name for w in workspaces()] == ["fix"]
    assert os.listdir(desk.world.home / ".local/share/corral/workspaces") == ["fix"]


def test_base_directory_identity_and_path_can_be_chosen(desk: Desk) -> None:
    desk.git("commit", "--quiet", "--allow-empty", "-m", "second")
    made = create(
        "fix",
        str(desk.repository),
        base="main~1",
        directory=str(desk.world.granted),
        identity=Identity("O'Brien $(x) `y`", "o@example.org"),
        path_prepend=("/opt/tools bin",),
    )
    assert made.path == str(desk.world.granted / "fix")
    assert made.base == desk.git("rev-parse", "main~1")
    done = desk.runs(
        "namespaces", 'git commit -q --allow-empty -m x; git log -1 --format="%an %ce"; echo "$PATH"'
    )
    assert done.stdout.startswith("O'Brien $(x) `y` o@example.org\n/opt/tools bin:")
    for wrong in (
        {"directory": str(desk.world.granted / "a:b")},
        {"path_prepend": ("bin",)},
        {"path_prepend": ("/a:b",)},
    ):
        with pytest.raises(PolicyError):
            create("other", str(desk.repository), **wrong)
    with pytest.raises(PolicyError, match="cannot lie in"):
        create("other", str(desk.repository), directory=state_directory())
    for name, email in (("", "a@b"), ("a\nb", "a@b"), ("a", "<a>")):
        with pytest.raises(PolicyError):
            Identity(name, email)


def test_hooks_filters_and_programs_of_the_repository_do_not_run(desk: Desk) -> None:
    """Not when a workspace is made, asked about, or removed."""
    run = f"touch {desk.mark}"
    hooks = desk.repository / ".git/hooks"
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit"):
        (hooks / name).write_text(f"#!/bin/sh\n{run}\n")
        (hooks / name).chmod(0o755)
    keys = [
        key
        for key in OVERRIDDEN
        if key.split(".")[-1] not in ("auto", "gpgSign", "recurse", "enabled", "allow")
    ]
    for key in (
        *keys,
        "filter.a.b c.smudge",
        "filter.a.b c.process",
        "filter.lfs.smudge",
        "filter.lfs.clean",
    ):
        desk.git("config", key, run if key != "core.hooksPath" else str(hooks))
    desk.git("config", "core.fsmonitor", run)
    (desk.repository / ".gitattributes").write_text('* filter=lfs\n*.x "filter=a.b c"\n')
    (desk.repository / "a.x").write_text("x")
    plain = (
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=",
        "-c",
        "filter.lfs.clean=",
        "-c",
        "core.editor=true",
    )
    desk.git(*plain, "add", ".")
    desk.git(*plain, "commit", "--quiet", "-m", "second")
    desk.mark.unlink(missing_ok=True)
    made = desk.new()
    assert sorted(os.listdir(made.path)) == [".git", ".gitattributes", "a.x", "file"]
    load("fix")
    workspaces()
    remove("fix")
    assert not desk.mark.exists()
    subprocess.run(
        ["git", "worktree", "add", "--quiet", "../plain"], cwd=desk.repository, capture_output=True
    )
    assert desk.mark.exists()  # the person's own git runs them


def test_a_bare_repository_a_sub_directory_and_another_worktree_do_as_well(desk: Desk) -> None:
    bare = desk.world.granted / "bare.git"
    desk.git("clone", "--quiet", "--bare", str(desk.repository), str(bare))
    assert create("bare", str(bare)).common == str(bare)
    (desk.repository / "deep/er").mkdir(parents=True)
    assert create("deep", str(desk.repository / "deep/er")).repository == str(desk.repository)
    linked = desk.world.granted / "linked"
    desk.git("worktree", "add", "--quiet", "-b", "other", str(linked))
    desk.git("commit", "--quiet", "--allow-empty", "-m", "there", cwd=linked)
    made = create("linked", str(linked))
    assert (made.common, made.base) == (str(desk.repository / ".git"), desk.git("rev-parse", "other"))


def test_an_empty_repository_and_a_worktree_that_is_gone_are_refused_in_one_line(desk: Desk) -> None:
    empty = desk.world.granted / "empty"
    subprocess.run(["git", "init", "--quiet", str(empty)], check=True)
    with pytest.raises(CorralError, match="HEAD is no commit"):
        create("empty", str(empty))
    made = desk.new()
    os.rename(made.path, desk.world.granted / "moved")
    with pytest.raises(PolicyError, match="is gone"):
        load("fix")
    remove("fix", force=True)
    assert workspaces() == []
