"""`make release`: the source distribution, and from it the wheels, in dist/; the one for this machine is tried.

A wheel is made from the unpacked source distribution and never from the checkout, so that both hold the same. aarch64
takes a cross compiler (Debian: gcc-aarch64-linux-gnu) or a machine of that kind.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The compiler for each machine that wheels are made for, where it is not this one.
CROSS_COMPILERS = {"x86_64": "x86_64-linux-gnu-gcc", "aarch64": "aarch64-linux-gnu-gcc"}


def main() -> int:
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    source = build_source(ROOT, dist)
    print(source.name)
    for machine, compiler in CROSS_COMPILERS.items():
        if machine != platform.machine() and shutil.which(compiler) is None:
            print(f"no wheel for {machine}: {compiler} is not installed", file=sys.stderr)
            continue
        wheel = build_wheel(source, dist, machine)
        print(wheel.name)
        if machine == platform.machine():
            print(try_wheel(wheel).splitlines()[-1])
    return 0


def build_source(project: Path, dist: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", dist], cwd=project, check=True
    )
    (source,) = dist.glob("*.tar.gz")
    return source


def build_wheel(source: Path, dist: Path, machine: str) -> Path:
    variables = dict(os.environ)
    if machine != platform.machine():
        variables["CC"] = CROSS_COMPILERS[machine]
    with tempfile.TemporaryDirectory() as scratch:
        shutil.unpack_archive(source, scratch)
        (project,) = Path(scratch).iterdir()
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
        subprocess.run(build, cwd=project, env=variables, check=True)
    (wheel,) = dist.glob(f"*{machine}*.whl")
    return wheel


def try_wheel(wheel: Path) -> str:
    """Install it where there is no compiler and nothing to fetch from, and ask the doctor; what that says."""
    # Not below /tmp or /var/tmp, which a jail has its own of.
    with tempfile.TemporaryDirectory(prefix="corral-release-", dir=Path.home()) as scratch:
        venv = Path(scratch, "venv")
        home = Path(scratch, "home")
        project = home / "project"
        project.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        variables = {
            "PATH": f"{venv}/bin:{_without_compilers(Path(scratch))}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
        }
        pip = [sys.executable, "-m", "pip", f"--python={venv}/bin/python", "install", "--quiet", "--no-index"]
        subprocess.run([*pip, wheel], env=variables, check=True)

        def says(*words: str) -> str:
            done = subprocess.run(
                ["corral", *words], cwd=project, env=variables, stdout=subprocess.PIPE, text=True, check=True
            )
            return done.stdout

        assert says("sh", "-m", "workspace-write", "echo held").endswith("held\n")
        assert (venv / "share/man/man1/corral.1").read_text() == says("man")
        return says("doctor")


def _without_compilers(scratch: Path) -> Path:
    """A directory for PATH with the few programs that are needed, and none that compiles."""
    programs = scratch / "programs"
    programs.mkdir()
    for name in ("sh", "bash", "true"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return programs


if __name__ == "__main__":
    sys.exit(main())
