"""A person with a repository, and what an agent does in a workspace of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from corral import LocalEnvironment, Policy
from corral.environment.base import CommandResult
from corral.workspace import Workspace, command_in, create, load, policy_for
from jail.world import World


@dataclass(frozen=True)
class Desk:
    """``repository`` has one commit on main. ``mark``: a file that only code run outside a jail can make."""

    world: World
    repository: Path

    @property
    def mark(self) -> Path:
        return self.world.outside / "ran-outside"

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """The person's own git, hooks, config and all."""
        done = subprocess.run(["git", *words], cwd=cwd or self.repository, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def new(self, name: str = "fix") -> Workspace:
        return create(name, str(self.repository))

    def runs(self, backend: str, line: str, name: str = "fix") -> CommandResult:
        """The agent's shell line in the workspace."""
        workspace = load(name)
        policy = policy_for(workspace, Policy(backend=backend))  # type: ignore[arg-type]
        with LocalEnvironment(workspace.path, policy) as environment:
            return environment.run(command_in(workspace, ["bash", "-c", line]), timeout=30)


def new_desk(world: World) -> Desk:
    repository = world.home / "project"
    repository.mkdir()
    desk = Desk(world, repository)
    desk.git("init", "--quiet", "--initial-branch=main")
    desk.git("config", "user.name", "A Person")
    desk.git("config", "user.email", "person@example.org")
    (repository / "file").write_text("first\n")
    desk.git("add", ".")
    desk.git("commit", "--quiet", "-m", "first")
    return desk


def lay_trap(directory: Path, mark: Path) -> None:
    """A git directory whose config runs a program at the first `git status`."""
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    script = directory / "trap"
    script.write_text(f"#!/bin/sh\necho > {mark}\n")
    os.chmod(script, 0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(script)], cwd=directory, check=True)
