"""The numbered cases, as far as they are about what lands."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from cases import case
from changes.field import Field, picture
from changes.test_applying import CALLS
from changes.test_listing import git, prepare, repository
from corral.changes import apply, diff, discard, list_changes
from corral.changes.gitconfig import programs_in
from corral.changes.later import TABLE, rules_for
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail


def left_behind(field: Field) -> list[str]:
    """What a plain apply leaves, with everything else applied."""
    return sorted(change.path for change, reason in apply(field.layers).left if "runs later" in reason)


@case("peers-F6")
def test_a_rename_into_a_hook_is_not_on_the_host_before_review(field: Field) -> None:
    repository(field.lower)
    hook = field.lower / ".git/hooks/pre-commit"
    field.run("echo e > .git/x; chmod +x .git/x; mv .git/x .git/hooks/pre-commit")
    assert not hook.exists()
    assert left_behind(field) == [".git/hooks/pre-commit"]
    assert not hook.exists()
    apply(field.layers, [".git/hooks/pre-commit"])
    assert hook.read_text() == "e\n"


@case("peers-F7")
def test_a_repository_that_was_moved_away_and_rebuilt_is_not_on_the_host_before_review(field: Field) -> None:
    repository(field.lower)
    before = picture(field.lower / ".git")
    field.run("mv .git g2; mkdir -p .git/hooks; echo e > .git/hooks/pre-commit")
    assert picture(field.lower / ".git") == before
    assert ".git/hooks/pre-commit" in left_behind(field)
    assert not (field.lower / ".git/hooks/pre-commit").exists()
    assert (field.lower / "g2/HEAD").exists(), "the rest is applied as it was done"


@case("peers-F8")
def test_a_settings_file_that_was_absent_is_not_on_the_host_before_review(field: Field) -> None:
    field.run("mkdir -p .claude; echo {} > .claude/settings.json")
    assert not (field.lower / ".claude").exists()
    assert left_behind(field) == [".claude/settings.json"]
    assert not (field.lower / ".claude/settings.json").exists()


@case("peers-F21")
def test_no_call_leaks_through_the_layer(field: Field) -> None:
    """All of them in one run; one by one they stand in test_applying."""
    prepare(field)
    before = picture(field.lower)
    lines = ["import ctypes, os, subprocess"]
    for number, call in enumerate(CALLS.values()):
        lines.append(f"def f{number}():\n  {call}\ntry: f{number}()\nexcept Exception: pass")
    (field.base / "program.py").write_text("\n".join(lines))
    field.run("python3 ../program.py")
    assert picture(field.lower) == before, "nothing came through while it ran"
    discard(field.layers)
    assert picture(field.lower) == before
    assert list_changes(field.layers) == []


@case("peers-F22")
@pytest.mark.parametrize(
    "line", ["rm d/f; ln -s {out}/f d/f", "rm -r d; ln -s {out} d", "mv d x; ln -s {out} d; echo x > n"]
)
def test_a_link_that_was_planted_is_a_link_and_leads_nowhere(field: Field, tmp_path: Path, line: str) -> None:
    prepare(field)
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "f").write_text("theirs\n")
    (outside / "g").write_text("theirs\n")
    before = picture(outside)
    field.run(line.format(out=outside))
    b"".join(diff(field.layers))
    apply(field.layers)
    assert picture(outside) == before
    planted = field.lower / ("d/f" if "d/f" in line else "d")
    assert planted.is_symlink()


@case("peers-F22")
def test_a_link_that_a_person_planted_in_the_way_is_not_followed(field: Field, tmp_path: Path) -> None:
    prepare(field)
    outside = tmp_path / "out"
    outside.mkdir()
    field.run("mkdir n; echo x > n/f; echo x > d/new")
    (field.lower / "n").symlink_to(outside)
    with pytest.raises(PermissionError):
        apply(field.layers)
    assert list(outside.iterdir()) == []


@case("peers-F24")
def test_setuid_bits_devices_attributes_and_odd_names(field: Field) -> None:
    prepare(field)
    made = "echo x > s; chmod 4755 s; echo x > g; chmod 2755 g; mkdir sticky; chmod 1777 sticky; mkfifo p; "
    odd = "echo x > ./-rf; echo x > \"$(printf 'a\\nb')\"; echo x > \"$(printf 'e\\033[31mc')\"; "
    field.run(made + odd + "setfattr -n user.mine -v 1 e; echo y > e; setfattr -n user.only -v 1 d/f")
    text = b"".join(diff(field.layers)).decode("ascii")
    assert "\x1b" not in text
    assert '"b/e\\033[31mc"' in text
    assert '"b/a\\nb"' in text
    assert "extended attributes differ: user.mine" in text
    done = apply(field.layers)
    left = {change.path: reason for change, reason in done.left}
    assert sorted(left) == ["d/f", "g", "p", "s"]
    assert "set-uid" in left["s"]
    assert "fifo" in left["p"]
    assert "attributes" in left["d/f"]
    names = sorted(os.listdir(field.lower))
    assert names == ["-rf", "a\nb", "d", "e", "e\x1b[31mc", "l", "sticky"]
    for path in field.lower.rglob("*"):
        assert not path.lstat().st_mode & 0o7000
        assert stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    assert os.listxattr(field.lower / "e") == []


@case("peers-F24")
def test_devices_and_sockets_stay_behind(field: Field) -> None:
    skip_unless_host("root-only")
    field.run(
        "mknod null c 1 3; mknod disk b 7 0; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'"
    )
    done = apply(field.layers, ["null", "disk", "s"], allow_exec=True)
    assert sorted(change.path for change, _ in done.left) == ["disk", "null", "s"]
    assert os.listdir(field.lower) == []


@case("peers-P1")
def test_a_hook_is_flagged_and_not_applied_unless_it_is_named_or_allowed(field: Field) -> None:
    repository(field.lower)
    hook = field.lower / ".git/hooks/pre-commit"
    field.run("echo e > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo x > f")
    (change,) = [change for change in list_changes(field.layers) if change.runs_later]
    assert change.flags[0].rule == "git-hook"
    assert "runs later: git runs it as a hook" in change.line()
    apply(field.layers, [".git", "f"])
    assert not hook.exists()
    assert (field.lower / "f").read_text() == "x\n"
    apply(field.layers, allow_exec=True)
    assert hook.exists()


@case("peers-P2")
@pytest.mark.parametrize("where", ["sub/.git", "a/b/c/.git", "vendored.git", ".git/modules/sub"])
def test_a_hook_of_a_nested_repository_is_flagged_too(field: Field, where: str) -> None:
    repository(field.lower)
    (field.lower / where).mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "--bare", where], cwd=field.lower, check=True)
    field.run(f"echo e > {where}/hooks/pre-commit; chmod +x {where}/hooks/pre-commit")
    assert left_behind(field) == [f"{where}/hooks/pre-commit"]


@case("peers-P2")
def test_a_hook_that_comes_with_a_new_repository_is_flagged_and_the_rest_is_applied(field: Field) -> None:
    field.run(
        "git init -q sub; echo e > sub/.git/hooks/post-checkout; git -C sub config core.fsmonitor ./evil"
    )
    assert left_behind(field) == ["sub/.git/config", "sub/.git/hooks/post-checkout"]
    assert (field.lower / "sub/.git/HEAD").exists()


@case("peers-P6")
@pytest.mark.parametrize(
    "name", [".bashrc", ".zshenv", ".profile", ".config/fish/config.fish", "deep/.bash_profile"]
)
def test_start_up_files_are_flagged(field: Field, name: str) -> None:
    field.file(name, "# mine\n")
    field.run(f"echo evil >> {name}; echo x > harmless")
    assert left_behind(field) == [name]
    assert (field.lower / name).read_text() == "# mine\n"
    assert (field.lower / "harmless").exists()


# ---- the table ----

# One path of each kind that the table is for, at some depth, and one beside it that is harmless.
SAMPLES = {
    "git-hook": (".git/hooks/pre-push", ".git/hooks/pre-push.sample"),
    "git-pointer": ("vendored/.git", "vendored/git"),
    "environment": ("a/.envrc", "a/envrc"),
    "editor": (".vscode/tasks.json", "vscode/tasks.json"),
    "agent": ("x/.mcp.json", "x/mcp.txt"),
    "ci": (".github/workflows/build.yml", ".github/ISSUE_TEMPLATE.md"),
    "build": ("lib/Makefile", "lib/Makefilex"),
    "python": ("tests/conftest.py", "tests/test_conf.py"),
    "shell": (".bashrc", "bashrc.md"),
    "service": (".config/systemd/user/x.service", ".config/systemd.md"),
}


@pytest.mark.parametrize("rule", TABLE)
def test_every_rule_of_the_table_has_a_reason_and_matches_what_it_is_for(rule: str) -> None:
    dangerous, harmless = SAMPLES[rule]
    assert rule in [found for found, _ in rules_for(dangerous)]
    assert rules_for(harmless) == []
    assert TABLE[rule][0]
    assert rule in [found for found, _ in rules_for(dangerous.upper())], "another case is no way around"


def test_source_files_and_what_is_installed_are_not_flagged() -> None:
    for path in (
        "src/main.c",
        "README.md",
        ".git/objects/aa/bb",
        ".git/refs/heads/x",
        ".git/HEAD",
        "a/b/index.js",
    ):
        assert rules_for(path) == []
    assert rules_for("node_modules/x/Makefile") == []
    assert rules_for("node_modules/x/.git/hooks/pre-commit") != []
    assert rules_for("node_modules/.bin/tool") != []


CONFIGS = {
    "core.fsmonitor": "[core]\n\tfsmonitor = ./x\n",
    "core.hookspath": "[core] hooksPath = h\n",
    "core.sshcommand": '[Core]\nSSHCommand = "ssh -x" # why\n',
    "diff.external": "[diff]\n external=x",
    "filter.a.clean": '[filter "a"]\n clean = x',
    "diff.a b.textconv": '[diff "a b"]\n textconv = x',
    "alias.x": "[alias]\n x = !evil",
    "include.path": "[include]\n path = other",
    "includeif.gitdir:/.path": '[includeIf "gitdir:/"]\n path = other',
    "credential.helper": "[credential]\n\thelper = !f() { evil; }; f",
}


@pytest.mark.parametrize("key", CONFIGS)
def test_settings_that_name_programs_are_found_without_git(key: str, tmp_path: Path) -> None:
    found = programs_in(CONFIGS[key].encode())
    assert found is not None
    assert [name.lower() for name, _ in found] == [key]
    (tmp_path / "config").write_text(CONFIGS[key])
    listed = subprocess.run(
        ["git", "config", "-f", "config", "--list"], cwd=tmp_path, capture_output=True, text=True
    )
    assert listed.stdout.strip() == f"{found[0][0]}={found[0][1]}", "git reads it as we do"


def test_harmless_settings_are_applied_and_those_that_were_there_before_do_not_count(field: Field) -> None:
    repository(field.lower)
    git(field.lower, "config", "core.pager", "less")
    field.run("git config user.name somebody; git config alias.st status")
    assert left_behind(field) == []
    assert "somebody" in (field.lower / ".git/config").read_text()
    field.run("git config core.pager evil; git config branch.x.merge y")
    (change,) = list_changes(field.layers)
    assert [flag.reason for flag in change.flags] == [
        "git settings that name programs or further settings: core.pager"
    ]


def test_package_scripts_count_and_other_fields_do_not(field: Field) -> None:
    field.file("package.json", '{"name": "a", "scripts": {"test": "t"}}')
    field.run("""echo '{"name": "a", "version": "2", "scripts": {"test": "t"}}' > package.json""")
    assert left_behind(field) == []
    field.run("""echo '{"name": "a", "scripts": {"postinstall": "evil"}}' > package.json""")
    assert left_behind(field) == ["package.json"]
    field.run("echo '{' > package.json")
    (change,) = list_changes(field.layers)
    assert "cannot be read" in change.flags[0].reason


def test_a_hook_that_goes_away_runs_nothing(field: Field) -> None:
    field.file(".git/hooks/pre-commit", "x\n", 0o755)
    field.run("rm .git/hooks/pre-commit")
    assert left_behind(field) == []
    assert not (field.lower / ".git/hooks/pre-commit").exists()
