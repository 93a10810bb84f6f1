"""Debian packages of several suites, through apt with a state of its own: signatures are checked, nothing is installed
on this host, and no privilege is needed."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

# Archive and suite: the guest's own packages, and one for each kernel.
SUITES = (
    ("debian", "bookworm"),
    ("debian-security", "bullseye-security"),
    ("debian", "trixie"),
    ("debian", "trixie-backports"),
)
GUEST_SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_ARE_FRESH_FOR = 24 * 3600.0


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "corral-kernels"


def download(*names: str) -> list[Path]:
    """These packages alone, without what they depend on."""
    archives = cache_directory() / "packages"
    archives.mkdir(parents=True, exist_ok=True)
    _apt("apt-get", "download", "--quiet", *names, cwd=archives)
    return [newest(list(archives.glob(f"{name}_*.deb"))) for name in names]


def download_closure(names: tuple[str, ...]) -> list[Path]:
    """These packages and all they need, as if nothing were installed."""
    command = ("install", "--quiet", "--yes", "--download-only", "--no-install-recommends")
    _apt("apt-get", *command, f"--target-release={GUEST_SUITE}", *names)
    archives = cache_directory() / "apt/cache/archives"
    planned = _apt(
        "apt-get", "install", "--simulate", "--yes", "--no-install-recommends", *names
    ).splitlines()
    wanted = [line.split()[1] for line in planned if line.startswith("Inst ")]
    return [newest(list(archives.glob(f"{name}_*.deb"))) for name in wanted]


def find(pattern: str) -> str:
    """The newest package whose whole name matches."""
    found = [
        line.split()[0] for line in _apt("apt-cache", "search", "--names-only", f"^{pattern}$").splitlines()
    ]
    if not found:
        raise SystemExit(f"no package {pattern} in {', '.join(suite for _, suite in SUITES)}")
    return max(found, key=numbers_in)


def newest(candidates: list[Path]) -> Path:
    return max(candidates, key=lambda path: numbers_in(path.name))


def numbers_in(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _apt(program: str, *words: str, cwd: Path | None = None) -> str:
    top = cache_directory() / "apt"
    _bring_lists_up_to_date(top)
    return _output([program, *_options(top), *words], cwd)


def _output(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} {' '.join(command[-3:])}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def _options(top: Path) -> list[str]:
    settings = {
        "Dir::Etc::sourcelist": top / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": top,
        "Dir::State::lists": top / "lists",
        "Dir::State::status": top / "status",  # empty: nothing is installed
        "Dir::Cache": top / "cache",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Default-Release": GUEST_SUITE,
        "APT::Sandbox::User": "root",  # the cache is ours; there is nobody to change to
        "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false",  # bullseye-security is complete; its index ages
        "DPkg::Lock::Timeout": "120",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _bring_lists_up_to_date(top: Path) -> None:
    stamp = top / "updated"
    if stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_ARE_FRESH_FOR:
        return
    if not os.path.exists(KEYRING):
        raise SystemExit(f"{KEYRING} is missing; apt install debian-archive-keyring")
    for directory in (top / "lists/partial", top / "cache/archives/partial"):
        directory.mkdir(parents=True, exist_ok=True)
    (top / "status").touch()
    mirror = _mirror()
    lines = [f"deb [signed-by={KEYRING}] {mirror}/{archive} {suite} main\n" for archive, suite in SUITES]
    (top / "sources.list").write_text("".join(lines))
    _output(["apt-get", *_options(top), "update", "--quiet", "--error-on=any"])
    stamp.touch()


def _mirror() -> str:
    """The one that this host's apt is set up with, if that is Debian's."""
    targets = _output(["apt-get", "indextargets", "--format", "$(REPO_URI)"]).split()
    mirrors = [
        uri.rstrip("/").removesuffix("/debian") for uri in targets if uri.rstrip("/").endswith("/debian")
    ]
    return mirrors[0] if mirrors else "http://deb.debian.org"
