"""The system call filter: a table of refusals, assembled into the bytes the kernel takes.

The calls are found by a binary search over ranges of numbers, and all end in the same few returns: the kernel runs a
new filter once for each call it knows, to learn which are always allowed, and compiles it. A filter twice as long made
that the dearest step of a launch.
"""

from __future__ import annotations

import struct

from corral.jail.kernel import ARCHITECTURES, CLONE_NEW, SYSCALLS

EPERM, ENOSYS, EACCES, EAFNOSUPPORT = 1, 38, 13, 97
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
S_IFMT, S_IFCHR, S_IFBLK, SET_ID = 0o170000, 0o020000, 0o060000, 0o6000
O_CREAT, O_TMPFILE = 0o100, 0o20000000

# Refused in every jail, whatever the arguments.
ALWAYS: dict[str, int] = {
    **dict.fromkeys(("io_uring_setup", "io_uring_enter", "io_uring_register"), ENOSYS),
    **dict.fromkeys(("keyctl", "add_key", "request_key"), EPERM),
    **dict.fromkeys(("bpf", "perf_event_open", "userfaultfd"), EPERM),
    **dict.fromkeys(("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"), EPERM),
    **dict.fromkeys(("open_by_handle_at", "pidfd_getfd", "reboot", "swapon", "swapoff"), EPERM),
}
# Refused unless the jail leaves user namespaces open, in which a nested sandbox may mount what it likes.
NESTING: dict[str, int] = {
    **dict.fromkeys(("mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount"), EPERM),
    **dict.fromkeys(("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "setns"), EPERM),
    "clone3": ENOSYS,  # its flags lie in memory, which a filter cannot read; libc falls back to clone
}
# Refused where no PID and IPC namespace keeps others out of reach.
SHARED_WITH_HOST: dict[str, int] = {
    **dict.fromkeys(("ptrace", "process_vm_readv", "process_vm_writev"), EPERM),
    **dict.fromkeys(("shmget", "semget", "msgget", "mq_open"), EPERM),
}

# Where each call has the mode of a file, and where it says that one is made.
MODES: dict[str, tuple[int, ...]] = {
    "chmod": (1,),
    "fchmod": (1,),
    "fchmodat": (2,),
    "fchmodat2": (2,),
    "creat": (1,),
    "open": (2, 1),
    "openat": (3, 2),
}

_LD, _JEQ, _JGE, _JSET, _AND, _RET = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARG = 0, 4, 16
_X32 = 0x40000000

# An instruction: code, where to go if true, where if false (labels; empty: the next one), constant.
Instruction = tuple[int, str, str, int]


def _errno(error: int) -> str:
    """The label of the one place that returns this error."""
    return f"errno {error}"


def _argument(index: int) -> Instruction:
    """The low half: each argument we look at is an int or a 32-bit mask to the kernel too."""
    return (_LD, "", "", _ARG + 8 * index)


def _refuse_values(
    index: int, values: tuple[int, ...], error: int, mask: int | None = None
) -> list[Instruction]:
    """Refuse when the argument (masked) is one of the values, else allow."""
    body = [_argument(index)] + ([] if mask is None else [(_AND, "", "", mask)])
    return body + [(_JEQ, _errno(error), "" if value != values[-1] else "allow", value) for value in values]


def _refuse_flag(index: int, flag: int, error: int) -> list[Instruction]:
    return [_argument(index), (_JSET, _errno(error), "allow", flag)]


def _refuse_set_id(mode: int, flags: int = -1) -> list[Instruction]:
    """``flags``: an argument without which the mode is not looked at: whether a file is made at all."""
    made: list[Instruction] = (
        [_argument(flags), (_JSET, "", "allow", O_CREAT | O_TMPFILE)] if flags >= 0 else []
    )
    return made + _refuse_flag(mode, SET_ID, EPERM)


def _socket_families(allowed: tuple[int, ...], refused: tuple[int, ...]) -> list[Instruction]:
    """Allow some families, refuse some with EACCES (they exist; the policy says no), the rest as unknown."""
    verdicts = [(family, "allow") for family in allowed] + [(family, _errno(EACCES)) for family in refused]
    last = len(verdicts) - 1
    unknown = _errno(EAFNOSUPPORT)
    body = [
        (_JEQ, verdict, "" if n < last else unknown, family) for n, (family, verdict) in enumerate(verdicts)
    ]
    return [_argument(0), *body]


def _ranges(verdicts: dict[int, str]) -> list[tuple[int, str]]:
    """Where each run of calls with one verdict begins, from 0 up; calls that are not named are allowed."""
    starts: list[tuple[int, str]] = [(0, "allow")]
    for number in sorted(verdicts):
        if starts[-1][0] == number:
            starts.pop()
        if not starts or starts[-1][1] != verdicts[number]:
            starts.append((number, verdicts[number]))
        starts.append((number + 1, "allow"))
    return starts


def _search(starts: list[tuple[int, str]], program: list[Instruction], labels: dict[str, int]) -> str:
    """Write a balanced decision over the ranges; returns the label to begin at."""
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    label = f"from {starts[0][0]} to {starts[-1][0]}"
    labels[label] = len(program)
    program.append((_JGE, "", "", starts[middle][0]))
    low = _search(starts[:middle], program, labels)
    high = _search(starts[middle:], program, labels)
    program[labels[label]] = (_JGE, high, low, starts[middle][0])
    return label


def _assemble(program: list[Instruction], labels: dict[str, int]) -> bytes:
    def distance(position: int, label: str) -> int:
        jump = labels[label] - position - 1 if label else 0
        if not 0 <= jump <= 255:
            raise AssertionError(f"a jump of the filter does not fit: {label}")
        return jump

    return b"".join(
        struct.pack("=HBBI", code, distance(n, true), distance(n, false), constant)
        for n, (code, true, false, constant) in enumerate(program)
    )


def build_filter(
    machine: str,
    *,
    families: tuple[int, ...],
    refused_families: tuple[int, ...],
    shared_with_host: bool,
    nesting: bool,
    set_id: bool = True,
) -> bytes:
    """The filter for one jail. ``nesting``: user namespaces stay open inside. ``set_id``: files may be made that run
    with the rights of their owner."""
    column, audit_arch = ARCHITECTURES[machine]
    plain = {**ALWAYS, **(SHARED_WITH_HOST if shared_with_host else {}), **({} if nesting else NESTING)}
    if not set_id:
        plain["openat2"] = ENOSYS  # the mode lies in memory; programs fall back to openat
    looked_at: dict[str, list[Instruction]] = {
        "ioctl": _refuse_values(1, (TIOCSTI, TIOCLINUX), EPERM),
        "mknod": _refuse_values(1, (S_IFCHR, S_IFBLK), EPERM, mask=S_IFMT),
        "mknodat": _refuse_values(2, (S_IFCHR, S_IFBLK), EPERM, mask=S_IFMT),
        "socket": _socket_families(families, refused_families),
    }
    if not set_id:
        looked_at |= {name: _refuse_set_id(*where) for name, where in MODES.items()}
        for name, index in (("mknod", 1), ("mknodat", 2)):
            looked_at[name] = [_argument(index), (_JSET, _errno(EPERM), "", SET_ID), *looked_at[name]]
    if not nesting:
        looked_at["clone"] = looked_at["unshare"] = _refuse_flag(0, CLONE_NEW["user"], EPERM)
    verdicts = {name: _errno(error) for name, error in plain.items()} | {name: name for name in looked_at}
    numbered = {
        SYSCALLS[name][column]: verdict for name, verdict in verdicts.items() if SYSCALLS[name][column] >= 0
    }
    labels: dict[str, int] = {}
    program: list[Instruction] = [(_LD, "", "", _ARCH), (_JEQ, "", "kill", audit_arch), (_LD, "", "", _NR)]
    if machine == "x86_64":
        program.append((_JGE, "kill", "", _X32))
    _search(_ranges(numbered), program, labels)
    for name, body in looked_at.items():
        labels[name] = len(program)
        program += body
    ends = {"allow": _ALLOW, "kill": _KILL} | {
        _errno(e): _ERRNO | e for e in (EPERM, ENOSYS, EACCES, EAFNOSUPPORT)
    }
    for label, constant in ends.items():
        labels[label] = len(program)
        program.append((_RET, "", "", constant))
    return _assemble(program, labels)
