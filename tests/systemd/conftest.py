"""The testbed, one for all tests, with the package in it; and a run in a jail there, by way of driver.py."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import corral
from hostfacts import skip_unless_host
from systemd.testbed import HOME, Testbed, new_testbed

HERE = Path(__file__).parent
SEED_DIRECTORIES = (".claude", ".local/bin", ".local/share/mise", ".local/share/claude")


class Bed:
    """A testbed that has the package: `jail` runs a command in one and gives back the answer of the driver."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.python_path = str(testbed.directory / "src")
        package = Path(str(corral.__file__)).parent
        shutil.copytree(package, f"{self.python_path}/corral", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "driver.py", self.python_path)
        subprocess.run(["chmod", "-R", "a+rX", self.python_path], check=True)
        self.version = int(testbed.run("systemctl", "--version").stdout.split()[1])
        self.variables = {"PYTHONPATH": self.python_path, "PYTHONDONTWRITEBYTECODE": "1"}
        self.sh("mkdir -p ~/work " + " ".join(f"~/{name}" for name in SEED_DIRECTORIES))
        self.sh("mkdir -p ~/.ssh && echo 'the private key' > ~/.ssh/id && echo plain > ~/plain")

    def lend(self, *modules: str) -> None:
        """Packages of this interpreter, which are not installed for the one in the testbed."""
        for name in modules:
            found = importlib.util.find_spec(name)
            if found is None or found.origin is None:
                continue
            if found.submodule_search_locations:
                source = Path(found.origin).parent
                shutil.copytree(source, f"{self.python_path}/{name}", dirs_exist_ok=True)
            else:
                shutil.copy(found.origin, self.python_path)
        subprocess.run(["chmod", "-R", "a+rX", self.python_path], check=True)

    def sh(self, line: str) -> str:
        """A shell line as the user, not jailed."""
        done = self.testbed.run("bash", "-c", line)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def request(self, command: list[str], **fields: Any) -> str:
        return json.dumps({"command": command, **fields}) + "\n"

    def start(self, command: list[str], variables: dict[str, str] | None = None, **fields: Any) -> Any:
        """The driver under way."""
        given = {**self.variables, **(variables or {})}
        driver = self.testbed.start("/usr/bin/python3", f"{self.python_path}/driver.py", variables=given)
        driver.stdin.write(self.request(command, **fields))  # type: ignore[union-attr]
        driver.stdin.close()  # type: ignore[union-attr]
        return driver

    def jail(
        self, command: list[str], variables: dict[str, str] | None = None, **fields: Any
    ) -> dict[str, Any]:
        given = {**self.variables, **(variables or {})}
        program = ("/usr/bin/python3", f"{self.python_path}/driver.py")
        done = self.testbed.run(*program, variables=given, stdin=self.request(command, **fields))
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(self.testbed.inside(f"{HOME}/answer").read_text())
        return {**found, "terminal": done.stdout, "stderr": done.stderr}

    def script(self, line: str, **fields: Any) -> dict[str, Any]:
        return self.jail(["bash", "-c", line], **fields)

    def python(self, program: str, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A program as the user, not jailed, that has the package."""
        words = ("/usr/bin/python3", "-c", program, *argv)
        return self.testbed.run(*words, variables={**self.variables, **variables})

    def corral(self, *words: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        main = "import os, sys; os.chdir('work'); from corral.cli import main; sys.exit(main())"
        argv = ("/usr/bin/python3", "-c", main, *words)
        return self.testbed.run(*argv, variables={**self.variables, **variables}, stdin=stdin)


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    skip_unless_host("systemd-testbed")
    with new_testbed(log="info") as made:
        yield Bed(made)


@pytest.fixture(scope="session")
def bad_host() -> Callable[[str], Any]:
    """A testbed whose manager is denied this namespace."""
    import contextlib

    @contextlib.contextmanager
    def made(denied: str) -> Iterator[Bed]:
        skip_unless_host("systemd-testbed")
        with new_testbed(deny=(denied,)) as one:
            yield Bed(one)

    return made


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a unit, a canary or anything in its work directory."""
    yield
    if "bed" in request.fixturenames:
        bed: Bed = request.getfixturevalue("bed")
        units = "systemctl --user list-units --all --no-legend --plain 'corral-*'"
        assert bed.sh(f"{units}; ls -A ~ | grep canary; rm -rf ~/work ~/answer && mkdir ~/work") == ""
