"""The filter, run through a small interpreter of its own: every call number, chosen arguments, both machines."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from corral.jail import kernel, seccomp
from corral.jail.fence import filter_families
from corral.jail.host import Host
from corral.policy import Policy

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, EACCES, ENOSYS, EAFNOSUPPORT = 1, 13, 38, 97
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}
HIGHEST = 600
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
NEWUSER = 0x10000000


def run(
    program: bytes,
    *,
    number: int,
    arch: int,
    arguments: tuple[int, ...] = (),
    reached: list[int] | None = None,
) -> int:
    """What the kernel would do: the few instructions of classic BPF that the filter uses, nothing more."""
    words = [number, arch, 0, 0]
    for argument in (*arguments, *[0] * 6)[:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32 & 0xFFFFFFFF]
    instructions = list(struct.iter_unpack("=HBBI", program))
    assert len(instructions) <= 4096
    accumulator, at = 0, 0
    while True:
        code, true, false, k = instructions[at]
        if reached is not None:
            reached.append(at)
        at += 1
        if code == 0x20:
            assert k % 4 == 0
            accumulator = words[k // 4]
        elif code == 0x54:
            accumulator &= k
        elif code == 0x06:
            return int(k)
        elif code in (0x15, 0x35, 0x45):
            taken = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[code]
            at += true if taken else false
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Filter:
    def __init__(
        self, machine: str, *, shared: bool = False, nesting: bool = False, **families: tuple[int, ...]
    ) -> None:
        self.machine = machine
        self.program = seccomp.build_filter(
            machine,
            families=families.get("allowed", (UNIX, INET, INET6)),
            refused_families=families.get("refused", ()),
            shared_with_host=shared,
            nesting=nesting,
        )

    def __call__(self, call: str, *arguments: int) -> int:
        number = kernel.SYSCALLS[call][COLUMN[self.machine]]
        assert number >= 0
        return run(self.program, number=number, arch=AUDIT[self.machine], arguments=arguments)


# Numbers as the kernel's own headers have them, written down a second time: x86_64, aarch64.
NUMBERS = {
    "open": (2, -1),
    "ioctl": (16, 29),
    "shmget": (29, 194),
    "socket": (41, 198),
    "clone": (56, 220),
    "semget": (64, 190),
    "msgget": (68, 186),
    "creat": (85, -1),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "ptrace": (101, 117),
    "mknod": (133, -1),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "mq_open": (240, 180),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "openat": (257, 56),
    "mknodat": (259, 33),
    "fchmodat": (268, 53),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "finit_module": (313, 273),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "clone3": (435, 435),
    "openat2": (437, 437),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
    "fchmodat2": (452, 452),
    "open_tree_attr": (467, 467),
}
# Calls whose verdict depends on an argument.
BY_ARGUMENT = {"ioctl", "mknod", "mknodat", "socket", "clone", "unshare"}
ALWAYS = {
    **dict.fromkeys(("io_uring_setup", "io_uring_enter", "io_uring_register"), ENOSYS),
    **dict.fromkeys(("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"), EPERM),
    **dict.fromkeys(("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"), EPERM),
    **dict.fromkeys(("open_by_handle_at", "pidfd_getfd", "reboot", "swapon", "swapoff"), EPERM),
}
MOUNTS = {
    **dict.fromkeys(("mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount"), EPERM),
    **dict.fromkeys(("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "setns"), EPERM),
    "clone3": ENOSYS,
}
SHARED = dict.fromkeys(
    ("ptrace", "process_vm_readv", "process_vm_writev", "shmget", "semget", "msgget", "mq_open"), EPERM
)


def test_the_numbers_are_the_kernels() -> None:
    assert kernel.SYSCALLS == NUMBERS
    assert {name: audit for name, (_, audit) in kernel.ARCHITECTURES.items()} == AUDIT


@pytest.mark.parametrize("shared", [False, True], ids=["own pids", "shared"])
@pytest.mark.parametrize("nesting", [False, True], ids=["closed", "nesting"])
def test_every_call_gets_the_verdict_of_the_table(machine: str, shared: bool, nesting: bool) -> None:
    refused = {**ALWAYS, **(SHARED if shared else {}), **({} if nesting else MOUNTS)}
    verdicts = {NUMBERS[name][COLUMN[machine]]: ERRNO | error for name, error in refused.items()}
    special = {NUMBERS[name][COLUMN[machine]] for name in BY_ARGUMENT}
    program = Filter(machine, shared=shared, nesting=nesting).program
    for number in range(HIGHEST):
        if number not in special:
            seen = run(program, number=number, arch=AUDIT[machine], arguments=(0xFFFFFFFF,) * 6)
            assert seen == verdicts.get(number, ALLOW), number


def test_another_architecture_is_killed(machine: str) -> None:
    foreign = [
        0x40000003,
        0x40000028,
        0xC000003E,
        0xC00000B7,
        0xC00000F3,
        0,
    ]  # i386, arm, x86_64, aarch64, riscv64
    program = Filter(machine).program
    for arch in foreign:
        for number in (0, 1, 16, 41, 165, 435):
            verdict = run(program, number=number, arch=arch)
            assert (verdict == KILL) == (arch != AUDIT[machine]), hex(arch)


def test_x32_calls_are_killed_on_x86_64() -> None:
    program = Filter("x86_64").program
    for number in (0, 1, 16, 41, 56, 165, 321, 512, 547):
        assert run(program, number=0x40000000 | number, arch=AUDIT["x86_64"]) == KILL
    assert run(program, number=0xFFFFFFFF, arch=AUDIT["x86_64"]) == KILL
    assert run(program, number=0x3FFFFFFF, arch=AUDIT["x86_64"]) == ALLOW


# ---- by argument ----


def test_characters_are_not_pushed_into_a_terminal_and_other_ioctls_pass(machine: str) -> None:
    judge = Filter(machine)
    for request in (0x5412, 0x541C, 0xFFFFFFFF_00005412, 0x1_0000541C):
        assert judge("ioctl", 0, request) == ERRNO | EPERM
    for request in (0x5401, 0x5413, 0x541B, 0x5411, 0, 0xFFFFFFFF):
        assert judge("ioctl", 0x5412, request, 0x541C) == ALLOW


def test_devices_are_not_made_and_other_nodes_are(machine: str) -> None:
    judge = Filter(machine)
    calls = [("mknodat", 2)] + ([("mknod", 1)] if machine == "x86_64" else [])
    for call, index in calls:
        for mode, verdict in (
            (0o020666, ERRNO | EPERM),
            (0o060660, ERRNO | EPERM),
            (0o020000, ERRNO | EPERM),
            (0o010644, ALLOW),
            (0o100644, ALLOW),
            (0o140644, ALLOW),
            (0o644, ALLOW),
        ):
            assert judge(call, *[0] * index, mode) == verdict, (call, oct(mode))


def test_new_user_namespaces_are_closed_unless_nesting_is_open(machine: str) -> None:
    closed, nesting = Filter(machine), Filter(machine, nesting=True)
    threads = 0x3D0F00
    for call in ("clone", "unshare"):
        for flags in (NEWUSER, NEWUSER | 0x20000, NEWUSER | 17, 0xFFFFFFFF):
            assert closed(call, flags) == ERRNO | EPERM
            assert nesting(call, flags) == ALLOW
        for flags in (0, 17, threads, 0x20000, 0x7E020000 & ~NEWUSER, NEWUSER << 32):
            assert closed(call, flags) == ALLOW
            assert nesting(call, flags) == ALLOW


def families(judge: Filter) -> Iterator[tuple[int, int]]:
    for family in range(50):
        yield family, judge("socket", family, 1, 0)


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ((UNIX, INET, INET6), ()),
        ((UNIX,), (INET, INET6)),
        ((), (UNIX, INET, INET6)),
        ((UNIX, INET, INET6, NETLINK), ()),
    ],
)
def test_socket_families_are_allowed_forbidden_or_unknown(
    machine: str, allowed: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    for family, verdict in families(Filter(machine, allowed=allowed, refused=refused)):
        expected = ALLOW if family in allowed else ERRNO | (EACCES if family in refused else EAFNOSUPPORT)
        assert verdict == expected, family
    assert Filter(machine, allowed=allowed, refused=refused)("socket", VSOCK) == ERRNO | EAFNOSUPPORT


@pytest.mark.parametrize(
    ("network", "abi", "own_network", "unix_sockets", "allowed", "refused"),
    [
        ("open", 7, False, False, {UNIX, INET, INET6, NETLINK}, set()),
        ("open", 7, True, False, {UNIX, INET, INET6, NETLINK}, set()),
        ("off", 7, True, False, {UNIX, INET, INET6}, set()),
        ("off", 7, False, False, set(), {UNIX, INET, INET6}),
        ("off", 7, False, True, {UNIX}, {INET, INET6}),
        ("off", 9, False, False, {UNIX}, {INET, INET6}),
    ],
)
def test_the_policy_chooses_the_families(
    network: str, abi: int, own_network: bool, unix_sockets: bool, allowed: set[int], refused: set[int]
) -> None:
    policy = Policy.from_dict({"network": network, "unix_sockets": unix_sockets})
    host = Host("x86_64", (6, 18), abi, "", "", "", 1000, 1000)
    seen = filter_families(policy, host, own_network=own_network)
    assert (set(seen[0]), set(seen[1])) == (allowed, refused)
    assert PACKET not in seen[0]
    assert VSOCK not in seen[0]


# ---- shape ----


def test_a_filter_is_small_and_a_call_meets_few_comparisons(machine: str) -> None:
    """The kernel runs it once for each call it knows when it is set; a long chain was the dearest step of a launch."""
    program = Filter(machine, shared=True).program
    assert len(program) // 8 < 256
    for number in range(HIGHEST):
        reached: list[int] = []
        run(program, number=number, arch=AUDIT[machine], reached=reached)
        assert len(reached) <= 20, number


def test_the_same_filter_is_built_twice(machine: str) -> None:
    assert Filter(machine).program == Filter(machine).program


def test_an_unknown_machine_is_no_filter_at_all() -> None:
    with pytest.raises(KeyError):
        Filter("riscv64")


def test_this_machine_is_one_of_the_two() -> None:
    assert os.uname().machine in kernel.ARCHITECTURES
