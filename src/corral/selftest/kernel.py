"""Kernel interfaces that have been ways out: mounts, keyrings, tracing, rings."""

from __future__ import annotations

import ctypes
import os

from corral.selftest.case import checked, libc, must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

MS_BIND = 4096
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000
NUMBERS = {
    "x86_64": {
        "bpf": 321,
        "perf_event_open": 298,
        "add_key": 248,
        "userfaultfd": 323,
        "open_by_handle_at": 304,
    },
    "aarch64": {
        "bpf": 280,
        "perf_event_open": 241,
        "add_key": 217,
        "userfaultfd": 282,
        "open_by_handle_at": 265,
    },
}
IO_URING_SETUP = 425


def call(name: str, *arguments: object) -> None:
    checked(libc.syscall(NUMBERS[os.uname().machine][name], *arguments))


def in_a_child(action: object) -> None:
    """Namespaces cannot be left again."""
    pid = os.fork()
    if pid == 0:
        try:
            action()  # type: ignore[operator]
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 255)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


@must_fail("writes", "mount a directory outside over one of ours and write to it")
def bind_mount(given: Given) -> None:
    target = os.path.join(given["inside"], "a")

    def attack() -> None:
        uid = os.getuid()
        checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        with open("/proc/self/uid_map", "w") as file:
            file.write(f"0 {uid} 1")
        checked(libc.mount(os.fsencode(given["outside"]), os.fsencode(target), None, MS_BIND, None))
        with open(os.path.join(target, "by-mount"), "w") as file:
            file.write("x")

    in_a_child(attack)


@must_fail("", "put a key into the keyring")
def keyring(given: Given) -> None:
    call("add_key", b"user", b"corral-selftest", b"x", 1, ctypes.c_long(-1))


@must_fail("", "set up an io_uring")
def io_uring(given: Given) -> None:
    parameters = ctypes.create_string_buffer(120)
    os.close(checked(libc.syscall(IO_URING_SETUP, 1, parameters)))


@must_fail("", "load a BPF map")
def bpf(given: Given) -> None:
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)
    call("bpf", 0, attributes, ctypes.sizeof(attributes))


@must_work("ask the kernel for its name and time")
def plain_calls(given: Given) -> None:
    os.uname()
    os.times()
