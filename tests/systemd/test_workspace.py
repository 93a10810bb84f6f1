"""An agent in a workspace, held by a unit: it can commit, and what it plants does not run outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from cases import case
from systemd.test_seed_shape import arguments, properties
from systemd.testbed import HOME

if TYPE_CHECKING:
    from systemd.conftest import Bed

NAME = "agent"
MAKE = (
    "import sys; from corral.workspace import create; w = create('agent', sys.argv[1]);"
    "print(w.path); print(w.common); print(w.branch)"
)
GONE = "from corral.workspace import remove; remove('agent', force=True)"


class Agent:
    """In a workspace of a repository that has one commit."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        bed.sh(
            "rm -rf ~/project && git init -q -b main ~/project && cd ~/project && git config user.name A && "
            "git config user.email a@example.org && echo one > file && git add . && git commit -qm one"
        )
        made = bed.python(MAKE, f"{HOME}/project")
        assert made.returncode == 0, made.stderr
        self.path, self.common, self.branch = made.stdout.split()

    def does(self, line: str, **fields: Any) -> dict[str, Any]:
        return self.bed.script(line, workspace=NAME, **fields)

    def host(self, line: str) -> str:
        return self.bed.sh(f"cd ~/project && {line}")


@pytest.fixture
def agent(bed: Bed) -> Iterator[Agent]:
    made = Agent(bed)
    yield made
    bed.python(GONE)
    bed.sh("rm -rf ~/project ~/ran-outside")


@case("hive-5", "hive-6")
def test_the_workspace_parts_of_git_and_the_agents_directory_are_writable_and_its_programs_visible(
    agent: Agent,
) -> None:
    argv = arguments(agent.does("true"))
    writable = properties(argv, "BindPaths")
    assert {agent.path, f"-{HOME}/.claude", f"{agent.common}/objects"} <= set(writable)
    assert all(
        p.startswith((agent.path, f"-{HOME}/.claude", f"{agent.common}/", f"{HOME}/.local/"))
        for p in writable
    )
    visible = properties(argv, "BindReadOnlyPaths")
    assert {f"-{HOME}/.local/{name}" for name in ("bin", "share/mise", "share/claude")} <= set(visible)
    assert agent.common in visible


@case("hive-8", "hive-11", "hive-12")
def test_the_bootstrap_is_what_the_command_finds(agent: Agent) -> None:
    show = (
        'pwd; printf "%s|" "$PATH" "$MISE_YES" "$MISE_TRUSTED_CONFIG_PATHS"; git config user.name; echo "$0"'
    )
    answer = agent.bed.jail(["bash", "-c", show, "it's $HOME `id` %h"], workspace=NAME)
    where, variables, word = answer["stdout"].splitlines()
    assert where == agent.path
    path, yes, trusted, name = variables.split("|")
    assert path.startswith(f"{HOME}/.local/bin:{HOME}/.local/share/mise/shims:")
    assert (yes, trusted) == ("1", agent.path)
    assert name
    assert word == "it's $HOME `id` %h"


def test_without_a_workspace_there_is_no_bootstrap(bed: Bed) -> None:
    assert "MISE" not in bed.script("env")["stdout"]


def test_a_commit_inside_is_there_outside(agent: Agent) -> None:
    answer = agent.does("echo two > file && git commit -qam two && git log --format=%s -1")
    assert (answer["exit_code"], answer["stdout"]) == (0, "two\n"), answer["stderr"]
    assert agent.host(f"git log --format=%s -1 {agent.branch}") == "two\n"


@case("hive-5.2")
def test_a_hook_or_config_planted_from_a_unit_does_not_run_outside(agent: Agent) -> None:
    hook = f"printf '#!/bin/sh\\ntouch {HOME}/ran-outside\\n' > hook; chmod +x hook; "
    answer = agent.does(
        f"{hook} mkdir -p {agent.common}/hooks; cp hook {agent.common}/hooks/post-commit; "
        f"git config core.fsmonitor $PWD/hook; git config core.hooksPath $PWD; echo done"
    )
    assert answer["stdout"] == "done\n"
    assert "Read-only file system" in answer["stderr"]
    agent.host("echo three > file && git commit -qam three && git status")
    assert agent.host("ls ~/ran-outside 2>/dev/null || echo not") == "not\n"


@case("hive-5.3")
def test_head_pointed_at_main_from_a_unit_moves_main_nowhere(agent: Agent) -> None:
    main = agent.host("git rev-parse main")
    agent.does("git symbolic-ref HEAD refs/heads/main; git commit -q --allow-empty -m mine; true")
    agent.does("printf 'gitdir: %s' $PWD/inner > .git; true")
    assert agent.host("git rev-parse main") == main


def test_the_command_line_runs_in_a_workspace_too(agent: Agent) -> None:
    words = ("run", "--workspace", NAME, "--backend", "systemd-run", "--", "bash", "-c", "pwd; ls")
    assert agent.bed.corral(*words).stdout == f"{agent.path}\nfile\n"
