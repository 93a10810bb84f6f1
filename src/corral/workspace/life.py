"""Workspaces come and go: made from a repository, loaded by name, listed, removed.

After an agent has run in a worktree nothing in it is believed and git is not run in it outside a jail: not even
`git status`, which obeys the config of every repository it finds there.
"""

from __future__ import annotations

import contextlib
import os

from corral.errors import NotEnforceable, PolicyError
from corral.files.removing import remove_tree
from corral.jail.site import is_below
from corral.state import account_home, config_directory, state_directory
from corral.workspace import metadata
from corral.workspace.gitcommand import GitFailed, filters_of, git
from corral.workspace.metadata import PREFIX, Identity, Workspace
from corral.workspace.repository import (
    LONGEST_POINTER,
    check_ownership,
    linked_repository,
    plain_content,
    pointers_of,
    repository_of,
)
from corral.workspace.shadow import make_shadow, refresh

BRANCH = "work"


def default_directory() -> str:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(
        os.environ.get("HOME") or account_home(), ".local/share"
    )
    return os.path.join(os.path.abspath(base), "corral", "workspaces")


def create(
    name: str,
    repository: str = ".",
    *,
    base: str = "HEAD",
    directory: str | None = None,
    identity: Identity | None = None,
    path_prepend: tuple[str, ...] | None = None,
) -> Workspace:
    """A worktree ``directory``/``name`` on a new branch cut from ``base``. No hook or filter of the repository runs."""
    found = repository_of(repository)
    if os.path.lexists(os.path.join(found.common, "reftable")):
        raise PolicyError(
            f"{found.common} keeps all its refs in one place (reftable); one branch cannot be granted there. "
            "`git refs migrate --ref-format=files` changes that"
        )
    path = os.path.join(os.path.realpath(directory or default_directory()), name)
    if os.path.lexists(path):
        raise PolicyError(f"{path} is there already; choose another name or --directory", path=path)
    for own in (config_directory(), state_directory(), found.common):
        if is_below(path, os.path.realpath(own)):
            raise PolicyError(f"a workspace cannot lie in {own}; choose another --directory", path=path)
    prepend = metadata.default_path_prepend() if path_prepend is None else path_prepend
    branch = f"{PREFIX}/{name}/{BRANCH}"
    # Checked whole before anything is made.
    draft = Workspace(name, path, found.common, found.directory, branch, "", identity or Identity(), prepend)
    commit = _commit(found.directory, base)
    metadata.claim(name)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        add = ("worktree", "add", "--quiet", "--no-track", "-b", branch, path, commit)
        git(found.common, *add, filters=filters_of(found.common))
        made = draft.replace(directory=linked_repository(path).directory, base=commit)
        make_shadow(made)
        metadata.write(made)
    except BaseException:
        _undo(draft)
        raise
    return made


def _commit(directory: str, name: str) -> str:
    try:
        return git(directory, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
    except GitFailed:
        raise PolicyError(
            f"{name} is no commit in {directory}; a workspace starts from one", path=directory
        ) from None


def _undo(draft: Workspace) -> None:
    if os.path.lexists(draft.path):
        _remove_parts(draft)
    metadata.forget(draft.name)


def load(name: str) -> Workspace:
    """The workspace of that name, as it was made. Refused if the worktree does not belong to it any more."""
    workspace = metadata.read(name)
    if not os.path.isdir(workspace.path):
        raise PolicyError(
            f"the worktree {workspace.path} is gone; corral workspace remove --force {name} forgets it",
            path=workspace.path,
        )
    directory, common = pointers_of(workspace.path)
    if (directory, common) != (workspace.directory, workspace.shadow):
        raise PolicyError(
            f"{workspace.path} belongs to {directory} and {common}, and was made for {workspace.directory} and "
            f"{workspace.shadow}: somebody changed that, and the host's git would obey it. "
            f"corral workspace remove --force {name} removes it; its commits stay in {workspace.repository} until then",
            path=workspace.path,
        )
    check_ownership(workspace.common, workspace.directory)
    return workspace


def workspaces() -> list[Workspace]:
    """All that can be read; one that is just being made is not among them."""
    found = []
    for name in metadata.names():
        try:
            found.append(metadata.read(name))
        except PolicyError:
            continue
    return found


# ---- removing ----


def remove(name: str, *, force: bool = False) -> Workspace:
    """Worktree, branches and what is known of it. Without ``force``, work that is nowhere else is a refusal."""
    workspace = metadata.read(name)
    if not force:
        _refuse_to_lose(workspace)
    _remove_parts(workspace)
    metadata.forget(name)
    return workspace


def _refuse_to_lose(workspace: Workspace) -> None:
    how = f"corral workspace remove --force {workspace.name} removes it all the same"
    if os.path.isdir(workspace.shadow):
        refresh(workspace)
        count = len(unmerged(workspace))
        if count:
            raise PolicyError(
                f"commits of {workspace.refs} that are in no other branch: {count}; {how}",
                path=workspace.path,
            )
    if os.path.isdir(workspace.path) and uncommitted(workspace):
        raise PolicyError(f"{workspace.path} has changes that are not committed; {how}", path=workspace.path)


def unmerged(workspace: Workspace) -> list[str]:
    """Commits of its branches that no other ref holds."""
    own = [name for name, _ in _branches(workspace)]
    if not own:
        return []
    # One worktree only: the HEAD of this one, which is the agent's to set, is no other place.
    others = ("--single-worktree", "--not", f"--exclude=refs/heads/{workspace.refs}/*", "--all")
    return git(workspace.common, "rev-list", *own, *others, "--").split()


def uncommitted(workspace: Workspace) -> list[str]:
    """Asked inside a jail that can change nothing: `git status` may run what the agent left."""
    from corral.environment.local import LocalEnvironment
    from corral.policy import Policy

    words = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all")
    pointed = (f"--git-dir={workspace.directory}", f"--work-tree={workspace.path}")
    try:
        with LocalEnvironment(workspace.path, Policy.read_only()) as environment:
            done = environment.run(["git", "--no-optional-locks", *pointed, *words], timeout=120)
    except NotEnforceable as error:
        raise PolicyError(
            f"whether {workspace.path} has changes can only be asked in a jail: {error}"
        ) from None
    if done.exit_code:
        raise PolicyError(
            f"git status in {workspace.path}: {done.stderr.strip() or done.exit_code}", path=workspace.path
        )
    return done.stdout.splitlines()


def _branches(workspace: Workspace) -> list[tuple[str, str]]:
    """Name and commit of each. A symbolic one, which an agent can point anywhere, is not what it stands for."""
    form = "--format=%(objectname) %(refname) %(symref)"
    rows = git(workspace.common, "for-each-ref", form, f"refs/heads/{workspace.refs}/").splitlines()
    found = [row.split(" ") for row in rows]
    return [(name, commit) for commit, name, symref in found if not symref]


def _remove_parts(workspace: Workspace) -> None:
    """No git here but for packed refs: everything else is directories that the agent may have filled with anything."""
    if os.path.islink(workspace.path) or os.path.isfile(workspace.path):
        raise PolicyError(
            f"{workspace.path} was replaced by something that is no directory", path=workspace.path
        )
    if os.path.isdir(workspace.path):
        remove_tree(workspace.path)
    if not os.path.isdir(workspace.common):
        return
    if _is_its_own(workspace):
        remove_tree(workspace.directory)
    for top in ("", "refs/heads", "logs/refs/heads"):
        path = os.path.join(workspace.common, top, workspace.refs)
        if os.path.isdir(path) and not os.path.islink(path):
            remove_tree(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))  # the last workspace takes it along
    for name, _ in _branches(workspace):  # what is left was packed
        git(workspace.common, "update-ref", "--no-deref", "-d", name)


def _is_its_own(workspace: Workspace) -> bool:
    """Whether `worktrees/ID` is still this workspace's: git gives a name that is free again to another worktree."""
    if os.path.dirname(workspace.directory) != os.path.join(workspace.common, "worktrees"):
        return False
    named = plain_content(os.path.join(workspace.directory, "gitdir"), LONGEST_POINTER)
    if named is None:
        return False
    back = os.path.join(workspace.directory, os.fsdecode(named).removesuffix("\n"))
    return os.path.normpath(back) == os.path.join(workspace.path, ".git")
