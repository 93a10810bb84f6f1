"""A person at the command line: the installed `corral`, in a home of their own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jail.world import World

CORRAL = str(Path(sys.executable).with_name("corral"))
TIMEOUT = 30

Done = subprocess.CompletedProcess[str]


class Person:
    """``project`` is where they work; nothing of their environment is ours. ``before``: what every command is started
    by, that makes its surroundings."""

    before: Sequence[str] = ()

    def __init__(self, world: World, state: Path) -> None:
        self.world = world
        self.project = world.workspace
        self.config = world.home / ".config/corral/corral.toml"
        self.variables = {
            "PATH": f"{Path(CORRAL).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(world.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "CORRAL_STATE_DIR": str(state),
        }

    def configures(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def forgets(self) -> None:
        """What is known of this host counts no more: it is about to be another one."""
        self.variables["CORRAL_STATE_DIR"] = str(self.world.home / ".local/state/corral")

    def types(self, *words: str, **options: Any) -> Done:
        settings = {
            "cwd": self.project,
            "env": self.variables,
            "stdin": subprocess.DEVNULL,
            "timeout": TIMEOUT,
        }
        command = [*self.before, CORRAL, *words]
        return subprocess.run(command, **{**settings, **options}, capture_output=True, text=True)

    def reads(self, *words: str) -> str:
        """What it prints when all is well: nothing on stderr."""
        done = self.types(*words)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def reads_json(self, *words: str) -> Any:
        return json.loads(self.reads(*words))

    def is_refused(self, *words: str, code: int = 2, **options: Any) -> str:
        """One line on stderr, nothing on stdout, that exit code."""
        done = self.types(*words, **options)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert done.stderr.startswith("corral: ")
        assert done.stderr.endswith("\n")
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("corral: ").removesuffix("\n")

    def sees(self, *words: str, before: Sequence[str] = ()) -> tuple[str, str]:
        """What it says on a terminal, and what the command wrote to a pipe."""
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run(
                [*self.before, *before, CORRAL, *words],
                cwd=self.project,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
                timeout=TIMEOUT,
            )
            os.write(theirs, b"\0")
            said = b""
            while not said.endswith(b"\0"):
                said += os.read(ours, 65536)
        finally:
            os.close(ours)
            os.close(theirs)
        return said[:-1].decode(), done.stdout
