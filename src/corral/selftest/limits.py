"""Limits that the policy sets."""

from __future__ import annotations

import os

from corral.selftest.case import inside, must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

FILE_SIZE = 64 << 20
OPEN_FILES = 256


@must_fail("", "make a file larger than the limit")
def file_size(given: Given) -> None:
    with open(inside(given, "large"), "wb") as file:
        file.truncate(FILE_SIZE + 1)  # takes no room


@must_fail("", "open more files than the limit")
def open_files(given: Given) -> None:
    opened = []
    try:
        for _ in range(OPEN_FILES + 1):
            opened.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for fd in opened:
            os.close(fd)


@must_work("make a file smaller than the limit")
def smaller(given: Given) -> None:
    with open(inside(given, "smaller"), "wb") as file:
        file.truncate(FILE_SIZE >> 4)
