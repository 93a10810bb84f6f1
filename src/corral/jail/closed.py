"""Closed: why this host gives us no user namespaces, and the narrowest thing that opens them."""

from __future__ import annotations

import os


def namespace_remedy() -> str:
    """By what closes them here."""
    if _number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
        return "an AppArmor profile for this one program: corral doctor --fix apparmor"
    if _number("/proc/sys/user/max_user_namespaces") == 0:
        return "sudo sysctl user.max_user_namespaces=10000"
    if _number("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    if in_chroot():
        return "start corral outside this chroot, or enter it by pivot_root, as containers do"
    if in_container():
        return "start the container with a seccomp profile that permits unshare and mount (--security-opt seccomp=FILE)"
    if os.environ.get("CORRAL"):
        return "this is a jail already; inside it the Landlock tier holds"
    return "ask whoever runs this host why user namespaces are closed; a seccomp profile must permit unshare and mount"


def in_container() -> bool:
    return any(os.path.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv"))


def in_chroot() -> bool:
    """Whether our root is a directory and no mount; the kernel gives no user namespace there."""
    with open("/proc/self/mountinfo", "rb") as file:
        return not any(line.split(b" ")[4] == b"/" for line in file)


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
