"""`corral init`, `corral trust`, and what config files do to the command line."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from cli.typed import CORRAL, Person
from jail.world import fingerprint

pytestmark = pytest.mark.jail

# ---- init ----


def test_init_writes_a_config_that_changes_nothing_and_only_its_owner_can_read(person: Person) -> None:
    before = person.reads_json("explain", "--json", "true")
    assert (
        person.reads("init") == f"wrote {person.config}; take the first # off a line to change what it says\n"
    )
    assert stat.S_IMODE(person.config.stat().st_mode) == 0o600
    assert stat.S_IMODE(person.config.parent.stat().st_mode) == 0o700
    assert person.config.read_text().startswith("#")
    after = person.reads_json("explain", "--json", "true")
    for facts in (before, after):  # the config directory is there now, and hidden
        del facts["steps"], facts["hidden"]
    assert after == before


def test_init_keeps_a_config_that_is_there_even_a_dangling_link(person: Person) -> None:
    person.configures("# mine\n")
    before = fingerprint(person.config)
    assert person.reads("init").startswith(f"{person.config} is there already; nothing was changed. To see")
    assert fingerprint(person.config) == before
    person.config.unlink()
    person.config.symlink_to(person.world.outside / "not-there")
    assert "nothing was changed" in person.reads("init")
    assert not (person.world.outside / "not-there").exists()


def test_init_takes_no_arguments_and_says_where_it_cannot_write(person: Person) -> None:
    assert (
        person.is_refused("init", "--force") == "corral init takes no arguments; it writes your corral.toml"
    )
    person.variables["CORRAL_CONFIG_DIR"] = "/proc/nowhere"
    assert person.is_refused("init").startswith("/proc/nowhere/corral.toml: ")


# ---- the user's file ----

WRONG = {
    "unknown key": ("netwrok = 'off'", "corral.toml:1: unknown key", "network"),
    "wrong type": ("\nmode = 3", "corral.toml:2: mode", ""),
    "unknown mode": ("mode = 'casul'", "corral.toml:1: ", "casual"),
    "no TOML": ("mode = ", "corral.toml:1: ", ""),
    "no text": ("\udcff\udcfe", "corral.toml", ""),
    "a rule that never matches": (
        "mode = 'read-only'\nwritable = ['out/**']",
        "corral.toml:2: ",
        "read-only",
    ),
}


COMMANDS = [["run", "touch", "made"], ["sh", "touch made"], ["explain"], ["status"], ["doctor"]]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_config_is_one_line_with_its_place_and_nothing_runs(
    person: Person, what: str, command: list[str]
) -> None:
    text, start, hint = WRONG[what]
    person.configures("")
    person.config.write_bytes(text.encode(errors="surrogateescape"))
    message = person.is_refused(*command)
    assert start in message
    assert hint in message
    assert list(person.project.iterdir()) == []


def test_a_config_that_cannot_be_read_is_one_line_too(person: Person) -> None:
    person.configures("")
    person.config.unlink()
    person.config.mkdir()
    assert "corral.toml" in person.is_refused("run", "touch", "made")
    assert list(person.project.iterdir()) == []


def test_what_the_config_says_counts_and_the_command_line_comes_after(backend: str, person: Person) -> None:
    person.configures(f'mode = "read-only"\nbackend = "{backend}"\n')
    assert person.types("run", "touch", "made").returncode == 1
    assert person.types("run", "-m", "workspace-write", "touch", "made").returncode == 0
    facts = person.reads_json("explain", "--json")
    assert (facts["mode"], facts["backend"], facts["network"]) == ("read-only", backend, "off")


# ---- the project's file ----


def theirs(person: Person, text: str) -> None:
    (person.project / "corral.toml").write_text(text)


def test_a_project_may_tighten(backend: str, person: Person) -> None:
    theirs(person, 'writable = ["out/**"]\nnetwork = "off"\n')
    script = "touch out/a && ! touch b"
    assert person.types("sh", "--backend", backend, script).returncode == 0
    assert person.reads_json("explain", "--json")["network"] == "off"
    assert not (person.project / "b").exists()


@pytest.mark.parametrize(
    "text",
    [
        'mode = "off"',
        "require = false",
        "[sandbox]\nrequire = false",
        'rw = ["/etc"]',
        "trust-prefix = true",
        '[environment]\nrules = ["keep GITHUB_TOKEN"]',
        'unhide = [".ssh"]',
        '[limits]\nwall = "unlimited"',
    ],
)
def test_a_project_may_not_loosen(person: Person, text: str) -> None:
    person.configures("[limits]\nwall = 20\n")
    theirs(person, text)
    message = person.is_refused("run", "touch", "made")
    assert message.startswith((f"{person.project}/corral.toml:", "~/work/corral.toml:"))
    assert not (person.project / "made").exists()


def test_where_the_tier_cannot_protect_the_projects_file_a_change_waits_for_a_person(person: Person) -> None:
    person.forgets()
    theirs(person, 'network = "off"\n')
    landlock = ["--backend", "landlock"]
    assert person.types("sh", *landlock, "echo 'network = \"open\"' > corral.toml").returncode == 0
    message = person.is_refused("run", *landlock, "touch", "made")
    assert "corral.toml: changed while a jail that could not protect it was in use" in message
    assert f"corral trust {person.project}" in message or "corral trust ~/work" in message
    assert not (person.project / "made").exists()
    for backend in ("namespaces", "landlock"):
        person.is_refused("explain", "--backend", backend, "true")
    accepted = f"accepted {person.project}/corral.toml as it is now\n"
    assert person.reads("trust") == accepted
    theirs(person, 'network = "off"\n')
    person.is_refused("run", *landlock, "true")
    assert person.reads("trust", str(person.project)) == accepted
    assert person.types("run", *landlock, "touch", "made").returncode == 0


def test_a_file_removed_by_a_jail_waits_for_a_person_too(person: Person) -> None:
    person.forgets()
    theirs(person, 'network = "off"\n')
    assert person.types("run", "--backend", "landlock", "rm", "corral.toml").returncode == 0
    assert "corral.toml: was removed while" in person.is_refused("run", "touch", "made")
    person.reads("trust")
    assert person.types("run", "touch", "made").returncode == 0


def test_where_the_tier_protects_it_nothing_waits(person: Person) -> None:
    person.forgets()
    theirs(person, 'network = "off"\n')
    assert person.types("sh", "--backend", "namespaces", "echo x > corral.toml").returncode != 0
    theirs(person, 'network = "off"\n# edited by a person\n')
    assert person.types("run", "--backend", "namespaces", "true").returncode == 0


def test_trust_takes_one_directory(person: Person) -> None:
    assert (
        person.is_refused("trust", "a", "b")
        == "corral trust takes one directory; without one, it is the one you are in"
    )
    assert "missing" in person.is_refused("trust", "missing")


def test_a_config_inside_a_jail_cannot_be_trusted_by_the_jail(person: Person) -> None:
    """The record lies where no jail writes."""
    person.forgets()
    theirs(person, 'network = "off"\n')
    script = f"echo '# mine' > corral.toml; {CORRAL} trust . ; true"
    done = person.types("sh", "--backend", "landlock", script)
    assert done.returncode == 0
    person.is_refused("run", "--backend", "landlock", "true")


def test_the_config_directory_itself_can_be_the_working_directory(person: Person) -> None:
    person.configures('network = "off"\n')
    done = subprocess.run(
        [CORRAL, "run", "true"],
        cwd=person.config.parent,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "Corral's own" in done.stderr
    assert os.listdir(person.config.parent) == ["corral.toml"]
