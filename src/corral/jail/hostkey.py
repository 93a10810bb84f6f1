"""All that an answer about this host depends on. When any of it changes, what was found out before does not count."""

from __future__ import annotations

import os

from corral.digest import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SYSCTLS = (
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
)
_digests: dict[tuple[Any, ...], str] = {}


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def launcher_digest(path: str) -> str:
    info = os.stat(path)
    stamp = (path, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    if stamp not in _digests:
        with open(path, "rb") as file:
            _digests[stamp] = digest(file.read())
    return _digests[stamp]


def _seccomp_mode() -> str:
    for line in _read("/proc/self/status").splitlines():
        if line.startswith("Seccomp:"):
            return line.split()[1]
    return ""


def host_key(launcher: str) -> tuple[Any, ...]:
    system = os.uname()
    return (
        1,
        _read("/proc/sys/kernel/random/boot_id"),
        system.release,
        system.version,
        _read("/sys/kernel/security/lsm"),
        launcher_digest(launcher),
        os.getuid(),
        os.getgid(),
        os.stat("/proc/self/ns/user").st_ino,
        os.stat("/proc/self/ns/mnt").st_ino,
        # A foreign filter can close anything; which one it is shows only by whose unit or container we are in.
        _read("/proc/self/cgroup") if (filtered := _seccomp_mode()) == "2" else "",
        filtered,
        *map(_read, _SYSCTLS),
    )
