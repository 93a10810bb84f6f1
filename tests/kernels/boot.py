"""Run a command on another kernel: boot it under qemu, emulated (no KVM), with Corral in it.

    PYTHONPATH=tests python3 -m kernels.boot [--user] [--append WORDS] [--timeout SECONDS] KERNEL COMMAND

COMMAND is a line for bash, run as root or as uid 1000, with src/corral and kernels.inside in /opt/corral. Its output is
ours and so is its status; 125 means that the guest did not get that far, and the end of its console is shown instead.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from kernels.guest import KERNELS, kernel, root_image

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "src/corral"
MEGABYTES = 1024
TIMEOUT = 400
NOT_RUN = 125


def boot(
    series: str, command: str, *, as_user: bool = False, append: str = "", timeout: float = TIMEOUT
) -> tuple[int, str]:
    """The command's status and its output, both streams together."""
    made = kernel(series)
    with tempfile.TemporaryDirectory(prefix="corral-kernels-") as name:
        job, output = Path(name, "job.tar"), Path(name, "output")
        _pack(job, command, as_user=as_user)
        # Emulated on a busy host, the timer may come too late for the kernel's check of it.
        words = "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on mitigations=off no_timer_check "
        words += append
        machine = [
            *(
                "qemu-system-x86_64",
                "-accel",
                "tcg",
                "-cpu",
                "Nehalem,+rdrand,-cx16",  # qemu 7.2 spoils the flags in that instruction, and the kernel dies of it
                "-smp",
                "1",
                "-m",
                str(MEGABYTES),
            ),
            *(
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
                "-nic",
                "none",
                "-snapshot",
            ),
            *("-kernel", str(made / "vmlinuz"), "-initrd", str(made / "initrd"), "-append", words),
            *("-drive", f"if=virtio,format=raw,file={root_image()}"),
            *("-drive", f"if=virtio,format=raw,file={job}"),
            *("-serial", "stdio", "-serial", f"file:{output}"),
        ]
        console = _console_of(machine, timeout)
        ended = re.search(r"guest: status (\d+)", console)
        if ended is None:
            return NOT_RUN, f"kernel {series} gave no status; the end of its console:\n{console[-4000:]}\n"
        return int(ended[1]), output.read_text(errors="replace")


def _console_of(machine: list[str], timeout: float) -> str:
    try:
        done = subprocess.run(
            machine,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode(errors="replace")
    return done.stdout.decode(errors="replace")


def _pack(job: Path, command: str, *, as_user: bool) -> None:
    def ours(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.endswith("__pycache__") else member

    with tarfile.open(job, "w") as archive:
        archive.add(PACKAGE, "corral/corral", filter=ours)
        for name in ("inside.py", "inside_homes.py"):
            archive.add(HERE / name, f"corral/kernels/{name}")
        for name, text in {"job": command + "\n", **({"as-user": ""} if as_user else {})}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--user", action="store_true", help="run the command as uid 1000, not as root")
    parser.add_argument("--append", default="", metavar="WORDS", help="added to the kernel's command line")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS")
    parser.add_argument("kernel", choices=KERNELS)
    parser.add_argument("command")
    given = parser.parse_args()
    status, output = boot(
        given.kernel, given.command, as_user=given.user, append=given.append, timeout=given.timeout
    )
    print(output, end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
