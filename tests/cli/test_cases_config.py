"""Numbered cases: masks, grants taken back, variables, files of commands and jails, scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from cases import case
from cli.typed import Person

pytestmark = pytest.mark.jail

# Home as a copy is not for root.
SHOWN = ("workspace-write",) if os.geteuid() == 0 else ("casual", "workspace-write")
EMPTY = "strict" if os.geteuid() == 0 else "bare"
KEPT = ("PATH", "HOME", "TERM", "LANG")

MASKED = (
    *(".ssh", ".gnupg", ".local/share/keyrings", ".netrc", ".git-credentials", ".aws", ".azure"),
    *(".config/gcloud", ".config/gh", ".config/Keybase", ".config/kube", ".docker", ".password-store"),
    *(".mozilla", ".config/BraveSoftware", ".config/chromium", ".config/google-chrome", ".config/mozilla"),
    *(".bash_history", ".zsh_history", ".config/corral"),
)
FILES = (".netrc", ".git-credentials", ".bash_history", ".zsh_history")
DROPPED = (
    *(
        "X_ACCESS_KEY",
        "X_APIKEY",
        "X_API_KEY",
        "X_AUTH",
        "X_AUTH_TOKEN",
        "X_CONNECTION_STRING",
        "X_CREDENTIAL",
    ),
    *(
        "X_CREDENTIALS",
        "X_PASSWD",
        "X_PASSWORD",
        "X_PID",
        "X_PRIVATE_KEY",
        "X_PWD",
        "X_SECRET",
        "X_SECRET_KEY",
    ),
    *(
        "X_SOCK",
        "X_SOCKET",
        "X_SOCKET_PATH",
        "X_TOKEN",
        "AZURE_CLIENT_ID",
        "AZURE_TENANT_ID",
        "BB_AUTH_STRING",
    ),
    *("DATABASE_URL", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "MAIL", "MONGODB_URI", "MONGO_URI"),
    *("REDIS_URL", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "GITHUB_TOKEN", "SSH_AUTH_SOCK"),
)


@pytest.fixture(params=SHOWN)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def put(person: Person, name: str, text: str = "secret") -> Path:
    path = person.world.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shows(person: Person, mode: str, path: str | Path, *options: str) -> bool:
    """Whether a command can read this; where it cannot, it is not there, or empty where something covers it."""
    done = person.types("run", "-m", mode, "--backend", "namespaces", *options, "cat", str(path))
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "No such file" in done.stderr
    return done.stdout != ""


def variables(person: Person, *options: str) -> dict[str, str]:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    command = ["/usr/bin/python3", "-I", "-S", "-c", code]
    told: dict[str, str] = json.loads(person.reads("run", "--backend", "namespaces", *options, *command))
    return told


def beside_config(person: Person, name: str, text: str) -> Path:
    return put(person, f".config/corral/{name}", text)


# ---- masks ----


def seen(person: Person, mode: str, paths: Iterable[Path], *options: str) -> list[Path]:
    code = "import os, sys; print(*[p for p in sys.argv[1:] if os.path.isfile(p) and open(p).read()])"
    command = ["/usr/bin/python3", "-I", "-S", "-c", code, *map(str, paths)]
    return [
        Path(path)
        for path in person.reads("run", "-m", mode, "--backend", "namespaces", *options, *command).split()
    ]


@case("jai-17")
def test_everything_of_the_known_list_is_not_there_inside(person: Person, mode: str) -> None:
    paths = [put(person, name if name in FILES else f"{name}/inner") for name in MASKED]
    plain = put(person, "plain")
    assert seen(person, mode, (*paths, plain)) == [plain]


@case("jai-17")
def test_what_an_editor_left_beside_it_is_not_there_either(person: Person, mode: str) -> None:
    left = (".netrc~", ".#.netrc", "#.netrc#", "..netrc.swp", ".netrc.swp", ".netrc.bak", ".ssh.bak/id")
    neighbour = put(person, ".netrc-notes")
    assert seen(person, mode, (*(put(person, name) for name in left), neighbour)) == [neighbour]
    copy = person.project / ".env~"
    copy.write_text("x")
    assert seen(person, mode, [copy, neighbour]) == [copy, neighbour]
    assert seen(person, mode, [copy, neighbour], "--mask", "./.env") == [neighbour]


@case("jai-18")
def test_a_mask_counts_at_the_next_run_and_so_does_its_end(person: Person, mode: str) -> None:
    foo = put(person, "foo")
    assert shows(person, mode, foo)
    person.configures('mask = ["foo"]')
    assert not shows(person, mode, foo)
    assert shows(person, mode, foo, "--unmask", "foo")
    assert not shows(person, mode, foo)
    person.configures("")
    assert shows(person, mode, foo)
    assert not shows(person, mode, foo, "--mask", "foo")


@case("jai-19")
def test_a_hidden_directory_is_hidden_whole_and_masks_are_below_home(person: Person, mode: str) -> None:
    child = put(person, "d/child")
    assert not shows(person, mode, child, "--mask", "d")
    refused = {
        ("--mask", "d", "--unmask", "d/child"): "d/child is hidden together with all of /",
        ("--unmask", ".ssh/config"): "hidden together with all of .ssh: --unhide .ssh",
        ("--unmask", ".nmprc"): "nothing hides that (did you mean .npmrc?)",
        ("--mask", "/abs"): "--hide takes a path below home",
        ("--mask", "../x"): "--hide takes a path below home",
        ("--mask", "./../x"): "--hide takes a path below home",
        ("--mask", "."): "--hide takes a path below home",
        ("--mask", ""): "--hide takes a path below home",
    }
    for options, why in refused.items():
        assert why in person.is_refused("run", "-m", mode, *options, "true")


@case("jai-20")
def test_a_file_of_the_workspace_can_be_hidden_and_is_as_it_was(person: Person, mode: str) -> None:
    secret = person.project / ".env"
    secret.write_text("KEY=1")
    (person.project / "plain").write_text("x")
    assert not shows(person, mode, secret, "--mask", "./.env")
    assert shows(person, mode, person.project / "plain", "--mask", "./.env")
    person.types("run", "-m", mode, "--backend", "namespaces", "--mask", "./.env", "sh", "-c", "echo x >.env")
    assert secret.read_text() == "KEY=1"


@case("jai-21")
def test_our_own_places_are_hidden_and_cannot_be_granted(person: Person, mode: str) -> None:
    person.configures("# mine")
    state = person.variables["CORRAL_STATE_DIR"]
    for place in (str(person.config.parent), state):
        listed = person.types("run", "-m", mode, "--backend", "namespaces", "ls", "-A", place)
        assert listed.stdout == ""
        written = person.types(
            *("run", "-m", mode, "--backend", "namespaces", "sh", "-c", f"echo x >{place}/corral.toml")
        )
        assert written.returncode != 0
        for option in ("--rw", "--ro"):
            assert "Corral's own" in person.is_refused("run", "-m", mode, option, place, "true")
    assert person.config.read_text() == "# mine"


# ---- grants ----


@case("jai-33")
def test_a_grant_is_taken_back_from_the_line_and_from_a_file(person: Person, mode: str) -> None:
    granted = str(person.world.granted)

    made = person.world.granted / "made"

    def writes(*options: str) -> bool:
        """Outside: home may be a copy."""
        made.unlink(missing_ok=True)
        person.types("run", "-m", mode, *options, "touch", str(made))
        return made.exists()

    assert writes("-d", granted)
    assert not writes("-d", granted, "-x", granted)
    person.configures(f"rw = [{granted!r}]")
    assert writes()
    assert not writes("-x", granted)
    assert writes("-x", granted, "-d", granted)


# ---- variables ----


@case("jai-56")
def test_secrets_and_handles_are_dropped_and_the_rest_is_there(person: Person) -> None:
    person.variables |= dict.fromkeys(DROPPED, "secret")
    given = variables(person)
    assert not {*DROPPED} & given.keys()
    assert {*KEPT} <= given.keys()


@case("jai-57")
def test_all_dropped_but_one_leaves_that_one_and_ours(person: Person) -> None:
    given = variables(person, "-m", "workspace-write", "--unsetenv", "*", "--setenv", "PATH")
    assert {name for name in given if not name.startswith(("CORRAL", "LC_"))} == {"PATH", "PWD"}


@case("jai-58")
def test_a_name_is_passed_a_pattern_of_the_list_is_lifted_and_no_other_is(person: Person) -> None:
    person.variables |= {"A_PASSWORD": "a", "B_PASSWORD": "b", "A_TOKEN": "t"}
    secrets = {"A_PASSWORD", "B_PASSWORD", "A_TOKEN"}
    assert not secrets & variables(person).keys()
    assert secrets & variables(person, "--setenv", "A_PASSWORD").keys() == {"A_PASSWORD"}
    assert secrets & variables(person, "--setenv", "*_PASSWORD").keys() == {"A_PASSWORD", "B_PASSWORD"}
    assert "a pattern that drops nothing" in person.is_refused("run", "--setenv", "A_*", "true")
    assert "(to set one: NAME=VALUE)" in person.is_refused("run", "--setenv", "A B", "true")


@case("jai-59")
def test_the_last_word_about_a_variable_counts_and_nothing_is_expanded_on_the_line(person: Person) -> None:
    assert "F" not in variables(person, "--setenv", "F=1", "--unsetenv", "F*")
    assert variables(person, "--unsetenv", "F*", "--setenv", "F=1")["F"] == "1"
    person.configures('[environment]\nrules = ["set F=${HOME}/x"]')
    assert variables(person)["F"] == f"{person.world.home}/x"
    assert variables(person, "--setenv", "F=${HOME}")["F"] == "${HOME}"


# ---- files ----


@case("jai-60")
def test_a_command_has_its_file_by_its_name_and_another_file_may_take_its_place(person: Person) -> None:
    beside_config(person, "commands/printenv.toml", '[environment]\nrules = ["set MARK=command"]')
    other = put(person, "other.toml", '[environment]\nrules = ["set MARK=other"]')
    missing = str(person.world.home / "missing.toml")

    def mark(*words: str) -> str:
        return person.types("run", *words, "MARK").stdout.strip()

    assert mark("printenv") == "command"
    assert mark("/usr/bin/printenv") == ""
    assert mark("-C", str(other), "printenv") == "other"
    assert mark("--config", str(other), "/usr/bin/printenv") == "other"
    assert mark("--config-optional", str(other), "printenv") == "other"
    assert mark("--config-optional", missing, "printenv") == "command"
    assert "no such config file" in person.is_refused("run", "-C", missing, "printenv", "MARK")


@case("jai-61")
def test_a_loop_and_a_jail_in_a_jails_file_are_refused_with_their_lines(person: Person) -> None:
    a = beside_config(person, "corral.toml", '\ninclude = ["b.toml"]')
    b = beside_config(person, "b.toml", 'include = ["corral.toml"]')
    assert person.is_refused("run", "true") == f"{b}:1: includes {a}, which leads back here from {a}:2"
    a.unlink()
    jail = beside_config(person, "jails/j.toml", 'jail = "x"')
    for option in ("-j", "--jail"):
        assert person.is_refused("run", option, "j", "true").startswith(f"{jail}:1: jail cannot be set")


@case("jai-62")
def test_the_line_decides_over_the_jail_and_that_over_the_command(person: Person) -> None:
    def mode_of(*options: str) -> str:
        told: str = person.reads_json("explain", "--json", *options, "true")["mode"]
        return told

    beside_config(person, "commands/true.toml", 'mode = "read-only"')
    beside_config(person, "jails/j.toml", 'mode = "workspace-write"')
    assert mode_of() == "read-only"
    assert mode_of("-j", "j") == "workspace-write"
    assert mode_of("-j", "j", "-m", "read-only") == "read-only"


@case("jai-62")
def test_a_named_jail_remembers_the_mode_it_was_made_with(person: Person) -> None:
    def mode_of(*options: str) -> str:
        told: str = person.reads_json("explain", "--json", *options, "true")["mode"]
        return told

    assert mode_of() == mode_of("-j", f"new-{os.getpid()}") == SHOWN[0]
    person.reads("run", "-m", EMPTY, "-j", f"kept-{os.getpid()}", "true")
    assert mode_of("-j", f"kept-{os.getpid()}") == EMPTY
    assert mode_of() == SHOWN[0]


@case("jai-63")
def test_a_wrong_option_is_2_with_a_hint(person: Person) -> None:
    assert "unknown option --jial (did you mean --jail?)" in person.is_refused("run", "--jial", "x", "true")
    assert "unknown mode 'casul'" in person.is_refused("run", "-m", "casul", "true")
    for option in ("--jail", "-j", "--storage", "--script", "--initjail", "--command", "--config-optional"):
        assert f"option {option} needs a value" in person.is_refused("run", option)
    for option in ("--review", "--no-profile", "--desktop"):
        assert f"option {option} takes no value" in person.is_refused("run", f"{option}=x", "true")
    for name in (".x", "a/b", "", "-x"):
        assert "a jail's name is" in person.is_refused("run", f"--jail={name}", "true")


# ---- scripts and what runs the command ----


@case("jai-64")
def test_a_program_is_run_once_outside_in_a_home_that_was_just_made(person: Person) -> None:
    log = person.world.outside / "log"
    setup = put(
        person, "setup.sh", f"#!/bin/sh\npwd >>{log}; echo made >~/seen-outside; echo x >in-home; exit 3\n"
    )
    setup.chmod(0o755)
    line = ["run", "-m", EMPTY, "-j", f"j-{os.getpid()}", "--initjail", str(setup)]
    first = person.types(*line, "cat", str(person.world.home / "in-home"))
    assert (first.returncode, first.stdout) == (0, "x\n"), first.stderr
    assert "3" in first.stderr
    assert person.reads(*line, "cat", str(person.world.home / "in-home")) == "x\n"
    (home,) = log.read_text().splitlines()
    assert Path(home).is_relative_to(person.variables["CORRAL_STATE_DIR"])
    assert (person.world.home / "seen-outside").read_text() == "made\n"


@case("jai-65")
def test_scripts_are_read_in_order_each_once_and_their_functions_are_commands(person: Person) -> None:
    scripts = {
        "one": put(person, "one.sh", "echo one"),
        "two": beside_config(person, "two.sh", "echo two"),
        "three": beside_config(person, "three.sh", 'echo three; greet() { echo hello "$@"; }'),
    }
    person.configures('scripts = ["two.sh"]')
    beside_config(person, "jails/j.toml", 'scripts = ["three.sh", "../two.sh"]'.replace("three", "../three"))
    line = ["run", "-m", "workspace-write", "-j", "j", "--script", str(scripts["one"])]
    assert person.reads(*line, "greet", "you") == "one\ntwo\nthree\nhello you\n"
    left = ["find", "/tmp", "/var/tmp", "-maxdepth", "1", "-type", "f"]
    assert person.reads(*line, *left) == "one\ntwo\nthree\n"
    assert "No such file" in person.is_refused("run", "--script", "missing.sh", "true")


def test_bash_code_may_run_the_command(person: Person) -> None:
    line = ["run", "-m", "workspace-write", "--command", 'echo "before $0"; "$0" "$@"; echo after']
    assert person.reads(*line, "echo", "a b") == "before echo\na b\nafter\n"
    person.configures("command = 'echo from a file'")
    assert person.reads("run", "-m", "workspace-write", "true") == "from a file\n"
    assert person.reads("run", "-m", "workspace-write", "--command", "", "echo", "plain") == "plain\n"
