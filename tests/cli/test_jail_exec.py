"""`corral __jail-exec -- ANCHOR GLOB… -- CMD ARGS…`: another program's protocol, with its codes."""

from __future__ import annotations

import os
import subprocess

import pytest

from cases import case
from cli.typed import CORRAL, TIMEOUT, Done, Person
from jail.world import python
from proof.surroundings import without

pytestmark = pytest.mark.jail


def jail_exec(
    person: Person, *words: str, before: tuple[str, ...] = (), status: bool = False
) -> tuple[Done, str]:
    """What came of it, and what the status descriptor was told."""
    if before:
        person.forgets()
    reader, writer = os.pipe()
    option = ["--status-fd", str(writer)] if status else []
    try:
        done = subprocess.run(
            [*before, CORRAL, "__jail-exec", *option, *words],
            cwd=person.project,
            env=person.variables,
            pass_fds=[writer] if status else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        os.close(writer)
        with open(reader, closefd=False) as told:
            return done, told.read()
    finally:
        os.close(reader)


TIERS = pytest.mark.parametrize("before", [(), tuple(without("namespaces"))], ids=["namespaces", "landlock"])

WRONG = {
    "nothing": [],
    "no leading dashes": [".", "out/**", "--", "true"],
    "no second dashes": ["--", ".", "out/**", "true"],
    "no anchor": ["--", "--", "true"],
    "no glob": ["--", ".", "--", "true"],
    "no command": ["--", ".", "out/**", "--"],
    "an option before the dashes": ["-m", "off", "--", ".", "out/**", "--", "true"],
}


@case("tracker-46")
@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_2_and_told(person: Person, what: str) -> None:
    done, told = jail_exec(person, *WRONG[what], status=True)
    assert (done.returncode, done.stdout, told) == (2, "", "code 2\n")
    assert done.stderr.startswith("corral __jail-exec: invalid argv: ")
    assert done.stderr.count("\n") == 1
    assert list(person.project.iterdir()) == []


@case("tracker-47")
@TIERS
def test_a_program_that_is_not_there_or_is_none_is_4_and_told(
    person: Person, before: tuple[str, ...]
) -> None:
    (person.project / "data").write_text("data")
    for program in ("no-such-program", "./no-such-program", "./data", "/etc"):
        words = ["--", str(person.project), "out/**", "--", program]
        done, told = jail_exec(person, *words, before=before, status=True)
        assert (program, done.returncode, done.stdout, told) == (program, 4, "", "code 4\n")


@case("tracker-47")
@TIERS
def test_the_commands_own_code_passes_through_and_is_not_mistaken_for_ours(
    person: Person, before: tuple[str, ...]
) -> None:
    for code in (7, 0, 2, 3, 4):
        words = ["--", str(person.project), "out/**", "--", "sh", "-c", f"exit {code}"]
        assert jail_exec(person, *words, before=before)[0].returncode == code
        done, told = jail_exec(person, *words, before=before, status=True)
        assert (done.returncode, done.stderr) == (code, "")
        assert told.startswith("run\n")
        assert "code" not in told


@TIERS
def test_writes_are_held_by_directory_and_everything_else_is_as_it_was(
    person: Person, before: tuple[str, ...]
) -> None:
    person.variables["SOME_TOKEN"] = "kept"
    script = f'echo x > out/a && ! echo x > b && ! echo x > {person.world.outside}/c && echo "$SOME_TOKEN $1"'
    bounds = ["--", str(person.project), "out/**", "--"]
    done, _ = jail_exec(person, *bounds, "sh", "-c", script, "sh", "--", before=before)
    assert (done.returncode, done.stdout) == (0, "kept --\n")
    assert os.listdir(person.project) == ["out"]
    assert os.listdir(person.world.outside) == ["victim"]


@TIERS
def test_the_command_works_where_its_spawner_does(person: Person, before: tuple[str, ...]) -> None:
    (person.project / "sub").mkdir()
    words = ["--", str(person.project), "out/**", "--", *python("import os; print(os.getcwd())")]
    person.project = person.project / "sub"
    assert jail_exec(person, *words, before=before)[0].stdout == f"{person.project}\n"


@pytest.mark.parametrize(
    "bounds", [["missing", "out/**"], [".", "../**"], [".", "/etc/**"], [".", "a{b,c}/**"]]
)
def test_bounds_that_cannot_be_made_are_4_and_nothing_runs(person: Person, bounds: list[str]) -> None:
    done, told = jail_exec(person, "--", *bounds, "--", "touch", "made", status=True)
    assert (done.returncode, done.stdout, told) == (4, "", "code 4\n")
    assert done.stderr.count("\n") == 1
    assert list(person.project.iterdir()) == []


def test_a_host_that_cannot_hold_it_is_3_and_nothing_runs(person: Person) -> None:
    closed = tuple(without("namespaces", "landlock"))
    words = ["--", str(person.project), "out/**", "--", "touch", "out/made"]
    done, told = jail_exec(person, *words, before=closed, status=True)
    assert (done.returncode, done.stdout, told) == (3, "", "code 3\n")
    assert done.stderr.startswith("corral __jail-exec: landlock_restrict_self: ")
    assert not (person.project / "out/made").exists()


@case("tracker-48")
def test_ordinary_use_is_not_taken_for_it(person: Person) -> None:
    assert person.reads("run", "printf", "%s", "__jail-exec") == "__jail-exec"
    assert person.reads("run", "--", "echo", "--", "a", "--") == "-- a --\n"
    assert "__jail-exec" not in person.reads("--help")
    assert "not found" in person.is_refused("run", "__jail-exec", code=127)
    assert "unknown command 'jail-exec'" in person.is_refused("jail-exec", "--", ".", "a/**", "--", "true")
