"""What an earlier run left where the next one, or the host, comes by: links, FIFOs, bottomless directories."""

from __future__ import annotations

import os
import shlex

import pytest

from homes.dweller import Dweller
from jail.world import PYTHON, SECRET

pytestmark = pytest.mark.jail

# A tree that no path leads to the end of, a file larger than all disks, and names that talk to a terminal.
LITTER = """
import os
os.mkfifo("fifo")
os.symlink("/etc/passwd", "link")
open("huge", "w").truncate(1 << 40)
open("new\\nline\\x1b]0;title\\x07", "w").write("text")
open("plain", "w").write("text")
for _ in range(60):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
"""


def test_a_grant_does_not_follow_a_link_that_a_run_planted(anybody: Dweller, mode: str) -> None:
    assert (
        anybody.runs(f"ln -s {anybody.home}/.ssh data; mkdir real; ln -s real alias", mode=mode).returncode
        == 0
    )
    for option in ("--ro", "--rw", "--rw-create"):
        said = anybody.is_refused("run", "-m", mode, option, "data", "cat", "data/id_test")
        assert f"{anybody.home}/.ssh" in said
        assert SECRET not in said
    # One that stays inside is a grant as any other.
    assert anybody.runs("! touch real/new 2>/dev/null", "--ro", "alias", mode=mode).returncode == 0


def test_a_link_on_the_way_to_a_mount_point_is_refused_and_nothing_is_made_behind_it(
    anybody: Dweller,
) -> None:
    anybody.project = anybody.home / "above/project"
    anybody.project.mkdir(parents=True)
    victim = anybody.world.outside
    planted = anybody.runs(f"cd; mv above away; ln -s {victim} above", mode="strict")
    assert planted.returncode == 0, planted.stderr
    assert anybody.runs("true", mode="strict").returncode in (2, 125)
    assert os.listdir(victim) == ["victim"]
    assert anybody.runs("true", "-j", "another", mode="strict").returncode == 0


def test_a_fifo_where_a_file_is_to_be_mounted_keeps_nobody_waiting(anybody: Dweller) -> None:
    anybody.project = anybody.home / "above/project"
    anybody.project.mkdir(parents=True)
    granted = anybody.home / "above/file"
    granted.write_text("granted")
    plant = "cd; mv above away; mkdir -p above/project; mkfifo above/file"
    assert anybody.runs(plant, "--ro", str(granted), mode="strict").returncode == 0
    assert anybody.says(f"cat {granted}", "--ro", str(granted), mode="strict") == "granted"


def test_a_home_closed_to_its_owner_is_open_to_the_next_run(dweller: Dweller) -> None:
    assert dweller.says("mkdir ~/d; touch ~/d/f; chmod 000 ~/d ~") == ""
    assert dweller.says("touch ~/again; echo fine") == "fine\n"
    assert "again" in dweller.reads("changes")
    assert dweller.says("true") == ""  # changes nothing, and has closed directories to look through


def test_litter_in_a_reviewed_workspace_is_listed_told_and_thrown_away(anybody: Dweller) -> None:
    command = f"mkdir litter; cd litter; {PYTHON} -I -c {shlex.quote(LITTER)}"
    assert anybody.says(command, "--review", mode="workspace-write") == ""
    listed = anybody.reads("changes", "--review")
    assert "litter/plain" in listed
    assert "\x1b" not in listed
    assert "1099511627776 bytes" in listed
    assert "large litter/huge" in anybody.reads("changes", "diff", "--review", "litter/huge", "litter/plain")
    assert not (anybody.project / "litter").exists()
    anybody.reads("changes", "apply", "--review", "litter/plain", "litter/link")
    assert (anybody.project / "litter/plain").read_text() == "text"
    assert os.readlink(anybody.project / "litter/link") == "/etc/passwd"
    anybody.reads("changes", "discard", "--review")
    assert os.listdir(anybody.jail() / "review/changes") == []
