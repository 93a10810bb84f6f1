"""Compiles launcher/*.c into one static binary, in the source tree and in the wheel; adds the manual page there.

`python hatch_build.py [COMPILER FLAG ...]` does the first alone and needs nothing but a C compiler. A warning
is an error only where a developer passes -Werror: next year's compilers must still install this release.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    BuildHook = BuildHookInterface[Any]
else:
    try:
        from hatchling.builders.hooks.plugin.interface import BuildHookInterface as BuildHook
    except ModuleNotFoundError:  # run as a script, where no build backend is needed
        BuildHook = object

SOURCES = "launcher"
BINARY = "src/corral/_launcher/corral-launch"
BINARY_IN_WHEEL = "corral/_launcher/corral-launch"
MANUAL = "build/corral.1"
MANUAL_INSTALLED = "share/man/man1/corral.1"

# The launcher links to nothing, so the oldest tag an installer knows for a machine holds on every newer one.
WHEEL_PLATFORMS = {
    "x86_64": "manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64",
    "aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
}
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

FLAGS = [
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-ffreestanding",  # says -fno-builtin too; compilers still call memcpy, memmove, memset and memcmp
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-pic",
    "-no-pie",
    "-Wno-unused-command-line-argument",  # clang, when -static has already said -no-pie
    "-static",
    "-nostdlib",
    "-Wl,--build-id=none,-z,noexecstack,-z,max-page-size=4096,-z,noseparate-code",
    "-s",
]
MACHINE_FLAGS = {
    "x86_64": [],
    "aarch64": ["-mno-outline-atomics"],  # gcc would call libgcc for every atomic operation
}

NO_COMPILER = """\
corral: building the launcher needs a C compiler, and none was found (looked for {looked_for}).
  Debian, Ubuntu:  apt install gcc libc6-dev
  Fedora:          dnf install gcc glibc-devel
  Alpine:          apk add gcc musl-dev linux-headers
or name one in the environment variable CC."""


class LauncherBuildError(Exception):
    """The launcher could not be built; the text is meant for the person who builds."""


def find_compiler() -> list[str]:
    named = os.environ.get("CC", "").strip()
    candidates = [shlex.split(named)] if named else [["cc"], ["gcc"], ["clang"]]
    for candidate in candidates:
        if shutil.which(candidate[0]):
            return candidate
    raise LauncherBuildError(NO_COMPILER.format(looked_for=", ".join(c[0] for c in candidates)))


def target_machine(compiler: list[str]) -> str:
    """The machine a compiler builds for, which for a cross compiler is not the one it runs on."""
    triple = run_compiler([*compiler, "-dumpmachine"]).strip()
    machine = triple.partition("-")[0]
    if machine not in WHEEL_PLATFORMS or "linux" not in triple or triple.endswith("x32"):
        known = " and ".join(WHEEL_PLATFORMS)
        raise LauncherBuildError(
            f"corral: {shlex.join(compiler)} builds for {triple}; the launcher is for Linux on {known}."
        )
    return machine


def compile_launcher(root: Path, compiler: list[str], machine: str, extra_flags: list[str]) -> Path:
    sources = sorted(str(source) for source in (root / SOURCES).glob("*.c"))
    if not sources:
        raise LauncherBuildError(f"corral: there is no C source in {root / SOURCES}.")
    binary = root / BINARY
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = binary.with_name(f".{binary.name}.{os.getpid()}")
    flags = [*FLAGS, *MACHINE_FLAGS[machine], *extra_flags]
    try:
        run_compiler([*compiler, *flags, *sources, "-o", str(unfinished)])
        unfinished.chmod(0o755)
        unfinished.replace(binary)
    finally:
        unfinished.unlink(missing_ok=True)
    return binary


def is_up_to_date(root: Path, machine: str) -> bool:
    binary = root / BINARY
    try:
        built = binary.stat().st_mtime_ns
        header = binary.read_bytes()[:20]
    except FileNotFoundError:
        return False
    inputs = [Path(__file__), *(root / SOURCES).glob("*.[ch]")]
    same_machine = int.from_bytes(header[18:20], "little") == ELF_MACHINES[machine]
    return same_machine and all(path.stat().st_mtime_ns < built for path in inputs)


def run_compiler(command: list[str]) -> str:
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = error.strerror if isinstance(error, OSError) else f"exit status {error.returncode}"
        raise LauncherBuildError(f"corral: the C compiler {command[0]} failed ({why}).") from error
    return done.stdout


def write_manual(root: Path) -> None:
    """By the package itself, from its help texts; it needs nothing but the standard library."""
    code = "import sys; sys.path.insert(0, 'src'); from corral.cli.man import page; "
    code += "sys.stdout.buffer.write(page().encode())"
    page = subprocess.run([sys.executable, "-I", "-c", code], cwd=root, check=True, stdout=subprocess.PIPE)
    (root / MANUAL).parent.mkdir(exist_ok=True)
    (root / MANUAL).write_bytes(page.stdout)


class LauncherHook(BuildHook):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            write_manual(Path(self.root))
            build_data["shared_data"][MANUAL] = MANUAL_INSTALLED
        if sys.platform != "linux":  # other systems bring their own jail: a pure wheel without the launcher
            return
        try:
            machine = self.bring_launcher_up_to_date()
        except LauncherBuildError as error:
            self.app.abort(str(error))
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{WHEEL_PLATFORMS[machine]}"
        build_data["force_include"][BINARY] = BINARY_IN_WHEEL

    def bring_launcher_up_to_date(self) -> str:
        root = Path(self.root)
        compiler = find_compiler()
        machine = target_machine(compiler)
        if not is_up_to_date(root, machine):
            compile_launcher(root, compiler, machine, extra_flags=[])
        return machine


def main(extra_flags: list[str]) -> int:
    try:
        compiler = find_compiler()
        compile_launcher(Path(__file__).parent, compiler, target_machine(compiler), extra_flags)
    except LauncherBuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
