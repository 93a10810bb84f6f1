"""Puts the peers from PyPI and npm into a directory of their own; says of each that could not be, why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PYPI = {"sandlock": "sandlock", "nono-py": "nono-py"}  # contestant: package
NPM = {"srt": "@anthropic-ai/sandbox-runtime", "Codex": "@openai/codex"}
# What a peer calls without bringing it.
NEEDED_PROGRAMS = {"srt": ("node", "bwrap", "socat", "rg"), "Codex": ("bwrap",)}
LONGEST = 300.0


def install(tools: Path) -> dict[str, str]:
    """Contestants that could not be installed, with the reason."""
    absent = _from_pypi(tools / "python") | _from_npm(tools / "node")
    for name, programs in NEEDED_PROGRAMS.items():
        missing = [program for program in programs if not shutil.which(program)]
        if missing and name not in absent:
            absent[name] = f"needs {', '.join(missing)}, which this host lacks"
    subprocess.run(["chmod", "-R", "go-w,a+rX", tools], check=True)
    return absent


def add_to(python: Path, *packages: str) -> str | None:
    """Into the virtual environment of this interpreter, which has no pip of its own. Returns why not."""
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--compile"]
    return _failure([*pip, *packages])


def _from_pypi(directory: Path) -> dict[str, str]:
    base = os.path.realpath(sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", directory], check=True)
    found = {name: add_to(directory / "bin/python", package) for name, package in PYPI.items()}
    return {name: why for name, why in found.items() if why}


def _from_npm(directory: Path) -> dict[str, str]:
    if not shutil.which("npm"):
        return dict.fromkeys(NPM, "npm is not there")
    directory.mkdir()
    (directory / "package.json").write_text("{}\n")  # without one, each package would push out the one before
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]
    absent = {}
    for name, package in NPM.items():
        if why := _failure([*command, str(directory), package]):
            absent[name] = why
    return absent


def _failure(command: list[str]) -> str | None:
    """What it said: npm tells the reason first, pip last."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, cwd="/")
    except subprocess.TimeoutExpired:
        return f"not installed within {LONGEST:.0f} s"
    if not done.returncode:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    told = lines[0 if command[0] == "npm" else -1].strip() if lines else ""
    return f"not installed: {told}" if told else f"not installed: exit code {done.returncode}"
