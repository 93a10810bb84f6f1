"""The world that attacks are tried in: a home with keys, a workspace in it, neighbours, and a process outside."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral import LocalEnvironment, Plan, Policy
from corral.jail.spawn import Outcome, Run, Streams
from corral.state import account_home

BACKENDS = ("namespaces", "landlock")

# One that every jail shows: an interpreter in a virtual environment below /tmp or a home may be out of sight.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

SECRET = "the-secret-" + secrets.token_hex(4)


@dataclass(frozen=True)
class World:
    """All of it below one directory in the account's home: /tmp is private in a jail, so what lies there would be
    out of sight instead of fenced."""

    base: Path
    home: Path
    workspace: Path
    outside: Path
    granted: Path

    def environment(self, backend: str, mode: str = "workspace-write", **fields: Any) -> LocalEnvironment:
        policy = Policy(mode=mode, backend=backend, **fields)  # type: ignore[arg-type]
        return LocalEnvironment(self.workspace, policy)


@contextlib.contextmanager
def new_world() -> Iterator[World]:
    """`$HOME` must be set to `world.home` by the caller, before anything of Corral is built."""
    base = Path(tempfile.mkdtemp(prefix="corral-jail-", dir=account_home()))
    world = World(base, base / "home", base / "home/work", base / "home/outside", base / "home/granted")
    try:
        for directory in (world.home, world.workspace, world.outside, world.granted, world.home / ".ssh"):
            directory.mkdir(mode=0o755)
        (world.home / ".ssh/id_test").write_text(SECRET)
        (world.home / ".netrc").write_text(SECRET)
        (world.home / ".profile").write_text("plain")
        (world.outside / "victim").write_text("untouched")
        yield world
    finally:
        remove(base)


def remove(tree: Path) -> None:
    for parent, directories, _ in os.walk(tree):
        for name in directories:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(tree)


def python(source: str, *arguments: str | os.PathLike[str]) -> list[str]:
    """A command: this source, run by an interpreter that starts fast and takes nothing from its surroundings."""
    return [PYTHON, "-I", "-S", "-c", source, *(os.fspath(argument) for argument in arguments)]


def launch(
    plan: Plan, *, stdin: bytes | None = None, deadline: float = 20, environment: dict[str, str] | None = None
) -> Outcome:
    """Carry out a plan as it stands; LaunchRefused if a step of it fails."""
    given = ENVIRONMENT if environment is None else environment
    return Run(plan, plan.encode(), given, Streams(stdin, False, 1 << 20), deadline).finish()


def answers(plan: Plan, **options: Any) -> Any:
    """What a command prints as JSON."""
    outcome = launch(plan, **options)
    text = outcome.stdout.content()
    assert text, f"no answer; status {outcome.wait_status}: {outcome.stderr.content().decode()}"
    return json.loads(text)


def eventually(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


# ---- processes outside, and what is left of a jail ----


def new_mark() -> str:
    """A word to put on a command line, so that all that carry it can be found from outside."""
    return "corral-mark-" + secrets.token_hex(6)


def carrying(mark: str) -> list[int]:
    """Living processes, seen from the host, with the mark on their command line."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and int(pid) != os.getpid():
                found.append(int(pid))
    return found


@contextlib.contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside, of the same user, for attacks to aim at. The last of its arguments is its mark."""
    waits = ["sh", "-c", "read line", new_mark()]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def fingerprint(path: Path) -> tuple[object, ...]:
    """All that an attack on a file could change, its change time included."""
    info = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(info.st_mode) else None
    attributes = tuple(os.listxattr(path, follow_symlinks=False))
    return (
        info.st_mode,
        info.st_uid,
        info.st_nlink,
        info.st_mtime_ns,
        info.st_ctime_ns,
        info.st_ino,
        content,
        attributes,
    )
