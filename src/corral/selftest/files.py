"""Files outside the writable places: every call that changes one."""

from __future__ import annotations

import os
import shutil

from corral.selftest.case import checked, inside, libc, must_fail, must_work, outside, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

RENAME_EXCHANGE = 2
AT_FDCWD = -100


@must_fail("writes", "make a file outside")
def create(given: Given) -> None:
    write(outside(given, "new"))


@must_fail("writes", "write into a file outside")
def overwrite(given: Given) -> None:
    write(outside(given, "victim"), os.O_WRONLY)


@must_fail("writes", "append to a file outside")
def append(given: Given) -> None:
    write(outside(given, "victim"), os.O_WRONLY | os.O_APPEND)


@must_fail("truncate", "cut a file outside to nothing")
def truncate(given: Given) -> None:
    os.truncate(outside(given, "full"), 0)


@must_fail("writes", "make a directory outside")
def make_directory(given: Given) -> None:
    os.mkdir(outside(given, "newdir"))


@must_fail("writes", "make a FIFO outside")
def make_fifo(given: Given) -> None:
    os.mkfifo(outside(given, "newfifo"))


@must_fail("writes", "remove a file outside")
def unlink(given: Given) -> None:
    os.unlink(outside(given, "doomed"))


@must_fail("writes", "remove a directory outside")
def remove_directory(given: Given) -> None:
    os.rmdir(outside(given, "doomed-dir"))


@must_fail("writes", "rename a file outside")
def rename(given: Given) -> None:
    os.rename(outside(given, "renamed"), outside(given, "renamed2"))


@must_fail("writes", "move a file of ours out")
def move_out(given: Given) -> None:
    write(inside(given, "to-move-out"))
    os.rename(inside(given, "to-move-out"), outside(given, "moved-out"))


@must_fail("writes", "take a file away from outside")
def move_in(given: Given) -> None:
    os.rename(outside(given, "taken"), inside(given, "taken-in"))


@must_fail("writes", "exchange a file of ours with one outside")
def exchange(given: Given) -> None:
    write(inside(given, "to-exchange"))
    ours, theirs = (os.fsencode(p) for p in (inside(given, "to-exchange"), outside(given, "exchanged")))
    checked(libc.renameat2(AT_FDCWD, ours, AT_FDCWD, theirs, RENAME_EXCHANGE))


@must_fail("writes", "make a file without a name outside, then name it")
def temporary_then_linked(given: Given) -> None:
    fd = os.open(given["outside"], os.O_TMPFILE | os.O_RDWR, 0o600)
    # Only the call that takes a directory follows the link that stands for a descriptor.
    os.link(f"/proc/self/fd/{fd}", outside(given, "named-later"), src_dir_fd=os.open("/", os.O_RDONLY))


@must_work("make, read, rename and remove in the workspace")
def work(given: Given) -> None:
    write(inside(given, "work"))
    os.rename(inside(given, "work"), inside(given, "work2"))
    os.mkdir(inside(given, "dir"))
    os.truncate(inside(given, "work2"), 0)
    os.unlink(inside(given, "work2"))
    shutil.rmtree(inside(given, "dir"))


@must_work("write to a temp directory and to /dev/null")
def scratch(given: Given) -> None:
    made = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"selftest-{os.getpid()}")
    write(made)
    os.unlink(made)  # without a jail it would stay
    write("/dev/null", os.O_WRONLY)


@must_work("read what is outside")
def read_outside(given: Given) -> None:
    with open("/etc/passwd") as file:
        file.read()
