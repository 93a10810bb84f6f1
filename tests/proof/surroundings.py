"""Surroundings in which a rung of the ladder is missing, made for real around a program.

Run as a program, this file closes system calls by a seccomp filter and then becomes the command it is given:
``python surroundings.py landlock,namespaces COMMAND …``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

# A mount namespace of its own; who is not root becomes it in a user namespace, as in a rootless container.
PRIVATE_MOUNTS = (
    ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
)

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, EQUAL, ANY_OF, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
IS_X86 = platform.machine() == "x86_64"
CLONE, UNSHARE, CLONE3 = (56, 272, 435) if IS_X86 else (220, 97, 435)
LANDLOCK = (444, 445, 446)
FSCONFIG, FSCONFIG_SET_FD = 431, 5

Instruction = tuple[int, int, int, int]


def refuse(number: int, error: int) -> list[Instruction]:
    return [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | error)]


def refuse_flags(number: int, flags: int, error: int) -> list[Instruction]:
    """If the first argument has one of these bits; it stands at offset 16, the number at 0."""
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, 16),
        (ANY_OF, 0, 1, flags),
        (RETURN, 0, 0, REFUSE | error),
        (RETURN, 0, 0, ALLOW),
    ]


def refuse_second(number: int, value: int, error: int) -> list[Instruction]:
    """If the second argument is this one; it stands at offset 24."""
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, 24),
        (EQUAL, 0, 1, value),
        (RETURN, 0, 0, REFUSE | error),
        (RETURN, 0, 0, ALLOW),
    ]


CLOSED: dict[str, list[Instruction]] = {
    "landlock": [step for number in LANDLOCK for step in refuse(number, errno.ENOSYS)],
    "landlock-eperm": [step for number in LANDLOCK for step in refuse(number, errno.EPERM)],
    "namespaces": [
        *refuse(CLONE3, errno.ENOSYS),
        *refuse_flags(CLONE, CLONE_NEWNS | CLONE_NEWUSER, errno.EPERM),
        *refuse_flags(UNSHARE, CLONE_NEWNS | CLONE_NEWUSER, errno.EPERM),
    ],
    "layers-by-descriptor": refuse_second(FSCONFIG, FSCONFIG_SET_FD, errno.EINVAL),  # as before 6.13
    "nothing": [],
}


def close_calls(*names: str) -> None:
    """For this process and all it starts, for good."""
    steps = [(LOAD, 0, 0, 0), *(step for name in names for step in CLOSED[name]), (RETURN, 0, 0, ALLOW)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, 2, header, 0, 0)):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def without(*names: str) -> list[str]:
    """What to put before a command."""
    return [sys.executable, __file__, ",".join(names)]


if __name__ == "__main__":
    close_calls(*sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
