"""Mode, owner, times and attributes of files outside."""

from __future__ import annotations

import os

from corral.selftest.case import inside, must_fail, must_work, outside, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("metadata", "change the mode of a file outside")
def mode(given: Given) -> None:
    os.chmod(outside(given, "victim"), 0o777)


@must_fail("metadata", "change the times of a file outside")
def times(given: Given) -> None:
    os.utime(outside(given, "victim"), (1, 1))


@must_fail("metadata", "set the owner of a file outside")
def owner(given: Given) -> None:
    os.chown(outside(given, "victim"), os.getuid(), os.getgid())


@must_fail("metadata", "set an attribute of a file outside")
def attribute(given: Given) -> None:
    os.setxattr(outside(given, "victim"), "user.selftest", b"x")


@must_work("change mode and times in the workspace")
def own_metadata(given: Given) -> None:
    write(inside(given, "own-metadata"))
    os.chmod(inside(given, "own-metadata"), 0o600)
    os.utime(inside(given, "own-metadata"), (1, 1))
