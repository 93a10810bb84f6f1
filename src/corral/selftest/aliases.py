"""Other names for a place outside, by way of /proc."""

from __future__ import annotations

import os

from corral.selftest.case import must_fail, must_work, outside, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("writes", "make a file outside by way of /proc/self/root")
def own_root(given: Given) -> None:
    write("/proc/self/root" + outside(given, "by-own-root"))


@must_fail("writes", "make a file outside by way of /proc/self/cwd/..")
def own_directory(given: Given) -> None:
    write(f"/proc/self/cwd/../{os.path.basename(given['outside'])}/by-own-directory")


@must_fail("writes", "make a file outside by way of another process's root")
def root_of_another(given: Given) -> None:
    write(f"/proc/{given['pid']}/root" + outside(given, "by-its-root"))


@must_fail("writes", "make a file outside by way of another process's directory")
def directory_of_another(given: Given) -> None:
    write(f"/proc/{given['bystander']}/cwd/by-its-directory")


@must_work("ask /proc about oneself")
def own_status(given: Given) -> None:
    with open("/proc/self/status") as file:
        file.read()
