"""What this host can do, found by running the real launcher, and remembered for this boot and these namespaces."""

from __future__ import annotations

import os
import stat
import sys

from corral.errors import LandlockUnavailable, NotEnforceable
from corral.jail.hostkey import host_key
from corral.jail.kernel import (
    CLONE_NEW,
    MOUNT_NODEV,
    MOUNT_NOSUID,
    MOUNT_RDONLY,
    READ,
    WRITE,
    all_fs_rights,
    fs_rights,
    ruleset_size,
)
from corral.jail.memory import recall, remember
from corral.jail.plan import Draft, Plan
from corral.jail.site import submounts
from corral.paths.places import kernel_device
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


ENOSYS = 38
REFER_SINCE = 2  # the Landlock ABI that can allow it
TOO_OLD = "the kernel is older than 5.12 and cannot make everything read-only at once"


class Host(Record):
    """Facts. ``abi`` is Landlock's (0: none); the strings say why something is missing, empty if it is there."""

    machine: str
    release: tuple[int, int]
    abi: int
    no_namespaces: str
    no_proc: str
    no_overlay: str
    uid: int
    gid: int
    no_refer: bool = False  # rules on files would forbid every rename between directories

    @property
    def namespaces(self) -> bool:
        return not self.no_namespaces

    @property
    def is_root(self) -> bool:
        return self.uid == 0


_LAUNCHER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_launcher", "corral-launch"
)
_found = False


def launcher_path() -> str:
    """The one trusted core, from the package's own directory and nowhere else."""
    global _found
    path = _LAUNCHER
    if not _found and not os.access(path, os.X_OK):
        if sys.platform != "linux":
            raise NotEnforceable("jails need Linux; this build of corral has no launcher")
        raise NotEnforceable(
            f"the launcher {path} is missing; reinstall corral (from source: with a C compiler, `make launcher`)"
        )
    _found = True
    return path


def _ask(words: list[str]) -> tuple[int, str]:
    """Run the launcher; exit code and what it printed, both streams."""
    reader, writer = os.pipe()
    path = launcher_path()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, writer, n) for n in (1, 2)]
    try:
        pid = os.posix_spawn(path, [path, *words], {"PATH": "/usr/bin:/bin"}, file_actions=actions)
    finally:
        os.close(writer)
    with open(reader, "rb") as stream:
        text = stream.read().decode("ascii", "replace")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def probe_landlock(needed: int = 0) -> int:
    """The Landlock ABI of this host, 0 if there is none, without side effects. With ``needed``, less than that is a
    LandlockUnavailable; so is a system that is not Linux."""
    found = max(int(_ask(["--abi"])[1]), 0) if sys.platform == "linux" else 0
    if found < needed:
        raise LandlockUnavailable(found, needed)
    return found


def _trial(home: str, *, proc: bool, overlay: bool) -> Plan:
    """A jail in little, with every facility whose absence is only known by trying."""
    draft = Draft()
    flags = sum(CLONE_NEW[name] for name in ("user", "mnt", "pid", "ipc", "net"))
    draft.add("namespaces", flags, why="namespaces")
    draft.add("ids", os.getuid(), os.getuid(), os.getgid(), os.getgid(), why="namespaces")
    if overlay:
        lower = (
            home if not submounts(home) else "/usr"
        )  # what is mounted in home says nothing about the kernel
        info = os.stat(lower)
        bottom = draft.open_path(lower, stat.S_IFDIR, "overlay", kernel_device(info.st_dev), info.st_ino)
        top = draft.fill("mount", "tmpfs", "mode=755", MOUNT_NOSUID | MOUNT_NODEV, why="namespaces")
        # Before 6.15 a layer must be mounted where the overlay is made.
        draft.add("attach", top, draft.open_path("/tmp", stat.S_IFDIR, "overlay"), why="overlay")
        draft.add("whiteout", top, "hidden", why="overlay")  # a filter around us may refuse that alone
        draft.fill("overlay", top, bottom, MOUNT_RDONLY, why="overlay")
    draft.add("readonly", why="namespaces")
    if proc:
        fresh = draft.fill("mount", "proc", "", MOUNT_NOSUID | MOUNT_NODEV, why="proc")
        onto = draft.open_path("/proc", stat.S_IFDIR, "proc")
        draft.add("attach", fresh, onto, why="proc")
    draft.add("loopback", why="namespaces")
    draft.add("init", why="namespaces")
    draft.add("nonewprivs", why="namespaces")
    draft.add("nocaps", why="namespaces")
    # The launcher itself, by a name that the mount on /tmp cannot cover.
    return Plan("namespaces", tuple(draft.steps), ("/proc/self/exe", "--abi"))


def find_host(home: str) -> Host:
    """Ask the kernel by trying. Three short runs at most."""
    system = os.uname()
    major, minor = (int(part) for part in system.release.split("-")[0].split(".")[:2])
    abi = probe_landlock()
    missing = {"namespaces": "", "proc": "", "overlay": ""}
    if not os.path.isdir(home):
        missing["overlay"] = "no home directory"
    while not missing["namespaces"]:
        plan = _trial(home, proc=not missing["proc"], overlay=not missing["overlay"])
        code, text = _ask(plan.inline())
        if code == 0:
            break
        step, errno = _failed_step(text)
        part = plan.steps[step][1] if step < len(plan.steps) else "namespaces"
        if missing[part]:
            part = "namespaces"
        operation = plan.steps[step][0][0] if step < len(plan.steps) else "exec"
        reason = f"{operation}: {os.strerror(errno)}"
        missing[part] = TOO_OLD if part == "namespaces" and errno == ENOSYS else reason
    return Host(
        machine=system.machine,
        release=(major, minor),
        abi=abi,
        no_namespaces=missing["namespaces"],
        no_proc=missing["proc"],
        no_overlay=missing["overlay"],
        uid=os.getuid(),
        gid=os.getgid(),
        no_refer=abi >= REFER_SINCE and not _may_rename_under_rules(abi),
    )


def _may_rename_under_rules(abi: int) -> bool:
    """Whether a name can be put into another directory under rules that allow it. A Landlock layer around us that has
    no rules on files, as in casual and bare, forbids it to every layer below that has some."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="corral-") as top:
        os.mkdir(f"{top}/a")
        os.mkdir(f"{top}/b")
        os.close(os.open(f"{top}/a/name", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        draft = Draft()
        draft.add("nonewprivs", why="rules")
        here = draft.open_path(os.path.realpath(top), stat.S_IFDIR, "rules")
        root = draft.open_path("/", stat.S_IFDIR, "rules")
        draft.add("ruleset", all_fs_rights(abi), 0, 0, ruleset_size(abi), why="rules")
        draft.add("allow", here, fs_rights(WRITE, abi), why="rules")
        draft.add("allow", root, fs_rights(READ, abi), why="rules")
        draft.add("restrict", why="rules")
        _ask(Plan("landlock", tuple(draft.steps), ("ln", f"{top}/a/name", f"{top}/b/name")).inline())
        return os.path.exists(f"{top}/b/name")


def _failed_step(text: str) -> tuple[int, int]:
    """From the launcher's one line: `… step N (…): … (error E); …`."""
    words = text.replace(")", " ").split()
    try:
        return int(words[words.index("step") + 1]), int(words[words.index("(error") + 1])
    except ValueError:
        return 1 << 30, 0


def this_host(home: str, state: str | None = None) -> Host:
    """The facts, as remembered for this boot, identity and namespaces, or by asking."""
    key = (*host_key(launcher_path()), Host._fields, home)
    values = recall("host", key, state)
    if values is None or len(values) != len(Host._fields):
        host = find_host(home)
        remember("host", key, host._values(), state)
        return host
    return Host(*values)
