"""Unix sockets and shared memory of the host."""

from __future__ import annotations

import os
import socket

from corral.selftest.case import checked, libc, must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


def connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        client.connect(address)


@must_fail("abstract-sockets", "connect to an abstract socket outside")
def abstract(given: Given) -> None:
    connect("\0" + given["abstract"])


@must_fail("pathname-sockets", "connect to a socket in a directory that can be read")
def by_path(given: Given) -> None:
    directory = os.open(given["outside"], os.O_PATH)
    connect(f"/proc/self/fd/{directory}/socket")


@must_fail("control-sockets", "connect to a socket in the host's temp directory")
def control(given: Given) -> None:
    connect(given["control"])


@must_fail("ipc", "find shared memory of the host")
def shared_memory(given: Given) -> None:
    checked(libc.shmget(given["shm_key"], 0, 0))


@must_fail("temp", "see a file of the host's temp directory")
def host_temp(given: Given) -> None:
    os.stat(given["temp"])


@must_work("talk over a pair of sockets")
def pair(given: Given) -> None:
    one, two = socket.socketpair()
    one.send(b"x")
    two.recv(1)
