"""Other processes: list, signal, trace, read."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess

from corral.selftest.case import checked, libc, must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("processes", "see a process outside")
def listing(given: Given) -> None:
    os.stat(f"/proc/{given['pid']}/stat")


@must_fail("signals", "signal a process outside")
def signalling(given: Given) -> None:
    os.kill(given["pid"], signal.SIGCONT)


@must_fail("signals", "signal a process outside by a descriptor of it")
def signalling_by_descriptor(given: Given) -> None:
    signal.pidfd_send_signal(os.pidfd_open(given["pid"]), signal.SIGCONT)


@must_fail("memory", "read the memory of a process outside")
def memory(given: Given) -> None:
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(given["address"], 8)
    checked(libc.process_vm_readv(given["pid"], local, 1, remote, 1, 0))


@must_fail("memory", "read the environment of a process outside")
def variables(given: Given) -> None:
    with open(f"/proc/{given['pid']}/environ", "rb") as file:
        file.read()


@must_work("start a child and end it")
def child(given: Given) -> None:
    process = subprocess.Popen(["sleep", "30"])
    process.kill()
    process.wait()
