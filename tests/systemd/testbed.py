"""A real `systemd --user` manager, on a machine that was not booted with systemd, for one user who exists only in it.

Made by root in PID, mount, cgroup, IPC and UTS namespaces of its own: an empty /run and /home, a cgroup that is handed
to the user, private copies of the user database. When its first process is killed all of it is gone. The bus, without
which systemd-run does not wait, has unit files of ours, so that no further package is needed.

Run as a program, this file is what happens inside.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

UID = 60999
USER = "corral-bed"
HOME = f"/home/{USER}"
RUNTIME = f"/run/user/{UID}"
MANAGERS = ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")
VARIABLES = {
    "HOME": HOME,
    "USER": USER,
    "LOGNAME": USER,
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "XDG_RUNTIME_DIR": RUNTIME,
    "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
}
NAMESPACES = {"newuser": 0x10000000, "newns": 0x00020000}
START_SECONDS = 15.0
# A root file system of another distribution, with systemd, dbus-daemon, git, procps and python3: its systemd is tried.
OTHER_ROOT = "CORRAL_TESTBED_ROOT"

BUS_UNITS = {
    "dbus.socket": "[Socket]\nListenStream=%t/bus\n",
    "dbus.service": "[Unit]\nRequires=dbus.socket\n[Service]\nExecStart=/usr/bin/dbus-daemon --session "
    "--address=systemd: --nofork --nopidfile --systemd-activation --syslog-only\n",
}


class Testbed:
    """``journal``: what the manager logs, one message a line, if it was asked for."""

    __test__ = False

    def __init__(self, directory: Path, init: int, client: subprocess.Popen[bytes], cgroup: str) -> None:
        self.directory = directory
        self.journal = directory / "journal"
        self._init = init
        self._client = client
        self._cgroup = cgroup

    def command(self, argv: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
        """The words that run this inside, as the user and in its home."""
        enter = [
            "nsenter",
            f"--target={self._init}",
            "--mount",
            "--pid",
            "--cgroup",
            "--ipc",
            "--uts",
            "--root",
        ]
        become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", "--"]
        given = {**VARIABLES, **(variables or {})}
        clean = ["env", "-i", "-C", HOME, *(f"{name}={value}" for name, value in given.items())]
        return [*enter, "--wd=/", "--", *become, *clean, *argv]

    def run(
        self, *argv: str, variables: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        words = self.command(argv, variables)
        return subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=60)

    def start(self, *argv: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command(argv, variables), stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def inside(self, path: str) -> Path:
        """A path of the testbed's, for root outside."""
        return Path(f"/proc/{self._init}/root{path}")

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._init, signal.SIGKILL)
        self._client.wait()
        sweep = [
            "unshare",
            "--mount",
            "--propagation=private",
            "--",
            sys.executable,
            __file__,
            "sweep",
            self._cgroup,
        ]
        subprocess.run(sweep, check=True)
        shutil.rmtree(self.directory)


@contextlib.contextmanager
def new_testbed(*, deny: Sequence[str] = (), log: str = "") -> Iterator[Testbed]:
    """``deny``: the manager gets EPERM for these namespaces, as on hosts that close them. ``log``: its log level."""
    directory = Path(tempfile.mkdtemp(prefix="corral-bed-", dir="/var/tmp"))
    directory.chmod(0o755)
    reader, writer = os.pipe()
    namespaces = ["--fork", "--pid", "--kill-child=KILL", "--mount", "--propagation=slave", "--ipc", "--uts"]
    inside = [sys.executable, __file__, "inside", str(directory), str(writer), ",".join(deny), log]
    with (directory / "log").open("wb") as output:
        client = subprocess.Popen(
            ["unshare", *namespaces, "--", *inside],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(writer,),
            start_new_session=True,
        )
    os.close(writer)
    with open(reader) as ready:
        state = ready.readline().strip()
    children = Path(f"/proc/{client.pid}/task/{client.pid}/children")
    init = int(children.read_text().split()[0]) if client.poll() is None else 0
    cgroup = (directory / "cgroup").read_text() if (directory / "cgroup").exists() else ""
    if state not in ("running", "degraded") or not init:
        client.kill()
        client.wait()
        raise RuntimeError(f"no manager: {state}\n{(directory / 'log').read_text()}")
    bed = Testbed(directory, init, client, cgroup)
    try:
        yield bed
    finally:
        bed.close()


# ---- inside ----


def mount(kind: str, where: str, options: str = "") -> None:
    subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), kind, where], check=True)


def own_cgroup() -> str:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next((line[3:] for line in lines if line.startswith("0::")), "/").rstrip("/")


def enter_cgroup(directory: Path) -> None:
    """A new cgroup below ours, as root of a cgroup namespace. What the host gave its groups is left as it is."""
    mount("proc", "/proc")
    tree = Path(tempfile.mkdtemp())
    mount("cgroup2", str(tree))
    name = f"{own_cgroup()}/corral-bed-{os.getpid()}-{directory.name}"
    (directory / "cgroup").write_text(name)
    made = Path(f"{tree}{name}")
    made.mkdir()
    (made / "cgroup.procs").write_text(str(os.getpid()))
    subprocess.run(["umount", str(tree)], check=True)
    tree.rmdir()


def change_root(root: str, directory: Path) -> None:
    """Into another distribution. Not by chroot: a chrooted process may make no user namespace."""
    subprocess.run(["mount", "--bind", root, root], check=True)
    mount("proc", f"{root}/proc")
    mount("sysfs", f"{root}/sys")
    subprocess.run(["mount", "--rbind", "/dev", f"{root}/dev"], check=True)
    os.makedirs(f"{root}{directory}", exist_ok=True)
    subprocess.run(["mount", "--bind", str(directory), f"{root}{directory}"], check=True)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "mnt"], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/mnt"], check=True)


def furnish() -> None:
    """What a booted host would have: a tree of control groups, runtime directories, a user with a home."""
    subprocess.run(["umount", "--lazy", "/sys/fs/cgroup"], stderr=subprocess.DEVNULL)
    mount("cgroup2", "/sys/fs/cgroup")
    tree = Path("/sys/fs/cgroup")
    for name in ("init", "user"):
        (tree / name).mkdir()
    (tree / "init/cgroup.procs").write_text(str(os.getpid()))
    for controller in (tree / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (tree / "cgroup.subtree_control").write_text(f"+{controller}")
    for name in (".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
        os.chown(tree / "user" / name, UID, UID)
    mount("tmpfs", "/run", "mode=755")
    mount("tmpfs", "/home", "mode=755")
    for path in ("/tmp", "/dev/shm"):
        mount("tmpfs", path, "mode=1777")
    # Where a manager puts a unit's mounts together; its name changed after 252. A user manager cannot make it.
    for path in ("/run/systemd/system", "/run/systemd/unit-root", "/run/systemd/mount-rootfs", "/run/bed"):
        os.makedirs(path)
    units = f"{HOME}/.config/systemd/user"
    os.makedirs(f"{units}/sockets.target.wants")
    os.makedirs(RUNTIME)
    os.chmod(RUNTIME, 0o700)
    for name, text in BUS_UNITS.items():
        Path(units, name).write_text(text)
    os.symlink("../dbus.socket", f"{units}/sockets.target.wants/dbus.socket")
    for path in (RUNTIME, HOME, *(str(below) for below in Path(HOME).rglob("*"))):
        os.chown(path, UID, UID, follow_symlinks=False)
    for name, line in (("passwd", f"{USER}:x:{UID}:{UID}::{HOME}:/bin/bash"), ("group", f"{USER}:x:{UID}:")):
        Path("/run/bed", name).write_text(Path("/etc", name).read_text() + line + "\n")
        subprocess.run(["mount", "--bind", f"/run/bed/{name}", f"/etc/{name}"], check=True)


def keep_journal(path: Path) -> None:
    """A process that takes what would go to the journal, unit and message, until it is killed with everything else."""
    os.makedirs("/run/systemd/journal", exist_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind("/run/systemd/journal/socket")
    os.chmod("/run/systemd/journal/socket", 0o666)
    if os.fork():
        server.close()
        return
    with path.open("ab", buffering=0) as out:
        while True:
            data, fds, _, _ = socket.recv_fds(server, 1 << 20, 4)
            for fd in fds:  # a long message comes as a file
                data += b"\n" + os.pread(fd, 1 << 20, 0)
                os.close(fd)
            out.write(data.replace(b"\n", b" | ") + b"\n")


def close_namespaces(names: Sequence[str]) -> None:
    """EPERM for unshare and clone with these flags, ENOSYS for clone3, whose flags a filter cannot see."""
    unshare, clone = {"x86_64": (272, 56), "aarch64": (97, 220)}[platform.machine()]
    flags = sum(NAMESPACES[name] for name in names)
    load, equal, set_bits, answer = 0x20, 0x15, 0x45, 0x06
    program = [
        (load, 0, 0, 0),
        (equal, 6, 0, 435),
        (equal, 1, 0, unshare),
        (equal, 0, 2, clone),
        (load, 0, 0, 16),
        (set_bits, 1, 0, flags),
        (answer, 0, 0, 0x7FFF0000),
        (answer, 0, 0, 0x00050001),
        (answer, 0, 0, 0x00050026),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    described = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, ctypes.c_char_p(described), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter was not taken")


def start_manager(deny: Sequence[str], log: str) -> int:  # noqa: RET503 - the child becomes the manager
    manager = next(path for path in MANAGERS if os.access(path, os.X_OK))
    pid = os.fork()
    if pid:
        return pid
    Path("/sys/fs/cgroup/user/cgroup.procs").write_text(str(os.getpid()))
    os.chdir("/")
    if deny:
        close_namespaces(deny)
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", "--"]
    variables = dict(VARIABLES)
    if log:
        variables |= {"SYSTEMD_LOG_TARGET": "journal", "SYSTEMD_LOG_LEVEL": log}
    given = [f"{name}={value}" for name, value in variables.items()]
    os.execvp("setpriv", [*become, "env", "-i", *given, manager, "--user"])


def wait_for_manager(pid: int) -> str:
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
    as_user = [*become, "env", "-i", *(f"{n}={v}" for n, v in VARIABLES.items())]
    ask = [*as_user, "systemctl", "--user", "is-system-running"]
    # Until it has its name on the bus, whoever asks for a unit there waits for the bus to give up.
    bus = [
        *as_user,
        "busctl",
        "--user",
        "--timeout=1",
        "call",
        "org.freedesktop.DBus",
        "/",
        "org.freedesktop.DBus",
    ]
    bus += ["GetNameOwner", "s", "org.freedesktop.systemd1"]
    deadline = time.monotonic() + START_SECONDS
    state = ""
    while state not in ("running", "degraded") and time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return "the manager ended"
        state = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
        if subprocess.run(bus, capture_output=True).returncode != 0:
            state = "has no name on its bus"
        time.sleep(0.02)
    return state


def inside(directory: Path, ready: int, deny: str, log: str, entered: bool) -> None:
    if not entered:
        enter_cgroup(directory)
        words = [sys.executable, __file__, "inside", str(directory), str(ready), deny, log, "entered"]
        os.set_inheritable(ready, True)
        os.execvp("unshare", ["unshare", "--cgroup", "--", *words])
    if os.environ.get(OTHER_ROOT):
        change_root(os.environ[OTHER_ROOT], directory)
    furnish()
    if log:
        keep_journal(directory / "journal")
    manager = start_manager(tuple(filter(None, deny.split(","))), log)
    os.write(ready, wait_for_manager(manager).encode() + b"\n")
    os.close(ready)
    while True:
        os.wait()


def sweep(cgroup: str) -> None:
    tree = tempfile.mkdtemp()
    mount("cgroup2", tree)
    top = Path(tree + cgroup)
    deadline = time.monotonic() + 5
    while top.is_dir() and time.monotonic() < deadline:
        for group in sorted((top, *top.rglob("*/")), key=lambda path: -len(path.parts)):
            with contextlib.suppress(OSError):
                group.rmdir()
        time.sleep(0.01)
    subprocess.run(["umount", tree], check=True)
    os.rmdir(tree)


if __name__ == "__main__":
    if sys.argv[1] == "sweep":
        sweep(sys.argv[2])
    else:
        where, fd, closed, level, *rest = sys.argv[2:]
        inside(Path(where), int(fd), closed, level, bool(rest))
