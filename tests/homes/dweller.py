"""A person whose commands have a home of their own, and what that jail keeps of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from cli.typed import CORRAL, Done, Person
from corral.jail.named import default_name

# The same user in namespaces of their own, with every capability in them until the script is done.
MOUNTING = ["unshare", "--user", "--mount", "--map-current-user", "--keep-caps", "sh", "-ec"]
POWERLESS = "setpriv --inh-caps=-all --ambient-caps=-all --"


def after_mounting(script: str, *arguments: str | Path) -> list[str]:
    """What to put before a command, to start it on a host where this script has mounted something. Its arguments are
    $1 and so on, nine at most."""
    words = [*map(str, arguments), *[""] * (9 - len(arguments))]
    return [*MOUNTING, f'{script}\nshift 9\nexec {POWERLESS} "$@"', "sh", *words]


class Dweller(Person):
    mode = "casual"

    def runs(self, line: str, *options: str, mode: str | None = None, **settings: Any) -> Done:
        return self.types("run", "-m", mode or self.mode, *options, "sh", "-c", line, **settings)

    def says(self, line: str, *options: str, mode: str | None = None, **settings: Any) -> str:
        """What a line prints that ends well and complains of nothing."""
        done = self.runs(line, *options, mode=mode, **settings)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def starts(self, line: str, *options: str, mode: str | None = None) -> subprocess.Popen[str]:
        """A run that is talked to; its caller ends it."""
        command = [*self.before, CORRAL, "run", "-m", mode or self.mode, *options, "sh", "-c", line]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.project, env=self.variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    @property
    def home(self) -> Path:
        return self.world.home

    def jail(self, name: str = "") -> Path:
        """What the jail of this name keeps; by default the project's."""
        return Path(self.variables["CORRAL_STATE_DIR"], "jails", name or default_name(str(self.project)))

    @property
    def changes(self) -> Path:
        return self.jail() / "changes"
