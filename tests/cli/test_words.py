"""The command line as a whole: its commands, their help, and that every option is tried somewhere here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import corral
from cli.typed import Person
from corral.cli import COMMANDS
from corral.cli.options import OPTIONS

pytestmark = pytest.mark.jail


def test_every_command_stands_in_the_help_with_what_it_does(person: Person) -> None:
    for words in (["--help"], ["-h"], ["help"]):
        text = person.reads(*words)
        for name, (_, what) in COMMANDS.items():
            assert f"  {name:<12}{what}\n" in text
    assert person.reads("--version") == f"corral {corral.__version__}\n"


def test_no_command_is_the_help_and_2(person: Person) -> None:
    done = person.types()
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("usage: corral COMMAND")


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own_that_fits_a_terminal(
    person: Person, command: str, option: str
) -> None:
    text = person.reads(command, option)
    assert text.startswith(f"usage: corral {command}")
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("command", ["run", "sh", "explain", "why"])
def test_every_option_stands_in_the_help_of_the_commands_that_take_it(person: Person, command: str) -> None:
    text = person.reads(command, "--help")
    for names, operand, what in OPTIONS:
        for name in names:
            assert f"{name}" in text
        assert operand in text
        assert what in text


def test_an_unknown_command_is_2_with_the_nearest_right_one(person: Person) -> None:
    assert person.is_refused("doktor") == "unknown command 'doktor' (did you mean doctor?); try corral --help"
    assert "unknown command 'xyzzy'" in person.is_refused("xyzzy")
    assert "unknown command" in person.is_refused("a\nb\x1b[31m")


def test_nothing_in_a_message_is_obeyed_by_a_terminal(person: Person) -> None:
    for words in (
        ["run", "\x1b[31mred\n"],
        ["run", "--rw", "a\x1b]0;title\x07", "true"],
        ["explain", "--\x9b1"],
    ):
        done = person.types(*words)
        assert done.returncode in (2, 127)
        assert done.stderr.removesuffix("\n").isprintable(), done.stderr


def test_every_option_is_tried_by_a_test_here() -> None:
    me = Path(__file__)
    said = "".join(path.read_text() for path in me.parent.glob("test_*.py") if path != me)
    for names, _, _ in OPTIONS:
        for name in names:
            assert f'"{name}"' in said or f'"{name}=' in said, name


def test_what_a_run_never_needs_is_not_loaded_for_it(person: Person) -> None:
    heavy = (
        "asyncio",
        "argparse",
        "tree_sitter",
        "rich",
        "re",
        "json",
        "subprocess",
        "typing",
        "hashlib",
        "signal",
    )
    package = str(Path(str(corral.__file__)).parents[1])
    code = (
        f"import os, sys; sys.path.insert(0, {package!r}); import corral.cli\n"
        f"os.execve = lambda *_: os._exit(print(*[n for n in {heavy!r} if n in sys.modules], flush=True) or 0)\n"
        "corral.cli.main(['run', '-m', 'workspace-write', '--backend', 'namespaces', 'true'])"
    )
    person.reads(
        "run", "-m", "workspace-write", "--backend", "namespaces", "true"
    )  # this host is known by now
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=person.project,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
