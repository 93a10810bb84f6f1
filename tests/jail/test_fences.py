"""Each fence matters: an attack is refused by the plan, and succeeds when that one fence is left out of it.

Where two fences hold the same thing, the row names the other too: it is left out on both sides, as on a host that does
not have it, so that the one under test stands alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pty
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from corral import LaunchRefused
from corral.jail.kernel import CLONE_NEW
from hostfacts import skip_unless_host
from jail.fences import (
    Weaken,
    all_of,
    not_mounted,
    with_home_as_it_is,
    with_operands,
    without,
    without_file_system,
    without_namespace,
)
from jail.world import World, bystander, launch, new_mark, python

pytestmark = pytest.mark.jail

LANDLOCK = ("ruleset", "allow", "restrict")


@dataclass(frozen=True)
class Attack:
    """Source that exits with 0 if it got through, and what it aims at, prepared outside."""

    source: str
    target: Callable[[World], contextlib.AbstractContextManager[str]]


def at(name: str) -> Callable[[World], contextlib.AbstractContextManager[str]]:
    return lambda world: contextlib.nullcontext(str(world.home / name))


@contextlib.contextmanager
def shared_memory_file(world: World) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        yield file.name


@contextlib.contextmanager
def temporary_file(world: World) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        yield file.name


@contextlib.contextmanager
def listed_process(world: World) -> Iterator[str]:
    with bystander() as process:
        yield str(process.pid)


@contextlib.contextmanager
def terminal(world: World) -> Iterator[str]:
    master, slave = pty.openpty()
    try:
        yield os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


@contextlib.contextmanager
def tcp_listener(world: World) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@contextlib.contextmanager
def udp_receiver(world: World) -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        yield str(receiver.getsockname()[1])


@contextlib.contextmanager
def abstract_listener(world: World) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as server:
        name = new_mark()
        server.bind("\0" + name)
        server.listen()
        yield name


@contextlib.contextmanager
def host_segment(world: World) -> Iterator[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") + 1
    segment = libc.shmget(key, 4096, 0o1600)
    assert segment >= 0
    try:
        yield str(key)
    finally:
        assert libc.shmctl(segment, 0, None) == 0


@contextlib.contextmanager
def open_for_writing(world: World) -> Iterator[str]:
    fd = os.open(world.outside / "victim", os.O_WRONLY)
    os.set_inheritable(fd, True)
    try:
        yield str(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def control_socket(world: World) -> Iterator[str]:
    path = Path("/run", new_mark())
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        try:
            yield str(path)
        finally:
            path.unlink()


@contextlib.contextmanager
def set_uid_program(world: World) -> Iterator[str]:
    """`id`, as a program of another user's."""
    program = world.workspace / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    yield str(program)


@contextlib.contextmanager
def place_outside_home(world: World) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir="/var/lib") as directory:
        victim = Path(directory, "victim")
        victim.touch()
        yield str(victim)


ATTACKS = {
    "write outside": Attack("import sys; open(sys.argv[1], 'a').write('x')", at("outside/victim")),
    "read a key": Attack("import sys; assert open(sys.argv[1]).read()", at(".ssh/id_test")),
    "read a shared memory file": Attack("import sys; open(sys.argv[1])", shared_memory_file),
    "read a temporary file": Attack("import sys; open(sys.argv[1])", temporary_file),
    "see a process": Attack("import os, sys; os.stat('/proc/' + sys.argv[1])", listed_process),
    "signal a process": Attack("import os, sys; os.kill(int(sys.argv[1]), 0)", listed_process),
    "open a terminal": Attack("import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_NOCTTY)", terminal),
    "connect by TCP": Attack(
        "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)", tcp_listener
    ),
    "send by UDP": Attack(
        "import socket, sys; s = socket.socket(2, 2); s.sendto(b'x', ('127.0.0.1', int(sys.argv[1])))",
        udp_receiver,
    ),
    "open a netlink socket": Attack(
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", at("")
    ),
    "connect to an abstract socket": Attack(
        "import socket, sys; socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])", abstract_listener
    ),
    "connect to a control socket": Attack(
        "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", control_socket
    ),
    "attach shared memory": Attack(
        "import ctypes, sys; assert ctypes.CDLL(None).shmget(int(sys.argv[1]), 0, 0) >= 0", host_segment
    ),
    "write by an inherited descriptor": Attack(
        "import os, sys; os.write(int(sys.argv[1]), b'x')", open_for_writing
    ),
    "change a mode": Attack("import os, sys; os.chmod(sys.argv[1], 0o600)", place_outside_home),
    "become another user": Attack(
        "import subprocess, sys; assert subprocess.check_output([sys.argv[1], '-u']) == b'65534\\n'",
        set_uid_program,
    ),
    "use a capability": Attack("import os; os.chroot('/')", at("")),
    "make a user namespace": Attack(
        "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0", at("")
    ),
}


@dataclass(frozen=True)
class Row:
    tier: str
    fence: str
    down: Weaken
    attack: str
    alone: Weaken = lambda plan: plan
    policy: dict[str, Any] = field(default_factory=dict)
    root: bool = False

    def __str__(self) -> str:
        return f"{self.tier}: {self.fence}, {self.attack}"


NS, LL = "namespaces", "landlock"
OPEN = {"network": "open"}
# The process list stands on the PID namespace, and so does the limit on processes.
NO_PROC = all_of(without_file_system("proc"), without("pids"))
TABLE = (
    Row(LL, "restrict", without(*LANDLOCK), "write outside"),
    Row(LL, "restrict", without(*LANDLOCK), "signal a process", with_operands("supervise", "0")),
    Row(LL, "restrict", without(*LANDLOCK), "connect to an abstract socket", policy=OPEN),
    Row(LL, "seccomp", without("seccomp"), "connect by TCP", without(*LANDLOCK)),
    Row(LL, "restrict", without(*LANDLOCK), "connect by TCP", without("seccomp")),
    Row(LL, "seccomp", without("seccomp"), "send by UDP"),
    Row(LL, "seccomp", without("seccomp"), "attach shared memory"),
    Row(LL, "seccomp", without("seccomp"), "make a user namespace"),
    Row(LL, "seccomp", without("seccomp"), "open a netlink socket"),
    Row(LL, "close", without("close"), "write by an inherited descriptor"),
    Row(LL, "nocaps", without("nocaps"), "use a capability", root=True),
    Row(
        *(LL, "nonewprivs", without("nonewprivs"), "become another user"),
        alone=all_of(with_operands("supervise", "0"), without("seccomp", *LANDLOCK)),
        root=True,
    ),
    Row(NS, "overlay of home", with_home_as_it_is(), "read a key"),
    Row(NS, "whiteout", without("whiteout"), "read a key"),
    Row(NS, "restrict", without(*LANDLOCK), "connect to an abstract socket", policy=OPEN),
    Row(NS, "readonly", without("readonly"), "change a mode", root=True),
    Row(NS, "readonly", without("readonly"), "write outside", without(*LANDLOCK, "overlay"), root=True),
    Row(NS, "private /dev/shm", not_mounted("/dev/shm"), "read a shared memory file"),
    Row(NS, "private /tmp", not_mounted("/tmp"), "read a temporary file", root=True),
    Row(NS, "private /dev/pts", not_mounted("/dev/pts"), "open a terminal"),
    Row(NS, "private /run", not_mounted("/run"), "connect to a control socket", root=True),
    Row(NS, "own /proc", not_mounted("/proc"), "see a process", without("pids")),
    Row(
        *(NS, "PID namespace", without_namespace(CLONE_NEW["pid"]), "signal a process"),
        alone=all_of(NO_PROC, without(*LANDLOCK)),
    ),
    Row(NS, "network namespace", without_namespace(CLONE_NEW["net"]), "connect by TCP", without("loopback")),
    Row(NS, "IPC namespace", without_namespace(CLONE_NEW["ipc"]), "attach shared memory"),
    Row(NS, "close", without("close"), "write by an inherited descriptor"),
    Row(NS, "nocaps", without("nocaps"), "use a capability", root=True),
    Row(NS, "seccomp", without("seccomp"), "make a user namespace"),
    Row(NS, "seccomp", without("seccomp"), "open a netlink socket"),
)


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_an_attack_is_refused_and_succeeds_without_that_one_fence(row: Row, world: World) -> None:
    if row.root:
        skip_unless_host("root-attacks")
    attack = ATTACKS[row.attack]
    with attack.target(world) as target, world.environment(row.tier, **row.policy) as environment:
        plan = row.alone(environment.plan(python(attack.source, target)))
        assert row.down(plan) != plan
        fenced = launch(plan)
        bare = launch(row.down(plan))
    assert fenced.wait_status != 0
    assert b"Error" in fenced.stderr.content()
    assert bare.wait_status == 0, bare.stderr.content().decode()


def test_without_no_new_privileges_the_kernel_refuses_the_other_fences_and_nothing_runs(
    backend: str, world: World
) -> None:
    with world.environment(backend) as environment:
        plan = environment.plan(["touch", "ran"])
        lacking = all_of(without("nonewprivs"), *([with_operands("supervise", "0")] if backend == LL else []))
        with pytest.raises(LaunchRefused, match="nothing was run"):
            launch(lacking(plan))
        assert not (world.workspace / "ran").exists()
        assert launch(plan).wait_status == 0
        assert (world.workspace / "ran").exists()
