"""Descriptors that the caller left open."""

from __future__ import annotations

import os
import sys

from corral.selftest.case import must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("", "write through a descriptor that the caller left open")
def leaked_file(given: Given) -> None:
    os.write(given["leaked_file"], b"x")


@must_fail("", "make a file below a directory that the caller left open")
def leaked_directory(given: Given) -> None:
    os.close(os.open("by-descriptor", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=given["leaked_directory"]))


@must_work("use the standard streams")
def standard_streams(given: Given) -> None:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        os.fstat(stream.fileno())
