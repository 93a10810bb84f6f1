"""Facts about this host that may excuse a test, and the only way for a test to skip itself.

A skip needs an entry in skips.toml, which names one of these facts; conftest.py fails every other skip.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

SKIPS_FILE = Path(__file__).with_name("skips.toml")

# The same numbers on every architecture: all newer than the shared table of Linux 5.1.
SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_CREATE_RULESET_VERSION = 1


def not_root() -> bool:
    return os.geteuid() != 0


def not_initial_root() -> bool:
    """Whether we are not root, or the root of a user namespace only."""
    return os.geteuid() != 0 or Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]


def is_root() -> bool:
    return os.geteuid() == 0


def no_landlock() -> bool:
    return landlock_abi() < 1


def landlock_abi_below_9() -> bool:
    return landlock_abi() < 9


def no_user_namespaces() -> bool:
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return subprocess.run(unshare, stderr=subprocess.DEVNULL).returncode != 0


def no_systemd_testbed() -> bool:
    """Whether namespaces and a tree of control groups for a user manager of our own cannot be made here."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("systemd-run", "dbus-daemon", "nsenter", "setpriv"))):
        return True
    namespaces = ["unshare", "--fork", "--pid", "--mount", "--cgroup", "--ipc", "--uts"]
    trial = ["sh", "-c", "mount -t cgroup2 none /mnt && mount -t proc proc /proc"]
    return subprocess.run([*namespaces, *trial], stderr=subprocess.DEVNULL).returncode != 0


@functools.cache
def no_overlay() -> bool:
    """Whether no writable overlay can be mounted on the directory for temporary files, as in most containers."""
    with tempfile.TemporaryDirectory() as base:
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(f"{base}/{name}")
        mount = "mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work overlay merged"
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        done = subprocess.run([*unshare, "sh", "-c", mount], cwd=base, stderr=subprocess.DEVNULL)
        subprocess.run(["chmod", "-R", "u+rwx", base])
        return done.returncode != 0


def no_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return True
    return False


def own_control_group() -> str:
    """The directory of the group that this process is in, in a tree of version 2; empty if there is none."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    tops = [words[1] for words in mounts if words[2] == "cgroup2"]
    return f"{tops[0]}{own}".rstrip("/") if tops and own is not None else ""


def no_control_groups() -> bool:
    """Whether the running user cannot make a group below its own and move a process there."""
    own = own_control_group()
    return not own or not (os.access(own, os.W_OK) and os.access(f"{own}/cgroup.procs", os.W_OK))


def no_memory_group() -> bool:
    """Whether no group may be made here that counts memory, by looking at the host's own files."""
    own = own_control_group()
    above = os.path.dirname(own)
    try:
        given = Path(above, "cgroup.subtree_control").read_text().split()
        first = not Path(own, "cgroup.type").exists() and Path(own, "cgroup.controllers").read_text().split()
    except OSError:
        return True
    limits = [
        Path(own, name) for name in ("memory.max", "memory.high", "cpu.max") if Path(own, name).exists()
    ]
    free = all(limit.read_text().startswith("max") for limit in limits)
    beside = (
        free
        and "memory" in given
        and os.access(above, os.W_OK)
        and os.access(f"{above}/cgroup.procs", os.W_OK)
    )
    return not (beside or (first and "memory" in first and not no_control_groups()))


def not_x86_64() -> bool:
    return platform.machine() != "x86_64"


def no_cross_compiler() -> bool:
    return shutil.which("aarch64-linux-gnu-gcc") is None


def no_block_device() -> bool:
    return block_device() is None


def block_device() -> Path | None:
    """One that the running user can open."""
    for path in Path("/dev").iterdir():
        if stat.S_ISBLK(path.lstat().st_mode):
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                return path
    return None


def no_casefold() -> bool:
    """ext4 on a loop device, with a kernel that folds names and the programs to make one."""
    return not (Path("/sys/fs/ext4/features/casefold").exists() and _can_make_images("ext4", "chattr"))


def no_vfat() -> bool:
    return not _can_make_images("vfat")


def _can_make_images(kind: str, *programs: str) -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    known = Path("/proc/filesystems").read_text().split()
    needed = (f"mkfs.{kind}", "mount", *programs)
    return (
        kind in known
        and Path("/dev/loop-control").exists()
        and all(shutil.which(p, path=path) for p in needed)
    )


def no_fuse() -> bool:
    return not (
        os.access("/dev/fuse", os.R_OK | os.W_OK) and "fuse" in Path("/proc/filesystems").read_text().split()
    )


def landlock_abi() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION))


# Programs that a small Debian lacks, and that only single tests need. The fact is called no_PROGRAM.
OPTIONAL_PROGRAMS = ("node", "ruby", "rsync", "curl", "wget", "ssh", "tmux", "zsh", "fish", "npm", "pnpm")


def missing(program: str) -> Callable[[], bool]:
    return lambda: shutil.which(program) is None


FACTS: dict[str, Callable[[], bool]] = {
    **{f"no_{program}": missing(program) for program in OPTIONAL_PROGRAMS},
    **{
        fact.__name__: fact
        for fact in (
            not_root,
            not_initial_root,
            is_root,
            no_landlock,
            landlock_abi_below_9,
            no_user_namespaces,
            no_systemd_testbed,
            no_ipv6,
            no_overlay,
            no_control_groups,
            no_memory_group,
            no_block_device,
            no_casefold,
            no_vfat,
            no_fuse,
            not_x86_64,
            no_cross_compiler,
        )
    },
}


def skip_unless_host(skip_id: str) -> None:
    """Skip the running test if the host fact of that entry in skips.toml holds here."""
    entry = listed_skips()[skip_id]
    if FACTS[entry["fact"]]():
        pytest.skip(f"[{skip_id}] {entry['reason']}")


def objection_to_skip(reason: str) -> str | None:
    """Why a skip with that reason is not allowed, or None if it is."""
    skip_id = re.match(r"(?:Skipped: )?\[([\w-]+)\]", reason)
    if skip_id is None:
        return f"only skip_unless_host may skip a test; this one skipped with: {reason}"
    entry = listed_skips().get(skip_id[1])
    if entry is None:
        return f"the skip {skip_id[1]!r} does not stand in {SKIPS_FILE.name}"
    if not FACTS[entry["fact"]]():
        return f"the skip {skip_id[1]!r} needs the host fact {entry['fact']!r}, which is false here"
    return None


def listed_skips() -> dict[str, dict[str, str]]:
    with SKIPS_FILE.open("rb") as file:
        return tomllib.load(file)
