"""The system call filter, tried from inside: each call with arguments that the kernel itself would answer otherwise."""

from __future__ import annotations

import platform
import signal

import pytest

from corral.jail.kernel import ARCHITECTURES, SYSCALLS
from jail.fences import without
from jail.world import World, answers, launch, python

pytestmark = pytest.mark.jail

CALL = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]
print(json.dumps({name: call(*words) for name, words in json.loads(sys.argv[1]).items()}))
"""

BOTH = ("namespaces", "landlock")
NEWUSER, CHILD = 0x10000000, signal.SIGCHLD.value
# Arguments that do no harm if the call goes through, and the answer of the filter.
REFUSED: dict[str, tuple[tuple[int, ...], str, tuple[str, ...]]] = {
    "io_uring_setup": ((0, 0), "ENOSYS", BOTH),
    "io_uring_enter": ((-1, 0, 0, 0, 0, 0), "ENOSYS", BOTH),
    "io_uring_register": ((-1, 0, 0, 0), "ENOSYS", BOTH),
    "keyctl": ((99, 0, 0, 0, 0), "EPERM", BOTH),
    "add_key": ((0, 0, 0, 0, 0), "EPERM", BOTH),
    "request_key": ((0, 0, 0, 0), "EPERM", BOTH),
    "bpf": ((99, 0, 0), "EPERM", BOTH),
    "perf_event_open": ((0, 0, -1, -1, 0), "EPERM", BOTH),
    "userfaultfd": ((-1,), "EPERM", BOTH),
    "kexec_load": ((0, 99, 0, 0), "EPERM", BOTH),
    "init_module": ((0, 0, 0), "EPERM", BOTH),
    "finit_module": ((-1, 0, 0), "EPERM", BOTH),
    "delete_module": ((0, 0), "EPERM", BOTH),
    "open_by_handle_at": ((-1, 0, 0), "EPERM", BOTH),
    "pidfd_getfd": ((-1, 0, 0), "EPERM", BOTH),
    "reboot": ((0, 0, 0, 0), "EPERM", BOTH),
    "swapon": ((0, 0), "EPERM", BOTH),
    "mount": ((0, 0, 0, 0, 0), "EPERM", BOTH),
    "umount2": ((0, 0), "EPERM", BOTH),
    "pivot_root": ((0, 0), "EPERM", BOTH),
    "open_tree": ((-1, 0, 0), "EPERM", BOTH),
    "move_mount": ((-1, 0, -1, 0, 0), "EPERM", BOTH),
    "fsopen": ((0, 0), "EPERM", BOTH),
    "mount_setattr": ((-1, 0, 0, 0, 0), "EPERM", BOTH),
    "setns": ((-1, 0), "EPERM", BOTH),
    "clone3": ((0, 0), "ENOSYS", BOTH),
    "unshare": ((NEWUSER,), "EPERM", BOTH),
    "clone": ((NEWUSER | CHILD, 0, 0, 0, 0), "EPERM", BOTH),
    "ptrace": ((99, 0, 0, 0), "EPERM", ("landlock",)),
    "process_vm_readv": ((0, 0, 0, 0, 0, 0), "EPERM", ("landlock",)),
    "process_vm_writev": ((0, 0, 0, 0, 0, 0), "EPERM", ("landlock",)),
    "shmget": ((99, 0, 0), "EPERM", ("landlock",)),
    "semget": ((99, 0, 0), "EPERM", ("landlock",)),
    "msgget": ((99, 0), "EPERM", ("landlock",)),
    "mq_open": ((0, 0, 0, 0), "EPERM", ("landlock",)),
}
# The kernel says the same of these to whoever has no capability; they show nothing by themselves.
SAME_WITHOUT = {
    "kexec_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "mount",
    "umount2",
}
SAME_WITHOUT |= {
    "pivot_root",
    "open_by_handle_at",
    "fsopen",
    "mount_setattr",
    "clone",
    "open_tree",
    "move_mount",
}
SAME_WITHOUT |= {"perf_event_open", "bpf"}


def numbered(backend: str) -> dict[str, tuple[int, ...]]:
    column = ARCHITECTURES[platform.machine()][0]
    return {
        name: (SYSCALLS[name][column], *arguments)
        for name, (arguments, _, tiers) in REFUSED.items()
        if backend in tiers and not (name == "clone" and backend == "unfiltered")
    }


def test_the_calls_of_the_filter_get_its_answer(backend: str, world: World) -> None:
    import json

    calls = numbered(backend)
    with world.environment(backend) as environment:
        plan = environment.plan(python(CALL, json.dumps(calls)))
        got = answers(plan)
        del calls["clone"]  # it would go through, and two would print
        unfiltered = answers(without("seccomp")(environment.plan(python(CALL, json.dumps(calls)))))
    assert got == {name: REFUSED[name][1] for name in numbered(backend)}
    assert {name for name in calls if unfiltered[name] == got[name]} <= SAME_WITHOUT


def test_what_programs_need_goes_through(backend: str, world: World) -> None:
    needs = """
import concurrent.futures, ctypes, os, subprocess, threading
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(10))) == 45
assert subprocess.check_output(["echo", "x"]) == b"x\\n"
os.close(os.memfd_create("x"))
os.close(os.pidfd_open(os.getpid()))
if os.fork() == 0:
    os._exit(0)
os.wait()
print("fine")
"""
    with world.environment(backend) as environment:
        done = environment.run(python(needs))
        assert done.stdout == "fine\n", done.stderr


def test_a_process_may_be_traced_by_its_own_parent_in_the_namespaces_tier(world: World) -> None:
    trace = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
child = os.fork()
if child == 0:
    libc.ptrace(0, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(7)
_, status = os.waitpid(child, 0)
assert os.WIFSTOPPED(status)
libc.ptrace(7, child, None, None)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with world.environment("namespaces") as environment:
        assert environment.run(python(trace)).stdout == "7\n"


X32 = """
import ctypes
ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 | 39))
print("went on")
"""
# mov eax, 20 (getpid of 32 bits); int 0x80; ret
IA32 = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("went on")
"""


@pytest.mark.parametrize("source", [X32, IA32], ids=["x32", "32 bit"])
def test_a_call_of_another_architecture_ends_the_process(backend: str, world: World, source: str) -> None:
    from hostfacts import skip_unless_host

    skip_unless_host("x86-64")
    with world.environment(backend) as environment:
        plan = environment.plan(python(source))
        done = launch(plan)
        assert done.wait_status & 0x7F == signal.SIGSYS
        assert done.stdout.content() == b""


def test_a_filter_of_the_commands_own_can_be_added(backend: str, world: World) -> None:
    """Programs that bring a sandbox of their own (browsers, bwrap without namespaces) only tighten."""
    tighten = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
allow_all = (6).to_bytes(2, "little") + bytes(2) + (0x7FFF0000).to_bytes(4, "little")
assert libc.prctl(22, 2, ctypes.byref(Program(1, allow_all)), 0, 0) == 0
print("tightened")
"""
    with world.environment(backend) as environment:
        assert environment.run(python(tighten)).stdout == "tightened\n"
