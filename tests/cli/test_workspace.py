"""`corral workspace` and `corral run --workspace`, as a person types them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.typed import Person
from jail.world import new_world
from workspace.desk import new_desk

pytestmark = pytest.mark.jail


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    with new_world() as world:
        monkeypatch.setenv("HOME", str(world.home))
        desk = new_desk(world)
        one = Person(world, world.home / ".local/state/corral")
        one.project = desk.repository
        yield one


def git(person: Person, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=person.project, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_made_run_in_listed_and_removed(person: Person, backend: str) -> None:
    said = person.reads("workspace", "new", "fix")
    assert said.splitlines()[1] == "run in it: corral run --workspace fix -- COMMAND"
    place = Path(said.split(" on ")[0])
    line = "echo more >> file; git commit -qam more; git log -1 --format=%an; pwd"
    assert person.reads("run", "--workspace", "fix", "--backend", backend, "--", "sh", "-c", line) == (
        f"Claude (corral)\n{place}\n"
    )
    assert git(person, "log", "-1", "--format=%s", "corral/fix/work") == "more"
    assert person.reads("workspace", "list").split()[:3] == ["fix", "corral/fix/work", str(place)]
    (row,) = person.reads_json("workspace", "list", "--json")
    assert (row["name"], row["repository"], row["exists"]) == ("fix", str(person.project), True)
    assert "in no other branch" in person.is_refused("workspace", "remove", "fix")
    assert person.reads("workspace", "remove", "--force", "fix").startswith(f"removed {place}")
    assert person.reads("workspace", "list") == ""


def test_exit_codes_signals_and_a_missing_program_are_the_commands(person: Person) -> None:
    person.reads("workspace", "new", "fix")
    assert person.types("run", "--workspace", "fix", "sh", "-c", "exit 7").returncode == 7
    assert person.types("run", "--workspace", "fix", "sh", "-c", "kill -TERM $$").returncode == -15
    assert person.types("run", "--workspace", "fix", "nonesuch").returncode == 127


def test_explain_shows_what_is_writable_and_changes_nothing(person: Person) -> None:
    person.reads("workspace", "new", "fix")
    before = git(person, "count-objects")
    plan = json.loads(person.reads("explain", "--json", "--workspace", "fix", "true"))
    assert git(person, "count-objects") == before
    common = person.project / ".git"
    assert str(common / "refs/heads/corral/fix") in plan["writable"]
    assert str(common) not in plan["writable"]
    assert str(common / "corral/fix/config") in plan["read_only"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("workspace", "nwe"), "did you mean new?"),
        (("workspace", "new"), "takes one name"),
        (("workspace", "new", "a", "b"), "takes one name"),
        (("workspace", "new", "--nonsense", "a"), "--nonsense"),
        (("workspace", "new", "a", "--base"), "--base"),
        (("workspace", "list", "x"), "--json"),
        (("workspace", "remove"), "takes one name"),
        (("workspace", "remove", "x"), "no workspace 'x'"),
        (("run", "--workspace", "x", "true"), "no workspace 'x'"),
        (("run", "--workspace", "x", "--cd", "/", "true"), "--cd"),
    ],
)
def test_a_wrong_word_is_one_line_with_the_right_one(
    person: Person, words: tuple[str, ...], said: str
) -> None:
    assert said in person.is_refused(*words)
