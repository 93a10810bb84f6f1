"""Links that lead out."""

from __future__ import annotations

import os

from corral.selftest.case import inside, must_fail, must_work, outside, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("writes", "write through a symbolic link to a file outside")
def existing_leaf(given: Given) -> None:
    os.symlink(outside(given, "linked-victim"), inside(given, "to-victim"))
    write(inside(given, "to-victim"), os.O_WRONLY)


@must_fail("writes", "make a file through a symbolic link to nothing outside")
def missing_leaf(given: Given) -> None:
    os.symlink(outside(given, "made-by-link"), inside(given, "to-missing"))
    write(inside(given, "to-missing"), os.O_WRONLY | os.O_CREAT)


@must_fail("writes", "make a file below a symbolic link to a directory outside")
def directory_in_the_middle(given: Given) -> None:
    os.symlink(given["outside"], inside(given, "to-directory"))
    write(inside(given, "to-directory", "made-below-link"))


@must_fail("writes", "make a hard link of a file outside and write to it")
def hard_link(given: Given) -> None:
    os.link(outside(given, "hard-linked"), inside(given, "hard"))
    write(inside(given, "hard"), os.O_WRONLY)


@must_fail("writes", "put a hard link of a file of ours outside")
def hard_link_out(given: Given) -> None:
    write(inside(given, "to-link-out"))
    os.link(inside(given, "to-link-out"), outside(given, "linked-out"))


@must_fail("writes", "put a symbolic link outside")
def symbolic_link_out(given: Given) -> None:
    os.symlink("x", outside(given, "symlinked-out"))


@must_work("make links in the workspace")
def links_inside(given: Given) -> None:
    write(inside(given, "own"))
    os.link(inside(given, "own"), inside(given, "own-hard"))
    os.symlink("own", inside(given, "own-soft"))
    write(inside(given, "own-soft"), os.O_WRONLY)
