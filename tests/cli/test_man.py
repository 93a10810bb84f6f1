"""The manual page: whole, clean for roff, and able to be read."""

from __future__ import annotations

import subprocess

from cli.typed import CORRAL
from corral.cli import COMMANDS
from corral.cli.man import escaped
from corral.cli.manual import entries


def test_the_page_has_every_command_and_every_option() -> None:
    page = subprocess.check_output([CORRAL, "man"], text=True)
    for entry in entries():
        assert f".SS corral {entry.name}\n" in page
        for option in entry.options:
            assert all(escaped(name) in page for name in option.names)


def test_no_line_of_text_is_taken_for_a_request() -> None:
    page = subprocess.check_output([CORRAL, "man", "--roff"], text=True)
    requests = {line.split(" ")[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi"}


def test_the_list_of_commands_names_them_all() -> None:
    said = subprocess.check_output([CORRAL, "--help"], text=True)
    for name, (_, text) in COMMANDS.items():
        assert f"  {name:<12}{text}\n" in said


def test_anything_else_is_refused_with_what_there_is() -> None:
    done = subprocess.run([CORRAL, "man", "run"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "corral: corral man does not take run; try --help\n")
