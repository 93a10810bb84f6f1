"""What kernels know, as tables: Landlock rights by ABI, system call numbers, the numbers of the mount API."""

from __future__ import annotations

# ---- Landlock ----
# right: (bit, first ABI that knows it, whether it may stand on a file). A directory-only right in a rule on a
# file is EINVAL, and the whole rule is lost: /dev/null with it.
FS_RIGHTS: dict[str, tuple[int, int, bool]] = {
    "execute": (1 << 0, 1, True),
    "write-file": (1 << 1, 1, True),
    "read-file": (1 << 2, 1, True),
    "read-dir": (1 << 3, 1, False),
    "remove-dir": (1 << 4, 1, False),
    "remove-file": (1 << 5, 1, False),
    "make-char": (1 << 6, 1, False),
    "make-dir": (1 << 7, 1, False),
    "make-reg": (1 << 8, 1, False),
    "make-sock": (1 << 9, 1, False),
    "make-fifo": (1 << 10, 1, False),
    "make-block": (1 << 11, 1, False),
    "make-sym": (1 << 12, 1, False),
    "refer": (1 << 13, 2, False),
    "truncate": (1 << 14, 3, True),
    "ioctl-dev": (1 << 15, 5, True),
    "resolve-unix": (1 << 16, 9, True),
}
READ = ("execute", "read-file", "read-dir")
# Device nodes are never made inside, whoever asks.
WRITE = tuple(name for name in FS_RIGHTS if name not in ("make-char", "make-block", "ioctl-dev"))
DEVICE = ("read-file", "write-file", "truncate", "ioctl-dev")
# A terminal file system of the jail's own: open what is there, talk to it.
TERMINALS = ("read-file", "read-dir", "write-file", "truncate", "ioctl-dev")
# Shared memory: enough for shm_open and sem_open, nothing to hide a tree in.
SHARED_MEMORY = ("read-file", "write-file", "make-reg", "remove-file", "truncate")
NET_TCP = 0b11
SCOPE_ABSTRACT, SCOPE_SIGNAL = 1, 2
# Fields of the ruleset structure by the ABI that added them; a kernel refuses a larger one than it knows.
RULESET_SIZES = ((6, 24), (4, 16), (1, 8))


def fs_rights(names: tuple[str, ...], abi: int, *, on_file: bool = False) -> int:
    """The bits of these rights that a kernel of this ABI knows. A newer ABI than ours means all we know."""
    bits = 0
    for name in names:
        bit, since, file_too = FS_RIGHTS[name]
        if abi >= since and (file_too or not on_file):
            bits |= bit
    return bits


def all_fs_rights(abi: int) -> int:
    return fs_rights(tuple(FS_RIGHTS), abi)


def ruleset_size(abi: int) -> int:
    return next(size for since, size in RULESET_SIZES if abi >= since)


# ---- namespaces, mounts, limits ----
CLONE_NEW = {
    "mnt": 0x00020000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
MOUNT_RDONLY, MOUNT_NOSUID, MOUNT_NODEV, MOUNT_NOEXEC = 1, 2, 4, 8
MAY_BE_MISSING = 1 << 16  # the launcher's own: a place that is gone is left out
RLIMIT = {"cpu": 0, "file_size": 1, "data": 2, "processes": 6, "open_files": 7}

# ---- system calls the filter names: x86_64, aarch64 (-1: does not exist there) ----
SYSCALLS: dict[str, tuple[int, int]] = {
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
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
