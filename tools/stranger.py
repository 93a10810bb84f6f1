"""`make stranger`: a new user on a fresh Debian types what the README says, with a stub as the agent. Prints the time.

What a stranger would have already is made before the clock runs: Debian with the packages that the README names, a
clone of this project, and the packages that pip would fetch. DEBIAN=DIR takes a copy of one
that debootstrap made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release import ROOT, build_source

sys.path.insert(0, str(ROOT / "tests"))

from docs.blocks import Command, blocks_of, commands_of
from docs.reader import Outcome, objection, typed

SUITE = os.environ.get("SUITE", "bookworm")
PACKAGES = "python3,python3-venv,gcc,libc6-dev,make,git"
LONGEST = 300  # seconds: the README promises nothing, this project does
USER = "stranger"
HOME = f"/home/{USER}"

# The root is entered as containers are, by pivot_root: in a chroot the kernel gives no user namespaces.
ENTER = """set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p old
pivot_root . old
cd /
umount -l /old
exec setpriv --reuid=stranger --regid=stranger --clear-groups --inh-caps=-all --bounding-set=-all env -i \
    HOME=/home/stranger USER=stranger LANG=C.UTF-8 TERM=dumb GITHUB_TOKEN=not-for-agents \
    PIP_NO_INDEX=1 PIP_FIND_LINKS=/opt/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/home/stranger/.local/bin:/usr/local/bin:/usr/bin:/bin bash --norc -c "$2"
"""
AGENT = """#!/bin/sh
echo "the agent works" | tee done
echo remembered > ~/.claude/memory
"""


def main() -> int:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("this takes root and debootstrap (apt install debootstrap), and the network")
    with tempfile.TemporaryDirectory(prefix="corral-stranger-", dir="/var/tmp") as scratch:
        target = Path(scratch, "debian")
        make_machine(target, Path(scratch))
        commands = [Command(f"cd {HOME}/corral", ()), *readme(target)]
        shell = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            ENTER,
            "enter",
            str(target),
        ]
        return report(commands, typed(commands, shell))


def make_machine(target: Path, scratch: Path) -> None:
    mirror = [os.environ["MIRROR"]] if "MIRROR" in os.environ else []
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(target), *mirror]
    if "DEBIAN" in os.environ:
        words = ["cp", "--archive", os.environ["DEBIAN"], str(target)]
    with (scratch / "debootstrap.log").open("w") as log:
        if subprocess.run(words, stdout=log, stderr=log).returncode:
            sys.exit(
                f"debootstrap failed; its last words:\n{(scratch / 'debootstrap.log').read_text()[-1000:]}"
            )
    fetch = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--dest",
        str(target / "opt/wheels"),
        "hatchling>=1.27",
    ]
    subprocess.run(fetch, check=True, stderr=subprocess.DEVNULL)
    in_target = ["chroot", str(target)]
    subprocess.run([*in_target, "useradd", "--create-home", "--shell", "/bin/bash", USER], check=True)
    home = target / HOME.lstrip("/")
    source = build_source(ROOT, scratch / "dist")
    shutil.unpack_archive(source, scratch / "unpacked")
    (clone,) = (scratch / "unpacked").iterdir()
    shutil.copytree(clone, home / "corral")
    furnish(home)
    subprocess.run([*in_target, "chown", "-R", f"{USER}:{USER}", HOME], check=True)


def furnish(home: Path) -> None:
    """What somebody has who reads the README: a project, notes, an agent."""
    for name in ("project", "notes", "other", ".config/tool", ".claude", ".local/bin"):
        (home / name).mkdir(parents=True)
    (home / "project/Makefile").write_text("test:\n\ttrue # TODO\n")
    for name, script in (("claude", AGENT), ("npm", "#!/bin/sh\n")):
        (home / ".local/bin" / name).write_text(script)
        (home / ".local/bin" / name).chmod(0o755)


def readme(target: Path) -> list[Command]:
    first, *others = (block for block in blocks_of(ROOT / "README.md") if block.language == "console")
    demo, _the_tests, install, run = commands_of(first)
    found = [demo, install, Command(f"cd {HOME}/project", ()), run]
    for block in others:
        found.append(Command(f"cd {HOME}" if "$ cd " in block.text else f"cd {HOME}/project", ()))
        found += commands_of(block)
    return found


def report(commands: list[Command], outcomes: list[Outcome]) -> int:
    wrong = 0
    for command, outcome in zip(commands, outcomes, strict=False):
        what = objection(command, outcome, HOME)
        wrong += bool(what)
        print(
            f"{outcome.seconds:7.2f} s  $ {command.line}"
            + (f"\n{outcome.said}\n  WRONG: {what}" if what else "")
        )
    if len(outcomes) < len(commands):
        wrong += 1
        print(f"  WRONG: it ended before $ {commands[len(outcomes)].line}")
    total = sum(outcome.seconds for outcome in outcomes)
    print(f"{total:7.2f} s  in all, {wrong} wrong")
    return 1 if wrong or total > LONGEST else 0


if __name__ == "__main__":
    sys.exit(main())
