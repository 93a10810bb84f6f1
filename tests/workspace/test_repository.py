"""Which repository a directory belongs to: believed only where both ends agree, and only the caller's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corral import PolicyError
from corral.workspace.repository import linked_repository, repository_of
from hostfacts import skip_unless_host
from workspace.desk import Desk

pytestmark = pytest.mark.jail


@pytest.fixture
def linked(desk: Desk) -> Path:
    path = desk.world.granted / "linked"
    desk.git("worktree", "add", "--quiet", str(path))
    return path


def test_a_linked_worktree_leads_to_its_repository(desk: Desk, linked: Path) -> None:
    found = linked_repository(str(linked))
    assert found.common == str(desk.repository / ".git")
    assert found.directory == str(desk.repository / ".git/worktrees/linked")
    (linked / "below").mkdir()
    assert repository_of(str(linked / "below")) == found


def test_relative_pointers_are_read_as_git_reads_them(desk: Desk, linked: Path) -> None:
    admin = desk.repository / ".git/worktrees/linked"
    (linked / ".git").write_text(f"gitdir: {os.path.relpath(admin, linked)}\n")
    (admin / "gitdir").write_text(f"{os.path.relpath(linked / '.git', admin)}\n")
    assert linked_repository(str(linked)).directory == str(admin)


def copied(desk: Desk, linked: Path) -> Path:
    """A second worktree with the first one's pointer: the repository does not know it."""
    other = desk.world.outside / "copy"
    other.mkdir()
    (other / ".git").write_bytes((linked / ".git").read_bytes())
    return other


def in_a_made_up_repository(desk: Desk, linked: Path) -> Path:
    fake = desk.world.outside / "fake"
    fake.mkdir()
    (fake / "commondir").write_text(f"{desk.repository}/.git\n")
    (fake / "gitdir").write_text(f"{linked}/.git\n")
    (linked / ".git").write_text(f"gitdir: {fake}\n")
    return linked


def whose_common_is_elsewhere(desk: Desk, linked: Path) -> Path:
    (desk.repository / ".git/worktrees/linked/commondir").write_text(f"{desk.world.home}\n")
    return linked


def by_a_link(desk: Desk, linked: Path) -> Path:
    os.rename(linked / ".git", linked / "pointer")
    os.symlink("pointer", linked / ".git")
    return linked


def by_a_fifo(desk: Desk, linked: Path) -> Path:
    os.unlink(linked / ".git")
    os.mkfifo(linked / ".git")
    return linked


def by_nonsense(desk: Desk, linked: Path) -> Path:
    (linked / ".git").write_bytes(b"gitdir: \0\n" + b"x" * 100000)
    return linked


@pytest.mark.parametrize(
    "changed", [copied, in_a_made_up_repository, whose_common_is_elsewhere, by_a_link, by_a_fifo, by_nonsense]
)
def test_a_worktree_that_its_repository_does_not_know_is_refused(
    desk: Desk, linked: Path, changed: Callable[[Desk, Path], Path]
) -> None:
    with pytest.raises(PolicyError):
        linked_repository(str(changed(desk, linked)))


def test_home_or_what_holds_it_is_no_repository_to_work_from(desk: Desk) -> None:
    desk.git("init", "--quiet", "--bare", str(desk.world.home))
    with pytest.raises(PolicyError, match="your home or holds it"):
        repository_of(str(desk.world.home))
    desk.git("init", "--quiet", "--bare", str(desk.world.base))
    with pytest.raises(PolicyError, match="your home or holds it"):
        repository_of(str(desk.world.base))


def test_a_repository_of_somebody_else_is_refused(desk: Desk, linked: Path) -> None:
    skip_unless_host("root-attacks")
    for part in ("", "objects", "worktrees/linked"):
        path = desk.repository / ".git" / part
        os.chown(path, 1234, 1234)
        with pytest.raises(PolicyError, match="not a directory of yours"):
            linked_repository(str(linked))
        os.chown(path, 0, 0)
    linked_repository(str(linked))
