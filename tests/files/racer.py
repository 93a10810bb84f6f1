"""A process that exchanges a name with others, in turn, as fast as it can: directory, link, file.

Run with a file of 16 bytes that both sides map (a byte that says stop, eight that count flips), a name, and the
others. Exchanging is one system call, so the name is there at every moment.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def race(shared: str, name: str, others: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    this = os.fsencode(name)
    with open(shared, "r+b") as file, mmap.mmap(file.fileno(), 16) as memory:
        flips = 0
        while not memory[0]:
            for other in map(os.fsencode, others):
                for _ in "there", "back":
                    if libc.renameat2(AT_FDCWD, this, AT_FDCWD, other, RENAME_EXCHANGE):
                        raise OSError(ctypes.get_errno(), "renameat2")
                    flips += 1
            memory[8:16] = flips.to_bytes(8, "little")


class Flips:
    """How often the other process has flipped so far."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @property
    def count(self) -> int:
        return int.from_bytes(self._memory[8:16], "little")


@contextlib.contextmanager
def racing(name: Path, *others: Path) -> Iterator[Flips]:
    with tempfile.NamedTemporaryFile() as shared:
        shared.write(bytes(16))
        shared.flush()
        with mmap.mmap(shared.fileno(), 16) as memory:
            racer = subprocess.Popen([sys.executable, __file__, shared.name, str(name), *map(str, others)])
            flips = Flips(memory)
            try:
                while not flips.count and racer.poll() is None:
                    time.sleep(0.001)
                yield flips
            finally:
                memory[0] = 1
                assert racer.wait(30) == 0


if __name__ == "__main__":
    race(sys.argv[1], sys.argv[2], sys.argv[3:])
