"""Workspaces: a git worktree for an agent, with its own branches, and what of the repository it may touch."""

from __future__ import annotations

from corral.workspace.bootstrap import bootstrap
from corral.workspace.exposure import exposure, home_grants
from corral.workspace.life import create, load, remove, workspaces
from corral.workspace.metadata import Identity, Workspace
from corral.workspace.running import command_in, policy_for

__all__ = [
    "Identity",
    "Workspace",
    "bootstrap",
    "command_in",
    "create",
    "exposure",
    "home_grants",
    "load",
    "policy_for",
    "remove",
    "workspaces",
]
