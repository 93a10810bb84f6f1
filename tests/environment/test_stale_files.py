"""An environment does not write over what has changed since it was read through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import case
from corral import LocalEnvironment, Policy, StaleFile, Stamps

pytestmark = pytest.mark.jail

CHANGE = "sleep 0.02; echo theirs > f"


@case("jinn-58")
def test_a_change_by_a_command_is_noticed_and_reading_again_is_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    with LocalEnvironment(tmp_path) as env:
        env.read_file("f")
        env.write_file("f", "two")
        env.shell(CHANGE, check=True)
        with pytest.raises(
            StaleFile, match=r"file modified since last read \(.* changed\)\. Re-read"
        ) as caught:
            env.write_file("f", "three")
        assert (caught.value.path, caught.value.grant) == ("f", "read it again")
        assert env.read_file("f") == "theirs\n"
        env.write_file("f", "three")
    assert (tmp_path / "f").read_text() == "three"


@case("jinn-59")
def test_what_was_not_read_or_was_moved_and_removed_through_it_may_be_written(tmp_path: Path) -> None:
    for name in ("f", "g", "unread"):
        (tmp_path / name).write_text("one")
    with LocalEnvironment(tmp_path) as env:
        env.write_file("unread", "x")
        env.read_file("f")
        env.read_file("g")
        env.rename("g", "f")
        env.write_file("f", "two")
        env.remove_file("f")
        env.shell(CHANGE, check=True)
        env.write_file("f", "three")
        env.read_file("f")
        env.add_root(tmp_path)
        env.shell(CHANGE, check=True)
        with pytest.raises(StaleFile):  # a wider environment forgets nothing
            env.write_file("f", "four")


def test_a_change_of_its_mode_alone_is_none_of_a_file_that_was_written(tmp_path: Path) -> None:
    with LocalEnvironment(tmp_path) as env:
        env.write_file("f", "one")
        env.shell("sleep 0.02; chmod 600 f", check=True)
        env.write_file("f", "two")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_it_can_be_somebody_elses_or_nobodys(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    shared = Stamps()
    with LocalEnvironment(tmp_path, stamps=shared) as first:
        first.read_file("f")
        first.shell(CHANGE, check=True)
    with LocalEnvironment(tmp_path, Policy.off(), stamps=shared) as second, pytest.raises(StaleFile):
        second.write_file("f", "two")
    with LocalEnvironment(tmp_path, stamps="off") as third:
        third.read_file("f")
        third.shell(CHANGE, check=True)
        third.write_file("f", "two")


def test_between_two_programs_it_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("one")
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path / "state"))

    def one_shot() -> LocalEnvironment:
        return LocalEnvironment(work, stamps=Stamps.kept_for(str(work), "client"))

    with one_shot() as env:
        env.read_file("f")
    with LocalEnvironment(work, Policy.off()) as other:
        other.shell(CHANGE, check=True)
    with one_shot() as env, pytest.raises(StaleFile):
        env.write_file("f", "two")
    with one_shot() as env:
        env.remove_file("f")
    (work / "f").write_text("new")
    with one_shot() as env:
        env.write_file("f", "two")
