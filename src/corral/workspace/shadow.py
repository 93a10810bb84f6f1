"""The common directory as the worktree sees it: links to the real parts, with a packed-refs and a config of its own.

git takes `packed-refs.lock` beside `packed-refs` for every ref that it deletes, the ones of a rebase included, and a
directory where it may make that file would be one where it may replace `config` and `hooks`. So the worktree's
`commondir` names a directory of its own in the repository, `corral/NAME`. Its config is read-only inside.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile

from corral.workspace.gitcommand import GitFailed, git
from corral.workspace.repository import plain_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.workspace.metadata import Workspace

LINKS = ("objects", "refs", "logs", "info", "hooks", "worktrees", "shallow", "remotes", "branches")
_PACKED = re.compile(r"([0-9a-f]{40,64}) (\S+)")


def make_shadow(workspace: Workspace) -> None:
    """Once, for a new worktree: from now on this is its common directory."""
    os.makedirs(workspace.shadow)
    refresh(workspace)
    _write(os.path.join(workspace.directory, "commondir"), f"{workspace.shadow}\n".encode())


def refresh(workspace: Workspace) -> None:
    """Before each run: as it should be, whatever an agent made of it. Every file is put in place by a rename, which
    follows no link."""
    for name in LINKS:
        link, target = os.path.join(workspace.shadow, name), os.path.join(workspace.common, name)
        if not os.path.islink(link) or os.readlink(link) != target:
            beside = tempfile.mktemp(prefix=".corral-", dir=workspace.shadow)
            os.symlink(target, beside)
            _put(beside, link)
    _rescue_branches(workspace)
    _write(os.path.join(workspace.shadow, "HEAD"), b"ref: refs/heads/main\n")
    _write(os.path.join(workspace.shadow, "config"), _config(workspace))
    _write(
        os.path.join(workspace.shadow, "packed-refs"),
        plain_content(os.path.join(workspace.common, "packed-refs")) or b"",
    )


def _config(workspace: Workspace) -> bytes:
    """The repository's, by inclusion; git looks for the format in this very file."""
    common = _escaped(workspace.common)
    lines = [f'[core]\n\thooksPath = "{common}/hooks"\n[include]\n\tpath = "{common}/config"\n']
    form = ("config", "--null", "--get-regexp", r"^(core\.repositoryformatversion|extensions\..*)$")
    with contextlib.suppress(GitFailed):
        for row in filter(None, git(workspace.common, *form).split("\0")):
            key, _, value = row.partition("\n")
            section, _, name = key.rpartition(".")
            lines.append(f'[{section}]\n\t{name} = "{_escaped(value)}"\n')
    lines.append("[gc]\n\tpackRefs = false\n")
    return os.fsencode("".join(lines))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _rescue_branches(workspace: Workspace) -> None:
    """`git pack-refs` inside moves its branches into our copy, where nobody outside would find them."""
    top = f"refs/heads/{workspace.refs}/"
    packed = plain_content(os.path.join(workspace.shadow, "packed-refs")) or b""
    for commit, name in _PACKED.findall(packed.decode("utf-8", "replace")):
        if name.startswith(top) and not os.path.lexists(os.path.join(workspace.common, name)):
            with contextlib.suppress(GitFailed):  # no commit of that name, or no name for a ref
                git(workspace.common, "update-ref", "--no-deref", name, commit)


def _write(path: str, content: bytes) -> None:
    if plain_content(path) == content:
        return
    fd, beside = tempfile.mkstemp(prefix=".corral-", dir=os.path.dirname(path))
    with open(fd, "wb") as file:
        file.write(content)
    os.chmod(beside, 0o644)
    _put(beside, path)


def _put(beside: str, path: str) -> None:
    try:
        os.rename(beside, path)
    except (IsADirectoryError, NotADirectoryError, FileExistsError):
        from corral.files.removing import remove_tree

        remove_tree(path)
        os.rename(beside, path)
