"""What of the repository an agent may touch: enough for commits on its own branches, nothing that runs later outside.

| part of the common directory | inside | why |
|---|---|---|
| `objects/00` … `objects/ff` | writable | a commit is new loose objects |
| `objects/pack`, `objects/info` | read-only | packs are read first: what is packed cannot be replaced; no alternates |
| `refs/heads/corral/NAME`, its logs | writable | its branches; every other ref and packed-refs stay as they are |
| `worktrees/ID` | writable | index, HEAD, state of a rebase |
| `gitdir`, `commondir`, `config.worktree` in it | read-only | they say which config the host's git would obey |
| `corral/NAME` | writable, but for its `config` | packed-refs and its lock, as the worktree sees them |
| hooks, config, info, modules, all else | read-only | git on the host runs what they name |
"""

from __future__ import annotations

import os
import stat

from corral.errors import PolicyError
from corral.policy import Grant
from corral.workspace.shadow import refresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.workspace.metadata import Workspace

# Below home: what agents keep between runs, and where their programs are.
HOME_WRITABLE = (".claude",)
HOME_READ_ONLY = (".local/bin", ".local/share/mise", ".local/share/claude")

CONTROL_FILES = ("gitdir", "commondir", "config.worktree")


def exposure(workspace: Workspace, *, narrow: bool = True) -> tuple[Grant, ...]:
    """Grants for the git parts, which are made where they are missing. ``narrow``: with read-only places inside
    writable ones. Landlock cannot subtract; without it the objects are granted directory by directory, and nothing
    keeps an agent from changing the pointers of its own worktree (they are compared before each run)."""
    refresh(workspace)
    writable = [_made(path) for path in _writable(workspace, narrow=narrow)]
    # Where a jail hides home or /tmp, the rest of the repository has to be named to be there at all.
    grants = [Grant.ro(workspace.common)]
    grants += [Grant.rw(path) for path in (workspace.directory, workspace.shadow, *writable)]
    if narrow:
        objects = os.path.join(workspace.common, "objects")
        read_only = [_made(os.path.join(objects, name)) for name in ("info", "pack")]
        read_only += [_regular(os.path.join(workspace.directory, name)) for name in CONTROL_FILES]
        read_only.append(_regular(os.path.join(workspace.shadow, "config")))
        grants += [Grant.ro(path) for path in (*read_only, _regular(os.path.join(workspace.path, ".git")))]
    return tuple(grants)


def _writable(workspace: Workspace, *, narrow: bool) -> list[str]:
    objects = os.path.join(workspace.common, "objects")
    branches = os.path.join("refs", "heads", workspace.refs)
    return [
        *([objects] if narrow else [os.path.join(objects, f"{first:02x}") for first in range(256)]),
        os.path.join(workspace.common, branches),
        os.path.join(workspace.common, "logs", branches),
    ]


def home_grants(home: str) -> tuple[Grant, ...]:
    """`~/.claude` is the one directory of home that stays writable."""
    writable = tuple(Grant.rw(os.path.join(home, name), "skip") for name in HOME_WRITABLE)
    return writable + tuple(Grant.ro(os.path.join(home, name), "skip") for name in HOME_READ_ONLY)


def _made(path: str) -> str:
    """A directory, no link: an agent that ran with other grants may have left one where a grant would follow it."""
    try:
        os.makedirs(path, exist_ok=True)
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileExistsError:
        is_directory = False
    if not is_directory:
        raise PolicyError(f"{path} was replaced by something that is no directory; remove it", path=path)
    return path


def _regular(path: str) -> str:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise PolicyError(f"{path} was replaced by something that is no file; remove it", path=path)
    except FileNotFoundError:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    return path
