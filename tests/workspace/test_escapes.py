"""What an agent could do to the repository so that something runs, or changes, outside: each tried, from inside."""

from __future__ import annotations

import os
import shlex
import subprocess
import zlib
from pathlib import Path

import pytest

from cases import case
from corral import PolicyError
from corral.policy import Policy
from corral.workspace import exposure, load, policy_for, remove, workspaces
from corral.workspace.objects import loose_objects, seal
from jail.world import fingerprint
from workspace.desk import Desk, lay_trap

pytestmark = pytest.mark.jail

# Below the common directory: what git on the host obeys, or believes.
OUT_OF_REACH = (
    *(
        "hooks/post-commit",
        "config",
        "config.lock",
        "config.worktree",
        "HEAD",
        "HEAD.lock",
        "index",
        "index.lock",
    ),
    *(
        "info/attributes",
        "info/exclude",
        "info/grafts",
        "packed-refs",
        "packed-refs.lock",
        "shallow",
        "commondir",
    ),
    *("refs/heads/main", "refs/heads/main.lock", "refs/heads/corral/other", "refs/tags/v1", "refs/stash"),
    *(
        "refs/remotes/origin/main",
        "refs/replace/x",
        "logs/HEAD",
        "logs/refs/heads/main",
        "modules/sub/config",
    ),
    *(
        "objects/info/alternates",
        "objects/info/commit-graph",
        "objects/pack/pack-x.pack",
        "worktrees/other/HEAD",
    ),
    *("rr-cache/x", "remotes/origin", "branches/x", "gc.pid", "COMMIT_EDITMSG", "description"),
)

# In the worktree's own part, and in the worktree: pointers that say which config counts.
POINTERS = (
    "worktrees/fix/gitdir",
    "worktrees/fix/commondir",
    "worktrees/fix/config.worktree",
    "corral/fix/config",
)


def every_file(top: Path) -> dict[str, tuple[object, ...]]:
    return {
        str(path.relative_to(top)): fingerprint(path)
        for path in sorted(top.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_commits_branches_and_rebases_work(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    done = desk.runs(
        backend,
        """set -e; echo second >> file; echo new > other; git add .; git commit -qm second
        git checkout -qb corral/fix/side HEAD~1; echo side > side; git add .; git commit -qm side
        git rebase -q corral/fix/work; git checkout -q corral/fix/work; git merge -q corral/fix/side
        git commit -q --amend -m merged; git reset -q --hard HEAD; git tag -l; git status --short""",
    )
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert desk.git("log", "-1", "--format=%s %an <%ae>", workspace.branch) == (
        "merged Claude (corral) <claude-corral@localhost>"
    )
    assert desk.git("fsck", "--strict") == ""
    assert desk.git("status", "--short") == ""


def test_nothing_else_of_the_repository_can_be_written(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    common = Path(workspace.common)
    seal(workspace.common)
    exposure(workspace, narrow=backend != "landlock")
    before = every_file(common)
    words = " ".join(shlex.quote(str(common / name)) for name in OUT_OF_REACH)
    done = desk.runs(
        backend,
        f"""for path in {words}; do
          mkdir -p "$(dirname $path)" 2>/dev/null
          (echo '[core] fsmonitor = x' > $path) 2>/dev/null && echo wrote $path
          rm -f $path 2>/dev/null; ln -sf /etc/passwd $path 2>/dev/null && echo linked $path
          mv -T $path $path.moved 2>/dev/null && echo moved $path
        done
        for name in objects/pack objects/info hooks info refs refs/heads worktrees worktrees/fix logs; do
          mv -T {common}/$name {common}/objects/moved 2>/dev/null && echo moved $name
          mv -T {common}/$name $PWD/moved 2>/dev/null && echo moved $name
          rm -rf {common}/$name/* 2>/dev/null
        done; true""",
    )
    assert (done.exit_code, done.stdout) == (0, "")
    changed = {name for name, now in every_file(common).items() if before.get(name) != now}
    changed |= before.keys() - every_file(common).keys()
    own = (
        "worktrees/fix/",
        "refs/heads/corral/fix/",
        "logs/refs/heads/corral/fix/",
        "corral/fix/",
        "objects/moved/",
    )
    assert not {name for name in changed if not name.startswith(own)}
    assert desk.git("status", "--short") == ""


def test_the_pointers_of_the_worktree_cannot_be_changed(desk: Desk) -> None:
    workspace = desk.new()
    common, worktree = Path(workspace.common), Path(workspace.path)
    exposure(workspace)
    pointers = [worktree / ".git", *(common / name for name in POINTERS)]
    before = {path: path.read_bytes() for path in pointers}
    tried = "; ".join(
        f"(echo x > {path}) 2>/dev/null && echo wrote; rm -f {path} 2>/dev/null && echo removed; "
        f"mv -f {path} {path}.old 2>/dev/null && echo moved; "
        f"(echo x > n; mv -f n {path}) 2>/dev/null && echo replaced; "
        f"ln -f file {path} 2>/dev/null && echo linked; chmod 777 {path} 2>/dev/null && echo mode"
        for path in map(str, pointers)
    )
    done = desk.runs(
        "namespaces",
        f"{tried}; mv ../fix ../moved 2>/dev/null && echo moved; mv {common}/corral/fix {common}/corral/x 2>/dev/null "
        f"&& echo moved; mv {workspace.directory} {workspace.directory}.x 2>/dev/null && echo moved; "
        "umount .git 2>/dev/null && echo unmounted; "
        "unshare -rm umount .git 2>/dev/null && echo unmounted; rm -f n; git commit -q --allow-empty -m still",
    )
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert {path: path.read_bytes() for path in pointers} == before


@pytest.mark.parametrize("pointer", ["file", "directory", "link", "gitdir", "commondir"])
def test_without_mounts_a_changed_pointer_is_found_before_the_next_run(desk: Desk, pointer: str) -> None:
    workspace = desk.new()
    lay_trap(desk.world.granted / "trap", desk.mark)
    trap = desk.world.granted / "trap/.git"
    line = {
        "file": f"echo 'gitdir: {trap}' > .git",
        "directory": f"rm .git; cp -r {trap} .git",
        "link": f"rm .git; ln -s {trap} .git",
        "gitdir": f"echo {trap} > {workspace.directory}/gitdir",
        "commondir": f"echo {trap} > {workspace.directory}/commondir",
    }[pointer]
    assert desk.runs("landlock", line).exit_code == 0
    with pytest.raises(PolicyError):
        load("fix")
    assert [w.name for w in workspaces()] == ["fix"]
    remove("fix", force=True)
    assert not desk.mark.exists()
    assert desk.git("status", "--short") == ""


@pytest.mark.parametrize("place", ["config.worktree", ".git"])
def test_a_link_left_where_a_grant_will_be_is_not_followed(desk: Desk, place: str) -> None:
    workspace = desk.new()
    secret = desk.world.home / ".ssh"
    path = f"{workspace.directory}/{place}" if place != ".git" else ".git"
    assert (
        desk.runs("landlock", f"ln -sf {secret} {path}; mv -fT {path} {path} 2>/dev/null; true").exit_code
        == 0
    )
    with pytest.raises(PolicyError):
        policy_for(load("fix"), Policy(backend="namespaces"))


def test_a_link_left_in_the_object_store_is_not_followed(desk: Desk) -> None:
    workspace = desk.new()
    free = next(f"{n:02x}" for n in range(256) if not os.path.exists(f"{workspace.common}/objects/{n:02x}"))
    done = desk.runs("namespaces", f"ln -s {desk.world.outside} {workspace.common}/objects/{free}")
    assert done.exit_code == 0
    for backend in ("landlock", "namespaces"):
        with pytest.raises(PolicyError, match=f"objects/{free}"):
            policy_for(load("fix"), Policy(backend=backend))


@case("hive-5.2")
def test_a_hook_planted_inside_does_not_run_outside(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    hook = f"printf '#!/bin/sh\\necho > {desk.mark}\\n'"
    common = workspace.common
    desk.runs(
        backend,
        f"""{hook} > hook; chmod +x hook; cp hook {common}/hooks/post-commit; cp hook {common}/hooks/pre-push
        mkdir -p {workspace.directory}/hooks; cp hook {workspace.directory}/hooks/post-commit
        git config core.hooksPath $PWD; git config --worktree core.hooksPath $PWD; git config core.fsmonitor $PWD/hook
        git config alias.status "!$PWD/hook"; git config filter.x.smudge $PWD/hook; true""",
    )
    (desk.repository / "file").write_text("second\n")
    desk.git("commit", "--quiet", "-am", "second")
    desk.git("status")
    assert not desk.mark.exists()


@case("hive-5.3")
def test_head_pointed_at_main_moves_neither_main_nor_what_we_take_for_its_branch(
    desk: Desk, backend: str
) -> None:
    desk.new()
    main = desk.git("rev-parse", "main")
    done = desk.runs(
        backend, "git symbolic-ref HEAD refs/heads/main; git commit -q --allow-empty -m mine; true"
    )
    assert "refs/heads/main.lock" in done.stderr
    assert desk.git("rev-parse", "main") == main
    assert load("fix").branch == "corral/fix/work"
    remove("fix", force=True)
    assert desk.git("rev-parse", "main") == main


@pytest.mark.parametrize(
    "line",
    [
        "echo 'ref: refs/heads/main' > {refs}/work",
        "git symbolic-ref refs/heads/corral/fix/work refs/heads/main",
        "ln -sf ../../main {refs}/work",
        "ln -sf refs/heads/main {refs}/work",
        "rm -rf {refs}/*; ln -s ../.. {refs}/up",
        "echo 'ref: refs/heads/main' > {refs}/other; ln -sf ../../../../../../hooks {logs}/other",
    ],
)
def test_a_branch_that_stands_for_another_is_removed_alone(desk: Desk, backend: str, line: str) -> None:
    workspace = desk.new()
    main = desk.git("rev-parse", "main")
    refs = f"{workspace.common}/refs/heads/corral/fix"
    assert (
        desk.runs(backend, line.format(refs=refs, logs=refs.replace("/refs/", "/logs/refs/"))).exit_code == 0
    )
    remove("fix", force=True)
    assert desk.git("rev-parse", "main") == main
    assert desk.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert (Path(workspace.common) / "hooks").is_dir()


@case("hive-5.3")
def test_what_asks_about_a_workspace_runs_nothing_of_it_outside(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    inner = Path(workspace.path) / "inner"
    lay_trap(inner, desk.mark)
    desk.git(
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "-c",
        "core.fsmonitor=",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
        cwd=inner,
    )
    desk.mark.unlink(missing_ok=True)
    assert (
        desk.runs(
            backend, "git -c core.fsmonitor= add inner; git commit -qm inner; echo more > more"
        ).exit_code
        == 0
    )
    assert "160000" in desk.git("ls-tree", "corral/fix/work")
    with pytest.raises(PolicyError, match="in no other branch"):
        remove("fix")
    desk.git("merge", "-q", "corral/fix/work")
    with pytest.raises(PolicyError, match="not committed"):
        remove("fix")
    load("fix")
    assert not desk.mark.exists()
    subprocess.run(["git", "status"], cwd=workspace.path, capture_output=True, check=True)
    assert desk.mark.exists()  # the trap works: this is what nobody should do


def test_branches_that_were_packed_inside_are_found_outside(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    desk.runs(
        backend, "git commit -q --allow-empty -m kept; git branch corral/fix/side; git pack-refs --all; true"
    )
    policy_for(load("fix"), Policy(backend=backend))  # type: ignore[arg-type]
    assert desk.git("log", "-1", "--format=%s", workspace.branch) == "kept"
    assert desk.git("log", "-1", "--format=%s", "corral/fix/side") == "kept"


def forged(kind: bytes, content: bytes) -> bytes:
    return zlib.compress(kind + b" " + str(len(content)).encode() + b"\0" + content)


@pytest.mark.parametrize("sealed", [True, False])
def test_an_object_that_was_there_cannot_be_replaced(desk: Desk, backend: str, sealed: bool) -> None:
    """Unsealed it can: git believes a loose object whatever it holds."""
    workspace = desk.new()
    blob = desk.git("rev-parse", "main:file")
    (Path(workspace.path) / "forged").write_bytes(forged(b"blob", b"not what it was\n"))
    place = f"{workspace.common}/objects/{blob[:2]}"
    line = f"mkdir -p {place}; cp -f --remove-destination forged {place}/{blob[2:]}; git cat-file -p {blob}"
    if sealed:
        done = desk.runs(backend, line)
        assert done.stdout == "first\n"
        assert desk.git("cat-file", "-p", blob) == "first"
    else:
        from corral import LocalEnvironment

        policy = Policy(backend=backend, grants=exposure(workspace, narrow=backend != "landlock"))  # type: ignore[arg-type]
        with LocalEnvironment(workspace.path, policy) as environment:
            environment.run(["bash", "-c", line])
        assert desk.git("cat-file", "-p", blob) == "not what it was"


def test_an_object_under_a_false_name_is_found_before_the_next_run(desk: Desk, backend: str) -> None:
    workspace = desk.new()
    wanted = (
        subprocess.run(
            ["git", "hash-object", "--stdin"], input=b"tomorrow\n", capture_output=True, check=True
        )
        .stdout.decode()
        .strip()
    )
    (Path(workspace.path) / "forged").write_bytes(forged(b"blob", b"something else\n"))
    place = f"{workspace.common}/objects/{wanted[:2]}"
    assert desk.runs(backend, f"mkdir -p {place}; cp forged {place}/{wanted[2:]}").exit_code == 0
    with pytest.raises(PolicyError, match=f"{wanted[:2]}/{wanted[2:]} is not what"):
        policy_for(load("fix"), Policy(backend=backend))  # type: ignore[arg-type]
    os.unlink(f"{place}/{wanted[2:]}")
    policy_for(load("fix"), Policy(backend=backend))  # type: ignore[arg-type]


def test_sealing_leaves_the_repository_as_it_was(desk: Desk) -> None:
    (desk.repository / "staged").write_text("only in the index\n")
    desk.git("add", "staged")
    before = desk.git("rev-list", "--all", "--objects"), desk.git("diff", "--cached")
    common = str(desk.repository / ".git")
    assert seal(common) == 4
    assert loose_objects(common) == []
    assert seal(common) == 0
    assert (desk.git("rev-list", "--all", "--objects"), desk.git("diff", "--cached")) == before
    assert desk.git("fsck", "--strict") == ""
    packs = os.listdir(f"{common}/objects/pack")
    assert {name.rpartition(".")[2] for name in packs} >= {"pack", "idx"}
    assert not [name for name in packs if name.startswith("corral")]


def test_one_workspace_cannot_touch_another(desk: Desk, backend: str) -> None:
    desk.new("one")
    other = desk.new("two")
    tip = desk.git("rev-parse", other.branch)
    done = desk.runs(
        backend,
        f"""(echo x > {other.path}/file) 2>/dev/null && echo wrote
        (echo x > {other.directory}/HEAD) 2>/dev/null && echo head
        git update-ref refs/heads/{other.branch} HEAD~0 2>/dev/null
        git branch -f {other.branch} 2>/dev/null && echo moved; git worktree add -q ../three 2>/dev/null && echo added
        git commit -q --allow-empty -m own""",
        name="one",
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert desk.git("rev-parse", other.branch) == tip
    assert desk.git("status", "--short", cwd=Path(other.path)) == ""


def test_only_the_agents_own_directory_of_home_is_writable_and_gh_finds_nothing(desk: Desk) -> None:
    home = desk.world.home
    for name in (".claude", ".local/bin", ".local/share/mise", ".local/share/claude", ".config/gh"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / ".config/gh/hosts.yml").write_text("oauth_token: secret\n")
    os.environ["GH_TOKEN"] = "secret"
    try:
        desk.new()
        done = desk.runs(
            "namespaces",
            f"""for d in .claude .local/bin .local/share/mise .local/share/claude .config . ; do
              (echo x > {home}/$d/new) 2>/dev/null && echo wrote $d; ls {home}/$d >/dev/null && true
            done
            cat {home}/.config/gh/hosts.yml 2>/dev/null && echo read; env | grep -i secret; true""",
        )
    finally:
        del os.environ["GH_TOKEN"]
    assert done.stdout.split() == ["wrote", ".claude"]
    assert (home / ".claude/new").exists()
