"""What is said before a run: one line on a terminal, nothing in pipes and with --quiet."""

from __future__ import annotations

import os
import re

import pytest

from cli.typed import Person
from proof.surroundings import without

pytestmark = pytest.mark.jail


def test_on_a_terminal_it_says_how_the_run_is_held(backend: str, person: Person) -> None:
    person.variables |= {"A_TOKEN": "x", "B_PASSWORD": "x"}
    words = [
        "run",
        "-m",
        "workspace-write",
        "--backend",
        backend,
        "-d",
        str(person.world.granted),
        "echo",
        "ran",
    ]
    said, done = person.sees(*words)
    line = said.splitlines()[0]
    assert line.startswith(f"corral: workspace-write ({backend}) · writable: ")
    assert "~/granted, ~/work" in line
    assert " · network off · " in line
    count = re.search(r"(\d+) paths hidden · (\d+) variables removed", line)
    assert count is not None
    assert (int(count[1]) > 0) == (backend == "namespaces")
    assert int(count[2]) >= 2
    assert (done, said.count("\n")) == ("ran\n", 1)


def test_without_a_mode_it_says_why_that_one_was_taken(person: Person) -> None:
    said, _ = person.sees("run", "true")
    if os.getuid() == 0:
        assert said.startswith(
            "corral: workspace-write (namespaces), not casual: mode casual does not run as root;"
        )
    else:
        assert said.startswith("corral: casual (namespaces) · ")
    assert "network open" in said


def test_a_tier_that_was_passed_over_is_named(person: Person) -> None:
    person.forgets()
    said, _ = person.sees("run", "true", before=without("namespaces"))
    assert "(landlock)" in said
    assert "namespaces: Operation not permitted" in said


def test_read_only_has_nothing_writable_to_name(person: Person) -> None:
    said, _ = person.sees("run", "-m", "read-only", "true")
    assert "writable: nothing but a private /tmp" in said


def test_off_is_said_in_capitals(person: Person) -> None:
    said, _ = person.sees("run", "-m", "off", "true")
    assert said == "corral: NOT JAILED: this command can do all that you can\r\n"


@pytest.mark.parametrize("option", ["--quiet", "-q"])
def test_quiet_is_silent_on_a_terminal(person: Person, option: str) -> None:
    assert person.sees("run", option, "echo", "ran") == ("", "ran\n")
    assert person.sees("sh", option, "echo ran") == ("", "ran\n")


def test_pipes_get_nothing_of_ours(backend: str, person: Person) -> None:
    done = person.types("run", "--backend", backend, "sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_a_directory_with_a_hostile_name_is_shown_as_text(person: Person) -> None:
    odd = person.world.home / "a\x1b[31m\nb"
    odd.mkdir()
    said, _ = person.sees("run", "-d", str(odd), "true")
    assert "\x1b" not in said
    assert said.count("\n") == 1
