"""The caller's terminal and other terminals."""

from __future__ import annotations

import fcntl
import os
import struct

from corral.selftest.case import must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

TIOCSTI, TIOCLINUX = 0x5412, 0x541C


def asked(request: int, argument: bytes) -> None:
    """A filter refuses before the kernel looks at the descriptor; any other answer means that there is none."""
    try:
        fcntl.ioctl(0, request, argument)
    except PermissionError:
        raise
    except OSError:
        return


@must_fail("terminal-input", "type a character into the terminal")
def typed(given: Given) -> None:
    asked(TIOCSTI, b"x")


@must_fail("terminal-input", "paste into the console")
def pasted(given: Given) -> None:
    asked(TIOCLINUX, struct.pack("B15x", 3))


@must_fail("terminals", "open another terminal of the same user")
def another(given: Given) -> None:
    os.close(os.open(given["terminal"], os.O_RDWR | os.O_NOCTTY))


@must_work("ask for a terminal of one's own")
def own(given: Given) -> None:
    os.close(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
