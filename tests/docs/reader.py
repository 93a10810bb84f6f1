"""Somebody who types what the pages show: a throw-away home and project, and stubs for what is not here."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

from docs.blocks import Command

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

    def types(self, commands: list[Command], cwd: Path) -> list[tuple[int, str]]:
        """On a terminal, one after the other; exit code and all that was said by each."""
        lines = [line for c in commands for line in (c.line, f'printf "\\n{MARK}%d{MARK}" $?')]
        ours, theirs = pty.openpty()
        words = ["timeout", "50", "bash", "--norc", "-c", "\n".join(lines)]
        shell = subprocess.Popen(
            words, cwd=cwd, env=self.variables, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        said = bytearray()
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
            while piece := os.read(ours, 65536):
                said += piece
        os.close(ours)
        shell.wait()
        parts = said.decode().replace("\r\n", "\n").split(MARK)
        return [(int(parts[at + 1]), parts[at]) for at in range(0, len(parts) - 1, 2)]

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
