"""Casual: what is written to home is written to a copy, and the project is the real thing."""

from __future__ import annotations

import os
import stat

import pytest

from cases import case
from homes.dweller import Dweller

pytestmark = pytest.mark.jail


def is_whiteout(path: os.PathLike[str]) -> bool:
    info = os.lstat(path)
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


@case("jai-1")
def test_the_project_is_the_real_thing(dweller: Dweller) -> None:
    dweller.says("echo x > f")
    made = dweller.project / "f"
    assert made.read_text() == "x\n"
    assert made.stat().st_uid == os.getuid()


@case("jai-2")
def test_a_new_file_of_home_stays_in_the_jail(dweller: Dweller) -> None:
    dweller.says("echo x > ~/.new")
    assert not (dweller.home / ".new").exists()
    assert (dweller.changes / ".new").read_text() == "x\n"


@case("jai-3")
def test_a_changed_file_of_home_is_a_whole_copy(dweller: Dweller) -> None:
    assert dweller.says("echo y >> ~/.profile; cat ~/.profile") == "plainy\n"
    assert (dweller.home / ".profile").read_text() == "plain"
    assert (dweller.changes / ".profile").read_text() == "plainy\n"


@case("jai-4")
def test_a_removed_file_of_home_is_gone_only_inside(dweller: Dweller) -> None:
    dweller.says("rm ~/.profile")
    assert (dweller.home / ".profile").exists()
    assert is_whiteout(dweller.changes / ".profile")
    assert dweller.runs("cat ~/.profile").returncode != 0


@case("jai-5")
def test_a_directory_that_was_replaced_shows_only_what_is_new(dweller: Dweller) -> None:
    (dweller.home / "d").mkdir()
    (dweller.home / "d/old").touch()
    dweller.says("rm -rf ~/d; mkdir ~/d; touch ~/d/new")
    assert dweller.says("ls ~/d") == "new\n"
    assert [entry.name for entry in (dweller.home / "d").iterdir()] == ["old"]
    assert os.getxattr(dweller.changes / "d", "user.overlay.opaque") == b"y"


@case("jai-6")
def test_the_next_run_sees_the_changes_and_another_jail_does_not(dweller: Dweller) -> None:
    dweller.says("echo x > ~/.new")
    assert dweller.says("cat ~/.new") == "x\n"
    assert dweller.runs("cat ~/.new", "-j", "other").returncode != 0


@case("jai-7")
def test_removing_all_of_home_loses_only_what_is_in_the_project(dweller: Dweller) -> None:
    (dweller.project / "mine").touch()
    dweller.runs("rm -rf ~/* ~/.profile")
    assert (dweller.home / "outside/victim").read_text() == "untouched"
    assert (dweller.home / ".profile").exists()
    assert list(dweller.project.iterdir()) == []


@case("jai-8")
def test_the_rest_of_the_system_is_read_only(dweller: Dweller) -> None:
    for path in ("/etc/x", "/usr/x", "/var/x", "/run/x"):
        done = dweller.runs(f"touch {path}")
        assert done.returncode != 0, path
        assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr


@case("jai-9")
def test_temporary_directories_are_the_jails_own_and_one(dweller: Dweller) -> None:
    name = f"corral-{os.getpid()}"
    assert dweller.says(f"echo 1 > /tmp/{name}; cat /var/tmp/{name}") == "1\n"
    assert not os.path.exists(f"/tmp/{name}")
    assert not os.path.exists(f"/var/tmp/{name}")
    assert dweller.runs(f"cat /tmp/{name}", "-j", "other").returncode != 0


@case("jai-10")
def test_a_link_in_the_project_leads_to_the_copy(dweller: Dweller) -> None:
    (dweller.project / "l").symlink_to(dweller.home / ".profile")
    dweller.says("echo z >> l")
    assert (dweller.home / ".profile").read_text() == "plain"
    assert (dweller.changes / ".profile").read_text() == "plainz\n"


@case("jai-11")
def test_a_link_in_the_project_to_the_system_cannot_be_written_through(dweller: Dweller) -> None:
    (dweller.project / "l").symlink_to("/etc/hostname")
    assert dweller.runs("echo z >> l").returncode != 0
    assert dweller.says("cat l")


@case("jai-12")
def test_home_and_project_are_two_file_systems(dweller: Dweller) -> None:
    (dweller.home / "file").write_text("content")
    assert "cross-device" in dweller.runs("ln ~/file hl").stderr.lower()
    dweller.says("mv ~/file .")
    assert (dweller.project / "file").read_text() == "content"
    assert (dweller.home / "file").read_text() == "content"
    assert is_whiteout(dweller.changes / "file")


@case("jai-13")
def test_a_directory_of_home_is_moved_by_mv_and_not_by_rename(dweller: Dweller) -> None:
    (dweller.home / "d").mkdir()
    (dweller.home / "d/f").touch()
    rename = "import os; os.rename(os.path.expanduser('~/d'), os.path.expanduser('~/e'))"
    assert "Errno 18" in dweller.types("run", "-m", "casual", "python3", "-c", rename).stderr
    assert dweller.says("mv ~/d ~/e; ls ~/e") == "f\n"
    assert (dweller.home / "d/f").exists()


@case("jai-14")
def test_hard_links_of_home_part_where_one_is_written(dweller: Dweller) -> None:
    (dweller.home / "a").write_text("old\n")
    os.link(dweller.home / "a", dweller.home / "b")
    assert dweller.says("echo new >> ~/a; cat ~/b") == "old\n"
    assert (dweller.home / "a").read_text() == (dweller.home / "b").read_text() == "old\n"


@case("jai-15")
def test_modes_times_and_attributes_of_home_change_only_in_the_copy(dweller: Dweller) -> None:
    before = os.stat(dweller.home / ".profile")
    dweller.says("chmod 700 ~/.profile; touch -d @1 ~/.profile; setfattr -n user.mark -v x ~/.profile")
    after = os.stat(dweller.home / ".profile")
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        *(before.st_mode, before.st_mtime_ns),
        before.st_ctime_ns,
    )
    assert os.listxattr(dweller.home / ".profile") == []
    copy = os.stat(dweller.changes / ".profile")
    assert (stat.S_IMODE(copy.st_mode), copy.st_mtime) == (0o700, 1)


@case("jai-16")
def test_a_hidden_name_can_be_made_anew_inside(dweller: Dweller) -> None:
    assert dweller.runs("ls ~/.ssh").returncode != 0
    dweller.says("mkdir ~/.ssh && echo k > ~/.ssh/config")
    assert dweller.says("cat ~/.ssh/config; ls ~/.ssh") == "k\nconfig\n"
    assert [entry.name for entry in (dweller.home / ".ssh").iterdir()] == ["id_test"]


@case("jai-18")
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_was_copied_before_it_was_hidden_is_hidden_too(dweller: Dweller, kind: str) -> None:
    (dweller.home / "d").mkdir()
    (dweller.home / "d/secret").write_text("secret\n")
    name = "d/secret" if kind == "file" else "d"
    look = "cat ~/d/secret 2>&1 | head -1"
    assert dweller.says(f"echo more >> ~/d/secret; {look}") == "secret\n"
    for _ in range(2):
        assert "secret\n" not in dweller.runs(f"{look}; touch ~/elsewhere", "--mask", name).stdout
    assert dweller.says(look) == "secret\n"
    assert "secret\n" not in dweller.runs(look, "--mask", name).stdout
    assert (dweller.changes / "d/secret").read_text() == "secret\nmore\n"


@case("jai-18", "jai-16")
def test_what_was_made_under_a_hidden_name_is_the_jails_own(dweller: Dweller) -> None:
    (dweller.home / "secret").write_text("secret\n")
    dweller.says("echo own > ~/secret", "--mask", "secret")
    assert dweller.says("cat ~/secret", "--mask", "secret") == "own\n"
    with dweller.starts("echo up; read x; cat ~/secret", "--mask", "secret") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        assert dweller.says("cat ~/secret", "--mask", "secret") == "own\n"
        assert run.communicate("go\n", timeout=20)[0] == "own\n"
