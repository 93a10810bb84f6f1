"""Somebody who types what the pages show: a throw-away home and project, and stubs for what is not here."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from docs.blocks import Command, missing_line

BIN = Path(sys.executable).parent
# Each only says that it ran: what is tried is Corral around it.
STUBS = ("claude", "codex", "npm", "redis-server", "redis-cli", "pytest")
AGENT = """#!/bin/sh
mkdir -p ~/.agent/cache && touch ~/.agent/login.json ~/.agent/settings.toml ~/.agent/cache/index
"""
FILES = {
    "Makefile": "test:\n\techo tested > result\nrelease watch:\n\ttrue\n",
    "README.md": "A project.\n",
    "src/main.py": "print('TODO')\n",
    "out/.keep": "",
    "agent": AGENT,
}
CONFIG = """[profile.look]
mode = "read-only"
[profile.release]
mode = "workspace-write"
network = "open"
"""
MARK = "\x1e"


class Outcome(NamedTuple):
    code: int
    said: str
    seconds: float


def typed(commands: list[Command], shell: list[str], **where: Any) -> list[Outcome]:
    """On a terminal, one after the other, into one shell, which takes its script as one more word."""
    mark = f'printf "\\n{MARK}%d {MARK}" $?; printf "$EPOCHREALTIME{MARK}"'
    script = "\n".join(
        [f'printf "$EPOCHREALTIME{MARK}"', *(f"{command.line}\n{mark}" for command in commands)]
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*shell, script], **where, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = bytearray()
    with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
        while piece := os.read(ours, 65536):
            said += piece
    os.close(ours)
    process.wait()
    start, *parts = said.decode().replace("\r\n", "\n").split(MARK)
    outcomes = []
    for text, code, end in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        outcomes.append(Outcome(int(code), text, float(end) - float(start)))
        start = end
    return outcomes


def objection(command: Command, outcome: Outcome, home: str) -> str:
    """Why this is not what the page shows; empty if it is. A command below which something is shown may fail."""
    if "Traceback" in outcome.said:
        return "a traceback"
    if outcome.code and not command.shown:
        return f"exit code {outcome.code}"
    missing = missing_line(command.shown, outcome.said, home)
    return f"not said: {missing}" if missing else ""


class Reader:
    def __init__(self, home: Path, state: Path) -> None:
        self.home = home
        self.project = home / "project"
        self.variables = {
            "PATH": f"{home / '.local/bin'}:{BIN}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "GITHUB_TOKEN": "not-for-agents",
            "CORRAL_STATE_DIR": str(state),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_PAGER": "cat",
        }
        for name, content in FILES.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (self.project / "agent").chmod(0o755)
        for name in ("other", "notes"):
            (home / name).mkdir()
        for name in (".config/corral", ".config/tool", ".config/gh", ".claude", ".codex", ".local/bin"):
            (home / name).mkdir(parents=True)
        (home / ".config/corral/corral.toml").write_text(CONFIG)
        for name in (".bashrc", "b.bin"):
            (home / name).touch()
        for name in STUBS:
            stub = home / ".local/bin" / name
            stub.write_text(f"#!/bin/sh\necho {name} ran\n")
            stub.chmod(0o755)
        self._makes_a_repository()

    def _makes_a_repository(self) -> None:
        who = ["-c", "user.name=You", "-c", "user.email=you@example.com", "-c", "init.defaultBranch=main"]
        for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "Start"]):
            subprocess.run(["git", *who, *words], cwd=self.project, env=self.variables, check=True)

    def types(self, commands: list[Command], cwd: Path) -> list[Outcome]:
        return typed(commands, ["timeout", "50", "bash", "--norc", "-c"], cwd=cwd, env=self.variables)

    def runs_python(self, script: str) -> subprocess.CompletedProcess[str]:
        runner = Path(__file__).with_name("run_block.py")
        return subprocess.run(
            [sys.executable, runner],
            input=script,
            cwd=self.home,
            env={
                **self.variables,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if "/src" in path),
            },
            capture_output=True,
            text=True,
            timeout=50,
        )
