"""`corral explain`: the plan in words and as JSON. It runs nothing."""

from __future__ import annotations

import os

import pytest

from cli.typed import Person

pytestmark = pytest.mark.jail


def test_it_says_in_words_what_run_would_do_and_does_not_do_it(backend: str, person: Person) -> None:
    person.variables |= {"A_TOKEN": "hush"}
    (person.project / "private").touch()
    words = ["-m", "workspace-write", "--backend", backend, "-d", str(person.world.granted), "--timeout", "9"]
    text = person.reads("explain", *words, "touch", "made")
    for line in (
        "mode         workspace-write",
        f"held by      {backend}",
        f"workspace    {person.project}",
        f"writable     {person.world.granted}",
        f"             {person.project}",
        "network      off",
        "variables    2 removed: A_TOKEN CORRAL_STATE_DIR",
        "limits       wall 9",
        "command    touch made",
    ):
        assert f"\n{line}" in f"\n{text}", line
    assert "hush" not in text
    assert ("hidden       " in text) == (backend == "namespaces")
    assert "not covered  " in text
    assert os.listdir(person.project) == ["private"]


def test_the_json_has_the_same_facts_and_every_step_with_its_reason(backend: str, person: Person) -> None:
    words = ["-m", "read-only", "--backend", backend, "--limit", "cpu=5"]
    facts = person.reads_json("explain", "--json", *words, "echo", "two words")
    assert (facts["mode"], facts["backend"], facts["network"]) == ("read-only", backend, "off")
    assert facts["workspace"] == str(person.project)
    assert facts["writable"] == []
    assert facts["limits"]["cpu"] == 5
    assert facts["argv"] == ["echo", "two words"]
    assert {"writes", "truncate", "tcp", "udp"} <= set(facts["demanded"]) <= set(facts["covered"])
    assert not set(facts["covered"]) & set(facts["not_covered"])
    operations = [step["step"][0] for step in facts["steps"]]
    assert operations[-1] == "seccomp"
    assert "restrict" in operations
    assert all(step["why"] for step in facts["steps"])


def test_the_globs_are_shown_with_the_directory_a_command_is_bound_to(person: Person) -> None:
    words = ["--writable", "out/*.md", "--writable", "src/**"]
    facts = person.reads_json("explain", "--json", *words)
    assert facts["writable_globs"] == {"out/*.md": "out/ and all below it", "src/**": "src/ and all below it"}
    assert "globs        out/*.md → out/ and all below it" in person.reads("explain", *words)


def test_what_is_hidden_is_shown_with_how(person: Person) -> None:
    (person.project / "private").touch()
    facts = person.reads_json("explain", "--json", "--backend", "namespaces", "--hide", "./private")
    netrc = str(person.world.home / ".netrc")
    assert facts["hidden"][netrc] in ("by name", "over-mount")
    assert facts["hidden"][str(person.project / "private")] == "over-mount"
    shown = person.reads_json("explain", "--json", "--backend", "namespaces", "--unhide", ".netrc")
    assert netrc not in shown["hidden"]


def test_mode_off_is_said_plainly(person: Person) -> None:
    text = person.reads("explain", "-m", "off", "true")
    assert "NOT JAILED   the command can do all that you can" in text
    assert person.reads_json("explain", "-m", "off", "--json", "true")["backend"] == "none"


def test_without_a_command_it_is_about_your_shell(person: Person) -> None:
    assert person.reads_json("explain", "--json")["argv"][0].startswith("/")


def test_what_run_refuses_explain_refuses_the_same_way(person: Person) -> None:
    held_by_none = ["-m", "casual", "--backend", "landlock"]
    for words, code in ((["--rw", "missing"], 2), (held_by_none, 125), (["--netwrk", "off"], 2)):
        said = [person.is_refused(command, *words, "true", code=code) for command in ("run", "explain")]
        assert said[0] == said[1]
