"""What Corral knows of a workspace. It lies in the state directory, where no agent can write; nothing in the worktree
is ever asked instead."""

from __future__ import annotations

import json
import os
import re

from corral.errors import PolicyError
from corral.record import Record
from corral.state import account_home, made_state_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "corral"  # of every branch
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
# In front of PATH unless said otherwise, below home.
PATH_PREPEND = (".local/bin", ".local/share/mise/shims")


class Identity(Record):
    """Who the agent's commits are by."""

    name: str = "Claude (corral)"
    email: str = "claude-corral@localhost"

    def __post_init__(self) -> None:
        for value in (self.name, self.email):
            if not value.strip() or any(c in value for c in "\n\0<>"):
                raise PolicyError(f"not a name that git can write into a commit: {value!r}")


class Workspace(Record):
    """A worktree at ``path``; ``common`` is the repository's git directory, ``directory`` the worktree's part of it."""

    name: str
    path: str
    common: str
    directory: str
    branch: str
    base: str
    identity: Identity = Identity()
    path_prepend: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        for path in (self.path, *self.path_prepend):
            if not os.path.isabs(path) or ":" in path or "\n" in path or "\0" in path:
                raise PolicyError(
                    f"{path!r}: a workspace needs absolute paths without a colon or a line break", path=path
                )

    @property
    def repository(self) -> str:
        """The main checkout, or the bare repository itself."""
        return os.path.dirname(self.common) if os.path.basename(self.common) == ".git" else self.common

    @property
    def shadow(self) -> str:
        """The common directory as the worktree sees it."""
        return os.path.join(self.common, PREFIX, self.name)

    @property
    def refs(self) -> str:
        """Where its branches are, below `refs/heads`."""
        return f"{PREFIX}/{self.name}"


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise PolicyError(
            f"{name!r} cannot name a workspace: small letters, digits, and - _ . between them, at most 64"
        )


def default_path_prepend() -> tuple[str, ...]:
    home = os.environ.get("HOME") or account_home()
    return tuple(os.path.join(home, name) for name in PATH_PREPEND)


# ---- where it is kept ----


def _file(name: str) -> str:
    check_name(name)
    return os.path.join(state_directory(), "workspaces", f"{name}.json")


def claim(name: str) -> None:
    """Take the name, or refuse if it is taken."""
    path = _file(name)
    if made_state_directory() is None:
        raise PolicyError(
            f"{state_directory()} cannot be written, and workspaces are remembered there; set CORRAL_STATE_DIR"
        )
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise PolicyError(f"there is a workspace {name!r} already; see corral workspace list") from None


def write(workspace: Workspace) -> None:
    path = _file(workspace.name)
    fields = {name: getattr(workspace, name) for name in Workspace._fields}
    fields["identity"] = {name: getattr(workspace.identity, name) for name in Identity._fields}
    with open(f"{path}.new", "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(fields, file, indent=2)
    os.replace(f"{path}.new", path)


def read(name: str) -> Workspace:
    path = _file(name)
    try:
        with open(path) as file:
            fields: dict[str, Any] = json.load(file)
        fields["identity"] = Identity(**fields["identity"])
        fields["path_prepend"] = tuple(fields["path_prepend"])
        return Workspace(**fields)
    except FileNotFoundError:
        there = ", ".join(names()) or "there is none yet: corral workspace new NAME"
        raise PolicyError(f"no workspace {name!r}; {there}") from None
    except (ValueError, KeyError, TypeError):
        raise PolicyError(
            f"{path} is no description of a workspace (it was being made, or was cut off); remove that file",
            path=path,
        ) from None


def forget(name: str) -> None:
    os.unlink(_file(name))


def names() -> list[str]:
    try:
        found = os.listdir(os.path.join(state_directory(), "workspaces"))
    except FileNotFoundError:
        return []
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json"))
