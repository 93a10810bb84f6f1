"""The seal: what was changed outside, during a run and after it, is told apart, and nothing of it is lost."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from cases import case
from changes.field import Field, picture
from changes.test_listing import prepare
from corral.changes import apply, begin, diff, list_changes, marker, seal, sealing, survey
from corral.changes.kept import KEPT
from corral.changes.trees import Tree
from corral.errors import ChangeConflict, Refused

pytestmark = pytest.mark.jail

# What a person does outside, after a program inside did "echo inside > e; rm d/g; echo x > n".
HUMAN = {
    "edits the file": "echo human > e",
    "edits the file and keeps its size and times": "touch -r e t; printf 'CONTENT of e\\n' > e; touch -r t e; rm t",
    "deletes the file": "rm e",
    "puts a directory in its place": "rm e; mkdir e; echo human > e/f",
    "puts a link in its place": "rm e; ln -s d e",
    "edits what was deleted inside": "echo human > d/g",
    "makes what is new inside": "echo human > n",
    "makes a directory of what is new inside": "mkdir n; echo human > n/f",
    "changes the mode of what was deleted inside": "chmod 755 d/g",
    "replaces the directory by a link": "mv d d2; ln -s d2 d",
}
INSIDE = "echo inside > e; rm d/g; echo x > n"


@case("peers-F23")
@pytest.mark.parametrize("what", HUMAN)
def test_what_a_person_did_after_the_run_is_a_conflict_and_stays(field: Field, what: str) -> None:
    prepare(field)
    field.run(INSIDE)
    os.system(f"cd {field.lower} && {HUMAN[what]}")
    before = picture(field.lower)
    conflicts = [change for change in list_changes(field.layers) if change.conflict]
    assert [change.conflict for change in conflicts] == ["after"]
    with pytest.raises(ChangeConflict, match="nothing was applied"):
        apply(field.layers)
    assert picture(field.lower) == before
    assert os.listdir(field.upper), "the inside's version is still there"
    others = [c.path for c in list_changes(field.layers) if not c.conflict]
    apply(field.layers, others)
    assert [change.path for change in list_changes(field.layers)] == [conflicts[0].path]


@pytest.mark.parametrize("what", [what for what in HUMAN if "replaces the directory" not in what])
def test_what_a_person_did_is_kept_aside_when_it_is_overwritten(field: Field, what: str) -> None:
    prepare(field)
    field.run(INSIDE)
    os.system(f"cd {field.lower} && {HUMAN[what]}")
    (conflict,) = [change for change in list_changes(field.layers) if change.conflict]
    place = field.lower / conflict.path
    theirs = field.base / "theirs"
    if place.is_dir() and not place.is_symlink():
        shutil.copytree(place, theirs, symlinks=True)
    elif place.exists() or place.is_symlink():
        shutil.copy2(place, theirs, follow_symlinks=False)
    done = apply(field.layers, overwrite=[conflict.path])
    assert (field.lower / "e").read_text() == "inside\n"
    assert not (field.lower / "d/g").exists()
    assert (field.lower / "n").read_text() == "x\n"
    if theirs.is_symlink() or theirs.exists():
        (aside,) = done.aside
        if theirs.is_dir() and not theirs.is_symlink():
            assert picture(Path(aside), times=False) == picture(theirs, times=False)
        assert os.path.islink(aside) == theirs.is_symlink()
        if theirs.is_file() and not theirs.is_symlink():
            assert Path(aside).read_bytes() == theirs.read_bytes()
    else:
        assert done.aside == []


def test_the_same_change_made_outside_is_no_conflict(field: Field) -> None:
    prepare(field)
    field.run(INSIDE)
    os.system(f"cd {field.lower} && {INSIDE}")
    assert list_changes(field.layers) == []
    apply(field.layers)
    assert list_changes(field.layers) == []


def test_a_file_that_was_only_touched_outside_is_no_conflict(field: Field) -> None:
    prepare(field)
    field.run(INSIDE)
    os.utime(field.lower / "e")
    os.link(field.lower / "d/g", field.lower / "twin")
    assert [change.conflict for change in list_changes(field.layers)] == ["", "", ""]
    apply(field.layers)
    assert (field.lower / "e").read_text() == "inside\n"


def test_a_file_that_came_into_a_directory_deleted_inside_is_not_lost(field: Field) -> None:
    prepare(field)
    field.run("rm -r d")
    field.file("d/by-hand", "a person's\n")
    (change,) = list_changes(field.layers)
    assert change.conflict == "after"
    with pytest.raises(ChangeConflict):
        apply(field.layers)
    assert (field.lower / "d/by-hand").exists()


# ---- during the run ----

DURING = {
    "edits the file": "echo human > e",
    "edits what was deleted inside": "echo human > d/g",
    "replaces the file by rename": "echo human > t; mv t e",
    "makes what is new inside": "echo human > n",
    "removes the file": "rm e",
}


@pytest.mark.parametrize("what", DURING)
def test_what_a_person_did_during_the_run_is_a_conflict(field: Field, what: str) -> None:
    prepare(field)
    field.run(INSIDE, outside=DURING[what])
    conflicts = [change for change in list_changes(field.layers) if change.conflict]
    assert [change.conflict for change in conflicts] == ["during"]
    assert "while the run was under way" in conflicts[0].why
    before = picture(field.lower)
    with pytest.raises(ChangeConflict):
        apply(field.layers)
    assert picture(field.lower) == before


@pytest.mark.parametrize("line", ["mv d d.away; mv d2 d", "mv d d.away"])
def test_a_directory_that_was_exchanged_during_the_run_is_a_conflict(field: Field, line: str) -> None:
    prepare(field)
    field.file("d2/f", "of another directory\n")
    field.run("echo inside >> d/f", outside=line)
    conflicts = {change.path: change.conflict for change in list_changes(field.layers)}
    assert conflicts["d/f"] == "during"


def test_what_was_written_just_before_the_run_is_no_conflict(field: Field) -> None:
    for n in range(20):
        field.file("e", f"{n}\n")
        field.run(f"echo inside {n} > e")
        assert [change.conflict for change in list_changes(field.layers)] == [""]
        apply(field.layers)


def test_a_renamed_file_is_not_taken_for_one_that_was_lost(field: Field) -> None:
    prepare(field)
    field.run("echo x >> e; mv e e2; mv d/f f2")
    assert not any(change.conflict for change in list_changes(field.layers))


def test_a_clock_that_was_set_back_makes_everything_doubtful(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(field)
    held = begin(field.layers)
    field.inside(INSIDE)
    os.close(held)
    # The clock of this machine is not ours to set; what is compared is.
    offset = marker.clock_offset()
    monkeypatch.setattr(marker, "clock_offset", lambda: offset - 3_000_000_000)
    seal(field.layers)
    told = {change.path: change.conflict for change in list_changes(field.layers)}
    assert told == {"e": "doubt", "d/g": "doubt", "n": ""}
    with pytest.raises(ChangeConflict, match="clock was set back"):
        apply(field.layers)
    apply(field.layers, overwrite=["e", "d"])
    assert (field.lower / "e").read_text() == "inside\n"


def test_a_network_file_system_makes_everything_doubtful(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(field)
    monkeypatch.setattr(sealing, "kind_of_file_system", lambda fd: 0x6969)
    field.run(INSIDE)
    assert [change.conflict for change in list_changes(field.layers)] == ["doubt", "doubt", ""]


# ---- runs that nobody sealed ----


def test_a_killed_run_is_sealed_by_the_next_call_which_says_so(field: Field) -> None:
    prepare(field)
    held = begin(field.layers)
    field.inside(INSIDE)
    os.close(held)
    found = survey(field.layers)
    assert found.notes == ["the last run was not sealed (it was killed); it is now"]
    assert [change.path for change in found.changes] == ["d/g", "e", "n"]
    assert survey(field.layers).notes == []


def test_a_killed_run_is_sealed_by_the_next_run(field: Field) -> None:
    prepare(field)
    held = begin(field.layers)
    field.inside(INSIDE)
    os.close(held)
    field.run("echo more > m")
    field.file("e", "human\n")
    told = {change.path: change.conflict for change in list_changes(field.layers)}
    assert told == {"d/g": "", "e": "after", "m": "", "n": ""}


def test_what_was_before_the_first_of_several_runs_stays_the_base(field: Field) -> None:
    prepare(field)
    field.run("echo one > e")
    field.file("e", "human\n")
    field.run("echo two >> e")
    (change,) = list_changes(field.layers)
    assert change.conflict == "after"
    assert b"# -content of e" in b"".join(diff(field.layers))


def test_a_jail_that_holds_changes_to_one_directory_does_not_take_another(
    field: Field, tmp_path: Path
) -> None:
    prepare(field)
    field.run("echo x > e")
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(Refused, match="still holds changes"):
        begin(field.layers.replace(lower=str(other)))


# ---- what is kept ----


def test_small_texts_are_kept_as_base_and_forgotten_with_their_change(field: Field) -> None:
    prepare(field)
    field.file("binary", b"\0" * 100)
    field.file("large", "x\n" * 600_000)
    field.run("echo x >> e; echo x >> binary; echo x >> large")
    kept = os.listdir(field.layers.in_sealed(KEPT))
    (change,) = [change for change in list_changes(field.layers) if change.path == "e"]
    assert change.before is not None
    assert kept == [change.before.digest]
    apply(field.layers)
    assert os.listdir(field.layers.in_sealed(KEPT)) == []


def test_what_the_jail_did_not_see_is_never_applied(field: Field) -> None:
    """A mask hides keys from the jail; a directory of the same name that it made must not replace them."""
    field.file(".ssh/id_ed25519", "key\n")
    field.file("d/secret", "key\n")
    field.file("d/other", "o\n")
    # What a mask makes of it: the name is free, and a directory made there hides the real one.
    field.run("rm -r .ssh; mkdir .ssh; echo mine > .ssh/config; rm -r d", hidden=(".ssh", "d/secret"))
    changes = list_changes(field.layers)
    assert changes
    assert all("hidden from the jail" in change.refused for change in changes)
    done = apply(field.layers, allow_exec=True)
    assert done.applied == []
    assert (field.lower / ".ssh/id_ed25519").read_text() == "key\n"
    assert (field.lower / "d/secret").exists()


def test_a_record_that_cannot_be_read_makes_everything_doubtful(field: Field) -> None:
    prepare(field)
    field.run(INSIDE)
    Path(field.layers.in_sealed(sealing.RECORD)).write_text("{")
    assert [change.conflict for change in list_changes(field.layers)] == ["doubt", "doubt", ""]


def test_sealing_costs_no_second_look_at_what_did_not_change(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.run("for n in 1 2 3 4 5; do echo $n > new$n; done")
    read: list[str] = []
    original = Tree.digest

    def counted(self: Tree, path: str, kind: str) -> str:
        read.append(path)
        return original(self, path, kind)

    monkeypatch.setattr(Tree, "digest", counted)
    field.run("echo x > another")
    assert read == ["another"]


def test_beginning_takes_no_time(field: Field) -> None:
    started = time.perf_counter()
    os.close(begin(field.layers))
    assert time.perf_counter() - started < 0.2
