"""The build hook, tried on a copy of the project whose launcher only exits with 7."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BINARY = Path("src/corral/_launcher/corral-launch")

EXIT_WITH_7 = """
_Noreturn void _start(void) {
    for (;;) {
#if defined(__x86_64__)
        __asm__ volatile("syscall" : : "a"(231L), "D"(7L) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
        register long number __asm__("x8") = 94, status __asm__("x0") = 7;
        __asm__ volatile("svc 0" : : "r"(number), "r"(status) : "memory");
#endif
    }
}
"""

# A stand-in for cross compilers, which CI has not: names its target, and writes only the head of an aarch64 binary.
CLAIMS_ANOTHER_TARGET = """#!/bin/sh
[ "$1" = -dumpmachine ] && echo {target} && exit
echo compiled >>"$0.log"
while [ "$1" != -o ]; do shift; done
printf '\\177ELF\\2\\1\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\2\\0\\267\\0' >"$2"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "launcher").mkdir(parents=True)
    (project / "launcher/start.c").write_text(EXIT_WITH_7)
    for name in ("pyproject.toml", "hatch_build.py", "LICENSE", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, project)
    shutil.copytree(ROOT / "src/bin", project / "src/bin")
    (project / "src/corral/cli").mkdir(parents=True)
    (project / "src/corral/__init__.py").touch()
    (project / "src/corral/cli/__init__.py").write_text("def main() -> int:\n    return 42\n")
    (project / "src/corral/cli/man.py").write_text('def page() -> str:\n    return ".TH"\n')
    return project


def test_the_binary_runs_needs_no_loader_and_no_library(project: Path) -> None:
    build_in_place(project)
    binary = project / BINARY
    assert stat.S_IMODE(binary.stat().st_mode) == 0o755
    assert subprocess.run([binary]).returncode == 7
    # e_type 2: at a fixed address; a PT_INTERP segment would hold the path of a loader.
    content = binary.read_bytes()
    assert content[16] == 2
    assert b"/ld-" not in content


def test_warnings_stop_a_developer_and_not_an_installation(project: Path) -> None:
    (project / "launcher/warns.c").write_text("static int unused(void) { return 0; }\n")
    strict = build_in_place(project, "-Werror")
    assert strict.returncode == 1
    assert "unused" in strict.stderr
    assert not (project / BINARY).exists()
    assert build_in_place(project).returncode == 0


def test_the_wheel_carries_launcher_and_command_with_their_run_bits(project: Path, tmp_path: Path) -> None:
    wheel = build_wheel(project, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        for name in ("corral/_launcher/corral-launch", "corral-0.1.0.data/scripts/corral"):
            assert archive.getinfo(name).external_attr >> 16 & 0o777 == 0o755, name
        assert archive.read("corral-0.1.0.data/data/share/man/man1/corral.1") == b".TH"


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_an_installed_command_and_launcher_run(project: Path, tmp_path: Path, version: str) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", f"wheel:{version}"]
    subprocess.run(build, cwd=project, check=True)
    (wheel,) = (project / "dist").iterdir()
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", f"--python={venv}/bin/python", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, wheel], check=True)
    assert subprocess.run([venv / "bin/corral"], cwd="/").returncode == 42
    find = "import corral; print(corral.__path__[0])"
    package = subprocess.check_output([venv / "bin/python", "-c", find], cwd="/", text=True).strip()
    assert Path(package).is_relative_to(project if version == "editable" else venv)
    assert subprocess.run([f"{package}/_launcher/corral-launch"]).returncode == 7


@pytest.mark.parametrize(
    ("target", "platforms"),
    [
        ("x86_64-linux-gnu", "manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64"),
        ("x86_64-alpine-linux-musl", "manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64"),
        ("aarch64-linux-gnu", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"),
    ],
)
def test_the_wheel_is_tagged_for_what_the_compiler_builds(
    project: Path, tmp_path: Path, target: str, platforms: str
) -> None:
    wheel = build_wheel(project, tmp_path, {"CC": str(stand_in_compiler(tmp_path, target))})
    assert wheel.name == f"corral-0.1.0-py3-none-{platforms}.whl"


def test_macos_gets_a_pure_wheel_without_the_launcher(project: Path, tmp_path: Path) -> None:
    # No Mac here: the builder is real, only the name of the platform is not.
    build = "import hatchling.build, sys; sys.platform = 'darwin'; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=project, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == "corral-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "_launcher" in name]


@pytest.mark.parametrize("target", ["riscv64-linux-gnu", "arm64-apple-darwin23", "x86_64-linux-gnux32"])
def test_a_target_without_a_launcher_is_refused(project: Path, tmp_path: Path, target: str) -> None:
    refused = build_in_place(project, environment={"CC": str(stand_in_compiler(tmp_path, target))})
    assert refused.returncode == 1
    assert target in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_without_a_compiler_the_message_says_what_to_install(project: Path) -> None:
    refused = build_in_place(project, environment={"PATH": "/nonexistent"})
    assert refused.returncode == 1
    for remedy in ("apt install gcc", "dnf install gcc", "apk add gcc", "CC"):
        assert remedy in refused.stderr
    assert "Traceback" not in refused.stderr


def test_only_a_changed_source_or_another_machine_is_compiled_again(project: Path, tmp_path: Path) -> None:
    compiler = stand_in_compiler(tmp_path, "aarch64-linux-gnu")
    log = compiler.with_name(f"{compiler.name}.log")

    def compilations() -> int:
        build_wheel(project, tmp_path, {"CC": str(compiler)})
        return log.read_text().count("\n")

    assert compilations() == 1
    assert compilations() == 1
    (project / "launcher/start.c").touch()
    assert compilations() == 2
    build_in_place(project)
    assert compilations() == (2 if os.uname().machine == "aarch64" else 3)


def test_the_source_distribution_holds_the_sources_of_the_launcher_and_no_binary(project: Path) -> None:
    build_in_place(project)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist"], cwd=project, check=True)
    shutil.unpack_archive(project / "dist/corral-0.1.0.tar.gz", project / "unpacked")
    unpacked = project / "unpacked/corral-0.1.0"
    assert (unpacked / "launcher/start.c").is_file()
    assert not (unpacked / BINARY).exists()
    assert os.access(unpacked / "src/bin/corral", os.X_OK)


def build_in_place(
    project: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "hatch_build.py", *flags]
    return subprocess.run(
        command, cwd=project, env=without_cc(environment or {}), capture_output=True, text=True
    )


def build_wheel(project: Path, tmp_path: Path, environment: Mapping[str, str] | None = None) -> Path:
    wheels = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, f"--wheel-dir={wheels}", project], env=without_cc(environment or {}), check=True
    )
    (wheel,) = wheels.iterdir()
    return wheel


def without_cc(more: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "CC"} | dict(more)


def stand_in_compiler(directory: Path, target: str) -> Path:
    compiler = directory / "compiler"
    compiler.write_text(CLAIMS_ANOTHER_TARGET.format(target=target))
    compiler.chmod(0o755)
    return compiler
