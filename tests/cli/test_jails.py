"""`corral jails`, `corral down`, and the options that name a jail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.typed import CORRAL, Person
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail


@pytest.fixture(autouse=True)
def _with_a_state_of_their_own(person: Person) -> None:
    person.forgets()


def kept(person: Person, name: str) -> Path:
    return person.world.home / ".local/state/corral/jails" / name


def strict(person: Person, *words: str) -> str:
    """A run in the one mode with a home of its own that everybody may take, root too."""
    return person.reads("run", "-m", "strict", *words)


def test_a_named_jail_is_listed_with_its_mode_its_project_and_its_size(person: Person) -> None:
    assert "no jails yet" in person.reads("jails")
    strict(person, "-j", "one", "sh", "-c", "echo kept > ~/file")
    (row,) = person.reads_json("jails", "--json")
    assert (row["name"], row["mode"], row["directory"]) == ("one", "strict", str(person.world.workspace))
    assert row["bytes"] > 0
    assert row["running"] == []
    assert person.reads("jails").startswith("one ")
    assert (kept(person, "one") / "home/file").read_text() == "kept\n"


def test_a_jail_remembers_its_mode_and_its_home(person: Person) -> None:
    strict(person, "--jail", "one", "sh", "-c", "echo kept > ~/file")
    assert person.reads("run", "-j", "one", "sh", "-c", "cat ~/file; id -u") == "kept\n60999\n"
    assert strict(person, "-j", "other", "sh", "-c", "ls ~/file 2>&1; true") != "kept\n"


def test_jails_in_another_place_are_their_own(person: Person) -> None:
    storage = person.world.home / "elsewhere"
    strict(person, "--storage", str(storage), "-j", "one", "true")
    assert (storage / "one/home").is_dir()
    assert person.reads_json("jails", "--json") == []
    assert [row["name"] for row in person.reads_json("jails", "--json", "--storage", str(storage))] == ["one"]


def test_a_jail_in_use_is_neither_removed_nor_taken_down(person: Person) -> None:
    command = [CORRAL, "run", "-m", "strict", "-j", "busy", "sh", "-c", "echo up; read line"]
    with subprocess.Popen(
        command,
        cwd=person.project,
        env=person.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stdout.readline() == "up\n"
        for words in (["down", "-j", "busy"], ["jails", "rm", "busy"]):
            assert f"in use by pid {run.pid}" in person.is_refused(*words, code=125)
        run.stdin.close()
        assert run.wait(20) == 1
    assert person.reads("down", "-j", "busy") == ""
    assert person.reads("down") == ""
    assert person.reads("jails", "rm", "busy") == "removed busy\n"
    assert not kept(person, "busy").exists()


def test_what_is_set_aside_is_renamed_and_nothing_of_it_lost(person: Person) -> None:
    strict(person, "-j", "one", "true")
    (kept(person, "one") / "changes/old").write_text("old")
    said = person.reads("down", "-j", "one", "--set-aside")
    (moved,) = kept(person, "one").glob("aside-*")
    assert str(moved) in said
    assert (moved / "changes/old").read_text() == "old"
    strict(person, "-j", "one", "true")
    assert not (kept(person, "one") / "changes/old").exists()


def test_wrong_words_are_2_with_the_right_one(person: Person) -> None:
    strict(person, "-j", "one", "true")
    assert "did you mean one?" in person.is_refused("down", "-j", "on")
    assert "a jail's name is one short word" in person.is_refused("run", "-j", "../x", "true")
    assert "a jail's name is one short word" in person.is_refused("run", "-j", ".x", "true")
    assert "--set-aside needs -j" in person.is_refused("down", "--set-aside")
    assert "takes no command" in person.is_refused("down", "true")
    assert "which jail?" in person.is_refused("jails", "rm")
    assert "unknown word 'remove'" in person.is_refused("jails", "remove", "one")
    assert "unknown word 'one'" in person.is_refused("jails", "stale", "one")
    assert "-j is for corral jails stale" in person.is_refused("jails", "rm", "-j", "one")
    assert "did you mean --storage?" in person.is_refused("jails", "--storge", "x")
    assert "unknown option --json" in person.is_refused("down", "--json")
    assert "--set-aside takes no value" in person.is_refused("down", "-j", "one", "--set-aside=no")
    for words in (["jails", "--storage"], ["down", "-j"]):
        assert "needs a value" in person.is_refused(*words)
    assert [row["name"] for row in person.reads_json("jails", "--json")] == ["one"]


def test_what_the_jail_copied_and_the_host_changed_since_is_told(person: Person) -> None:
    skip_unless_host("ordinary-user")
    notes, plain = person.world.home / "notes", person.world.home / ".profile"
    notes.write_text("host\n")
    person.reads("run", "-m", "casual", "-j", "one", "sh", "-c", f"echo jail >> {notes}; echo x > {plain}")
    assert person.reads("jails", "stale") == ""
    notes.write_text("host, changed since\n")
    for words in ([], ["-j", "one"], ["--jail=one"]):
        said = person.reads("jails", "stale", *words)
        assert said.startswith("one: notes: ")
        assert said.count("\n") == 1
    assert person.reads("run", "-m", "casual", "-j", "one", "cat", str(notes)) == "host\njail\n"


def test_what_is_written_under_review_waits_until_it_is_applied(person: Person) -> None:
    (person.project / "old").write_text("old\n")
    line = ["run", "-j", "one", "--review", "sh", "-c", "echo x > made; rm old; ls"]
    assert person.reads(*line) == "made\n"
    assert sorted(entry.name for entry in person.project.iterdir()) == ["old"]
    changes = person.reads("changes", "list", "-j", "one", "--review")
    assert changes == "A made  (2 bytes)\nD old  (4 bytes)\n"
    assert person.types("changes", "apply", "-j", "one", "--review").returncode == 0
    assert sorted(entry.name for entry in person.project.iterdir()) == ["made"]
    assert person.reads("run", "-m", "workspace-write", "sh", "-c", "echo y > direct; ls") == "direct\nmade\n"
    assert (person.project / "direct").exists()
