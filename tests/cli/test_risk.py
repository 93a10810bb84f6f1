"""`corral risk`, as it is typed: in a pipe, on a terminal, with a config, and without the parser."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cases import case

CODE = "import sys; from corral.cli import main; sys.exit(main())"
WITHOUT_PARSER = f"import sys; sys.modules['tree_sitter'] = None\n{CODE}"


class Shell:
    """A person's directory, config and state."""

    def __init__(self, top: Path) -> None:
        self.config = top / "config"
        self.project = top / "project"
        self.config.mkdir()
        self.project.mkdir()
        self.variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(sys.path),
            "PYTHONIOENCODING": "utf-8",
            "HOME": str(top),
            "CORRAL_CONFIG_DIR": str(self.config),
            "CORRAL_STATE_DIR": str(top / "state"),
        }

    def user(self, text: str) -> None:
        (self.config / "corral.toml").write_text(text)

    def run(self, *words: str | bytes, code: str = CODE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "risk", *words],
            capture_output=True,
            text=True,
            cwd=self.project,
            env=self.variables,
            timeout=30,
        )

    def verdict(self, *words: str | bytes) -> dict[str, Any]:
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def error(self, *words: str, exit_code: int = 2, code: str = CODE) -> str:
        done = self.run(*words, code=code)
        assert (done.returncode, done.stdout) == (exit_code, "")
        assert done.stderr.startswith("corral: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("corral: ").rstrip("\n")

    def on_terminal(self, *words: str) -> str:
        ours, theirs = pty.openpty()
        try:
            command = [sys.executable, "-c", CODE, "risk", *words]
            subprocess.run(command, stdout=theirs, cwd=self.project, env=self.variables, timeout=30)
            return os.read(ours, 65536).decode()
        finally:
            os.close(ours)
            os.close(theirs)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("ls -la", "safe"),
        ("cp a b", "caution"),
        ("rm -rf build", "dangerous"),
        ("rm -rf /", "dangerous"),
        ("", "caution"),
    ],
)
def test_in_a_pipe_it_is_one_line_of_json_and_exits_with_0_whatever_the_verdict(
    shell: Shell, command: str, level: str
) -> None:
    verdict = shell.verdict(command)
    assert verdict["level"] == level
    assert verdict["hardline"] == (command == "rm -rf /")
    assert "decision" not in verdict


def test_every_piece_is_named_with_its_own_level(shell: Shell) -> None:
    parts = shell.verdict("git status && rm -rf build > log.txt")["parts"]
    assert [(part["program"], part["level"]) for part in parts] == [
        ("git", "safe"),
        ("rm", "dangerous"),
        ("", "caution"),
    ]


def test_on_a_terminal_it_is_for_people_and_json_if_asked(shell: Shell) -> None:
    text = shell.on_terminal("ls && rm -rf build")
    assert text.startswith("\x1b[31mdangerous\x1b[0m: deletes")
    assert json.loads(shell.on_terminal("--json", "ls"))["level"] == "safe"
    shell.variables["NO_COLOR"] = "1"
    assert shell.on_terminal("ls").startswith("safe: ")


def test_bytes_that_are_no_text_get_an_answer(shell: Shell) -> None:
    assert shell.verdict(b"ls \xff\xfe")["level"]
    assert shell.verdict("--", "-rf")["level"] == "caution"


def test_rows_of_the_user_and_of_the_project_count(shell: Shell) -> None:
    shell.user('[[risk]]\nexact = "rm -rf build"\nlevel = "caution"\nreason = "mine"')
    assert shell.verdict("rm -rf build")["reasons"] == ["mine"]
    (shell.project / "corral.toml").write_text('[[risk]]\nverb = "ls"\nreason = "not here"')
    verdict = shell.verdict("ls")
    assert (verdict["level"], verdict["reasons"]) == ("dangerous", ["not here"])


def test_another_config_and_a_profile_can_be_named(shell: Shell, tmp_path: Path) -> None:
    shell.user('[[profile.strict.risk]]\nverb = "ls"\nreason = "strict"')
    assert shell.verdict("ls")["level"] == "safe"
    assert shell.verdict("--profile", "strict", "ls")["level"] == "dangerous"
    other = tmp_path / "other.toml"
    other.write_text('[[risk]]\nverb = "ls"\nreason = "other"')
    assert shell.verdict(f"--config={other}", "ls")["reasons"] == ["other"]
    assert "no profile 'x'" in shell.error("--profile", "x", "ls")


def test_a_wrong_config_is_one_line_with_its_place(shell: Shell) -> None:
    shell.user('[[risk]]\nverb = "ls"\n')
    assert (
        shell.error("ls") == f"{shell.config}/corral.toml:1: risk row: needs a reason, for whoever is refused"
    )


def test_a_wrong_command_line_says_what_was_meant(shell: Shell) -> None:
    assert shell.error() == "corral risk takes one command line, in a single argument"
    assert shell.error("ls", "-la").endswith("did you mean: corral risk 'ls -la'")
    assert "(did you mean --json?)" in shell.error("--jsn", "ls")
    assert shell.error("--profile") == "--profile needs a value; try --help"
    assert shell.error("--yes", "ls") == "--yes goes with --check"
    assert shell.run("--help").stdout.startswith("usage: corral risk")


def test_without_the_parser_one_line_says_what_to_install(shell: Shell) -> None:
    message = shell.error("ls", exit_code=125, code=WITHOUT_PARSER)
    assert message.endswith("pip install 'corral[risk]'")
    assert shell.run("--help", code=WITHOUT_PARSER).returncode == 0


# ---- would it run? ----


@case("rubino-37")
def test_what_would_be_asked_is_blocked_with_2_where_nobody_is_and_yes_lifts_it_but_no_refusal(
    shell: Shell,
) -> None:
    shell.user('[approval]\ndangerous = "ask"\n[[risk]]\nverb = "curl"\nrefuse = true\nreason = "no network"')
    rows = {"ls": (0, 0), "rm x": (2, 0), "curl x": (125, 125), "rm -rf /": (125, 125)}
    for command, expected in rows.items():
        codes = tuple(shell.run("--check", *yes, command).returncode for yes in ((), ("--yes",)))
        assert codes == expected, command
    decision = json.loads(shell.run("--check", "rm x").stdout)["decision"]
    assert (decision["allowed"], decision["code"]) == (False, "approval_required")
    assert "nobody is there" in decision["error"]


def test_by_default_dangerous_is_refused_with_125_and_the_reason_is_shown(shell: Shell) -> None:
    assert shell.run("--check", "cp a b").returncode == 0
    assert shell.run("--check", "rm x").returncode == 125
    assert "blocked by risk classifier: dangerous — deletes files" in shell.on_terminal("--check", "rm x")
    assert "may run" in shell.on_terminal("--check", "ls")
