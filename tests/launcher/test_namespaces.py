"""namespaces, ids, init, loopback, pids: who we are inside, what processes we see, and a network of our own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.jail.kernel import CLONE_NEW
from launcher.driver import Watched, children_of, jail, launch, namespaces, own_proc, python, refused_step

pytestmark = [pytest.mark.jail, pytest.mark.usefixtures("user_namespaces")]

EPERM, EACCES, EINVAL = 1, 13, 22
KINDS = ("mnt", "pid", "ipc", "net", "uts", "user")


@pytest.mark.parametrize(
    "kinds", [(), ("mnt",), ("ipc",), ("net",), ("uts",), ("mnt", "pid", "ipc", "net", "uts")]
)
def test_the_command_is_in_new_namespaces_of_these_kinds_and_no_other(kinds: tuple[str, ...]) -> None:
    show = python(f"import os; print({{k: os.readlink('/proc/self/ns/' + k) for k in {KINDS!r}}})")
    proc = own_proc() if "pid" in kinds else []
    done = launch([*namespaces(*kinds), *proc, "init"], show)
    assert done.returncode == 0, done
    for kind in KINDS:
        is_new = os.readlink(f"/proc/self/ns/{kind}") not in done.stdout.decode()
        assert is_new == (kind in (*kinds, "user")), kind


def test_the_command_is_pid_2_and_its_parent_is_pid_1() -> None:
    done = launch(jail(), ["sh", "-c", "echo $$ $PPID"])
    assert done.stdout == b"2 1\n"


def test_only_processes_of_the_jail_are_listed() -> None:
    done = launch(
        jail(), python("import os; print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))")
    )
    assert done.stdout == b"[1, 2]\n"


def test_the_user_is_who_the_map_says() -> None:
    assert launch(jail(), ["sh", "-c", "id -u; id -g"]).stdout.split() == [
        str(os.getuid()).encode(),
        str(os.getgid()).encode(),
    ]
    others = ["ids", 4711, os.getuid(), 815, os.getgid()]
    done = launch([*namespaces("mnt", "pid")[:2], *others, "init"], ["sh", "-c", "id -u; id -g"])
    assert done.stdout.split() == [b"4711", b"815"]


def test_what_another_user_inside_writes_belongs_to_us_outside(tmp_path: Path) -> None:
    others = ["ids", 4711, os.getuid(), 815, os.getgid()]
    done = launch([*namespaces("mnt")[:2], *others, "init"], ["touch", tmp_path / "made"])
    assert done.returncode == 0, done
    info = (tmp_path / "made").stat()
    assert (info.st_uid, info.st_gid) == (os.getuid(), os.getgid())


def test_an_identity_that_is_not_ours_to_give_is_refused(tmp_path: Path) -> None:
    other = 1 if os.getuid() == 0 else 0
    plan = [*namespaces("mnt")[:2], "ids", 0, other, 0, other, "init"]
    done = launch(plan, ["touch", tmp_path / "witness"])
    if os.getuid() == 0:
        assert (
            done.returncode != 0
        )  # root may map any one id, and then does not have its own: the exec is refused
    else:
        assert refused_step(done) == (1, EPERM)
    assert not (tmp_path / "witness").exists()


def test_ids_can_be_mapped_once_only() -> None:
    plan = [*namespaces("mnt"), "ids", 0, os.getuid(), 0, os.getgid(), "init"]
    assert refused_step(launch(plan, ["true"])) == (2, EPERM)


def test_a_flag_the_kernel_does_not_take_is_refused(tmp_path: Path) -> None:
    """CLONE_SIGHAND without CLONE_VM."""
    done = launch(["namespaces", 0x800, "init"], ["touch", tmp_path / "witness"])
    assert refused_step(done) == (0, EINVAL)
    assert not (tmp_path / "witness").exists()


def test_a_step_that_fails_in_the_namespace_is_told_and_runs_nothing(tmp_path: Path) -> None:
    missing = ["open", 0, "/", str(tmp_path / "missing"), 0, 0o40000, "-", "-"]
    before = launch([*namespaces("mnt", "pid"), *missing, "init"], ["touch", tmp_path / "witness"])
    assert refused_step(before) == (2, 2)
    behind = launch([*namespaces("mnt", "pid"), "init", *missing], ["touch", tmp_path / "witness"])
    assert refused_step(behind) == (3, 2)
    assert not (tmp_path / "witness").exists()


# ---- entering what is there ----


@pytest.fixture
def held() -> Iterator[dict[str, int]]:
    """Descriptors of a user and a network namespace of ours, by kind."""
    with Watched(namespaces("net"), ["sh", "-c", "echo up; exec sleep 100"]) as run:
        run.await_output(b"up\n")
        (child,) = children_of(run.pid)
        fds = {kind: os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")}
    yield fds
    for fd in fds.values():
        os.close(fd)


def test_a_namespace_that_the_caller_holds_can_be_joined(held: dict[str, int]) -> None:
    join = [
        "fd",
        0,
        held["user"],
        "fd",
        1,
        held["net"],
        "enter",
        0,
        CLONE_NEW["user"],
        "enter",
        1,
        CLONE_NEW["net"],
    ]
    new = ["namespaces", CLONE_NEW["mnt"] | CLONE_NEW["pid"], *own_proc(), "init"]
    show = python(
        "import os; print([os.stat('/proc/self/ns/' + k).st_ino for k in ('user', 'net')], os.getpid())"
    )
    done = launch([*join, *new], show, pass_fds=tuple(held.values()))
    expected = [os.fstat(held[kind]).st_ino for kind in ("user", "net")]
    assert done.stdout.decode().strip() == f"{expected} 2", done


def test_a_namespace_of_another_kind_or_none_at_all_is_refused(held: dict[str, int], tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        for fd in (held["user"], other):
            done = launch(
                ["fd", 0, fd, "enter", 0, CLONE_NEW["net"]], ["touch", tmp_path / "witness"], pass_fds=(fd,)
            )
            assert refused_step(done) == (1, EINVAL)
    finally:
        os.close(other)
    assert not (tmp_path / "witness").exists()


# ---- network ----

TALK_TO_OURSELVES = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), timeout=5)
served, _ = server.accept()
client.sendall(b"hello")
print(served.recv(5))
"""


def test_loopback_works_in_a_network_of_its_own_once_it_is_up() -> None:
    up = launch([*namespaces("net"), "loopback", "init"], python(TALK_TO_OURSELVES))
    assert up.stdout == b"b'hello'\n", up
    down = launch([*namespaces("net"), "init"], python(TALK_TO_OURSELVES))
    assert down.returncode != 0
    assert b"unreachable" in down.stderr or b"Cannot assign" in down.stderr or b"timed out" in down.stderr


def test_a_server_on_the_hosts_loopback_is_out_of_reach_of_another_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        connect = python(
            "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=5)", port
        )
        assert launch([*namespaces(), "init"], connect).returncode == 0
        inside = launch([*namespaces("net"), "loopback", "init"], connect)
        assert inside.returncode != 0
        assert b"ConnectionRefusedError" in inside.stderr


def test_loopback_is_refused_where_the_network_is_not_ours() -> None:
    plan = ["loopback"] if os.geteuid() != 0 else [*namespaces(), "loopback", "init"]
    done = launch(plan, ["true"])
    # lo is up already, and the kernel asks for the right to change it before it looks
    assert refused_step(done)[1] == EPERM


# ---- process numbers ----


def test_the_ceiling_of_process_numbers_is_the_namespaces_own(tmp_path: Path) -> None:
    before = Path("/proc/sys/kernel/pid_max").read_text()
    plan = [*namespaces("mnt", "pid"), *own_proc(), "pids", 350, "init"]
    done = launch(plan, ["sh", "-c", f"touch {tmp_path}/witness; cat /proc/sys/kernel/pid_max"])
    major, minor = (int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if (major, minor) >= (6, 14):
        assert (done.returncode, done.stdout) == (0, b"350\n")
    else:
        assert refused_step(done)[1] in (EPERM, EACCES)
        assert not (tmp_path / "witness").exists()
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


def test_no_more_processes_than_the_ceiling_can_be_made() -> None:
    fork = python(
        "import os, time\n"
        "made = 0\n"
        "while made < 1000:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "    except OSError: break\n"
        "    made += 1\n"
        "print(made)"
    )
    major, minor = (int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if (major, minor) < (6, 14):
        return  # the test above shows that such a plan is refused there
    bound = launch([*namespaces("mnt", "pid"), *own_proc(), "pids", 350, "init"], fork)
    assert 0 < int(bound.stdout) < 350
    free = launch(jail(), fork)
    assert int(free.stdout) == 1000


def test_a_ceiling_the_kernel_does_not_take_is_refused() -> None:
    done = launch([*namespaces("mnt", "pid"), *own_proc(), "pids", 1, "init"], ["true"])
    assert done.returncode == 125
