"""What is put into an agent's own directory before it starts, and that a link planted there leads us nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.desk import Desk
from corral.config.agents import AGENTS
from corral.config.seeding import seed_home, seed_private

CLAUDE = AGENTS["claude"]


class Login:
    """A person's own Claude, and the directory that stands in for it."""

    def __init__(self, desk: Desk) -> None:
        self.home = desk.home
        self.private = desk.project.parent / "private"
        self.inside = self.private / "CLAUDE_CONFIG_DIR"
        self.outside = desk.project.parent / "outside"
        self.outside.mkdir()
        for name, text in {
            ".claude/.credentials.json": "token 1",
            ".claude/settings.json": "{}",
            ".claude.json": '{"mcp": 1}',
            ".claude/hooks/stop.sh": "true",
            ".claude/projects/p/s.jsonl": "said",
            ".claude/statsig/x": "state",
        }.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def starts(self) -> None:
        seed_private(CLAUDE, str(self.private), {"HOME": str(self.home)})


@pytest.fixture
def login(desk: Desk) -> Login:
    return Login(desk)


def test_shared_places_are_the_real_ones_and_guarded_files_are_copies(login: Login) -> None:
    login.starts()
    (login.inside / ".credentials.json").write_text("token 2")
    assert (login.home / ".claude/.credentials.json").read_text() == "token 2"
    (login.inside / "projects/p/more.jsonl").write_text("more")
    assert (login.home / ".claude/projects/p/more.jsonl").exists()
    (login.inside / "settings.json").write_text("changed")
    (login.inside / ".claude.json").write_text("changed")
    assert (login.home / ".claude/settings.json").read_text() == "{}"
    assert (login.home / ".claude.json").read_text() == '{"mcp": 1}'
    assert os.readlink(login.inside / "hooks") == str(login.home / ".claude/hooks")
    assert not (login.inside / "statsig").exists()
    assert (login.private / "tmp").is_dir()
    assert login.private.stat().st_mode & 0o077 == 0


def test_what_was_changed_inside_stays_until_the_real_file_changes(login: Login) -> None:
    login.starts()
    (login.inside / "settings.json").write_text("mine")
    login.starts()
    assert (login.inside / "settings.json").read_text() == "mine"
    real = login.home / ".claude/settings.json"
    real.write_text("newer")
    later = (login.inside / "settings.json").stat().st_mtime_ns + 1
    os.utime(real, ns=(later, later))
    login.starts()
    assert (login.inside / "settings.json").read_text() == "newer"


@pytest.mark.parametrize("planted", ["settings.json", ".claude.json"])
def test_a_planted_link_is_replaced_and_never_written_through(login: Login, planted: str) -> None:
    victim = login.outside / "victim"
    victim.write_text("as it was")
    login.inside.mkdir(parents=True)
    (login.inside / planted).symlink_to(victim)
    os.utime(login.inside / planted, ns=(0, 0), follow_symlinks=False)
    login.starts()
    assert victim.read_text() == "as it was"
    assert not (login.inside / planted).is_symlink()


def test_a_planted_directory_link_is_not_followed(login: Login) -> None:
    login.private.mkdir()
    login.inside.symlink_to(login.outside)
    login.starts()
    assert list(login.outside.iterdir()) == []
    login.inside.unlink()
    login.starts()
    assert (login.inside / "settings.json").exists()


def test_a_shared_link_that_was_turned_elsewhere_is_set_right_and_a_file_of_its_own_is_kept(
    login: Login,
) -> None:
    login.starts()
    (login.inside / ".credentials.json").unlink()
    (login.inside / ".credentials.json").symlink_to("/etc/hostname")
    login.starts()
    assert os.readlink(login.inside / ".credentials.json") == str(login.home / ".claude/.credentials.json")
    (login.inside / ".credentials.json").unlink()
    (login.inside / ".credentials.json").write_text("own login")
    login.starts()
    assert (login.inside / ".credentials.json").read_text() == "own login"


def test_a_source_that_is_no_plain_file_is_left_out_without_waiting(login: Login) -> None:
    (login.home / ".claude/settings.json").unlink()
    os.mkfifo(login.home / ".claude/settings.json")
    login.starts()
    assert not (login.inside / "settings.json").exists()
    assert (login.inside / ".claude.json").exists()


def test_an_empty_home_gets_the_guarded_files_and_nothing_else(login: Login, tmp_path: Path) -> None:
    home = tmp_path / "jail-home"
    home.mkdir()
    for _ in range(2):
        seed_home(CLAUDE, str(home), {"HOME": str(login.home)})
    made = sorted(str(path.relative_to(home)) for path in home.rglob("*"))
    assert made == [".claude", ".claude.json", ".claude/settings.json"]
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600
    (home / ".claude/settings.json").unlink()
    (home / ".claude").rmdir()
    (home / ".claude").symlink_to(login.outside)
    seed_home(CLAUDE, str(home), {"HOME": str(login.home)})
    assert list(login.outside.iterdir()) == []


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_can_start_with_nothing_there(desk: Desk, tmp_path: Path, name: str) -> None:
    seed_private(AGENTS[name], str(tmp_path / "private"), {"HOME": str(desk.home)})
    seed_home(AGENTS[name], str(tmp_path / "private"), {"HOME": str(desk.home)})
