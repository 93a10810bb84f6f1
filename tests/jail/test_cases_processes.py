"""Cases I of the notes on peers: other processes, their sockets, and the caller's terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from cases import case
from hostfacts import skip_unless_host
from jail.fences import without
from jail.inline import inline_plan, run_inline
from jail.world import PYTHON, World, answers, bystander, launch, new_mark, python

pytestmark = pytest.mark.jail


@case("peers-I5")
def test_outside_processes_live_through_signals_to_one_and_to_all(backend: str, world: World) -> None:
    with bystander() as process, world.environment(backend) as environment:
        assert environment.shell(f"kill -9 {process.pid}").exit_code != 0
        environment.shell("kill -9 -1; kill -9 0")
        environment.run(python("import os; os.kill(-1, 9)"))
        assert process.poll() is None
        own = environment.shell("sleep 300 & kill -9 $!; wait $!; echo $?")
        assert own.stdout == f"{128 + signal.SIGKILL}\n"


TYPE_IN = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
answers = {}
for name, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541c), ("TIOCSTI high", 0x5412 | 1 << 32)):
    failed = libc.ioctl(0, request, b"x")
    answers[name] = errno.errorcode[ctypes.get_errno()] if failed else "ok"
answers["size"] = os.get_terminal_size(0).columns
print(json.dumps(answers))
"""


@case("peers-I7")
def test_nothing_can_be_typed_into_the_callers_terminal(backend: str, world: World) -> None:
    """On a terminal of the caller's as standard input, and once without the filter: the answer is then another."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 77, 0, 0))
    try:
        with inline_plan(world.workspace, python(TYPE_IN), backend=backend) as plan:
            fenced = json.loads(run_inline(plan, stdin=slave).stdout)
            bare = json.loads(run_inline(plan, weaken=without("seccomp"), stdin=slave).stdout)
        names = ("TIOCSTI", "TIOCLINUX", "TIOCSTI high")
        assert {name: fenced[name] for name in names} == dict.fromkeys(names, "EPERM")
        assert (fenced["size"], bare["size"]) == (77, 77)
        assert [bare[name] for name in names] != [fenced[name] for name in names]
        os.set_blocking(master, False)
        with contextlib.suppress(BlockingIOError):
            assert os.read(master, 16) == b""
    finally:
        os.close(master)
        os.close(slave)


# Run by a session leader with a terminal of its own: what it can open as /dev/tty, and what a jailed command can.
CONTROLLED = """
import sys
from corral import LocalEnvironment, Policy
open("/dev/tty").close()
with LocalEnvironment(sys.argv[1], Policy(backend=sys.argv[2])) as environment:
    opened = environment.run([sys.argv[3], "-I", "-S", "-c", "open('/dev/tty')"])
    plain = environment.run([sys.argv[3], "-I", "-S", "-c", "open('/dev/null')"])
print(opened.exit_code, plain.exit_code)
"""


@case("peers-I7")
def test_a_command_has_no_controlling_terminal_of_the_callers(backend: str, world: World) -> None:
    master, slave = pty.openpty()
    command = ["setsid", "--ctty", "--wait", sys.executable, "-c", CONTROLLED]
    try:
        done = subprocess.run(
            [*command, str(world.workspace), backend, PYTHON], stdin=slave, capture_output=True, text=True
        )
    finally:
        os.close(master)
        os.close(slave)
    assert (done.stdout, done.stderr) == ("1 0\n", "")


@case("peers-I1")
def test_a_container_engines_socket_cannot_be_reached(backend: str, world: World) -> None:
    skip_unless_host("root-attacks")
    path = Path("/run", new_mark())
    source = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with socket.socket(socket.AF_UNIX) as server, world.environment(backend) as environment:
        server.bind(str(path))
        try:
            server.listen()
            for name in (str(path), f"/var{path}"):
                assert environment.run(python(source, name)).exit_code != 0
            assert "control-sockets" in environment.posture.covered
        finally:
            path.unlink()


@case("peers-I1")
def test_the_runtime_directory_is_empty_inside(world: World) -> None:
    for network in ("off", "open"):
        with world.environment("namespaces", network=network) as environment:
            seen = environment.run(["find", "-L", "/run", "-type", "s"]).stdout
            assert (seen, environment.run(["test", "-d", "/run"]).exit_code) == ("", 0)


@case("peers-I3")
def test_an_abstract_socket_of_the_host_cannot_be_reached(backend: str, world: World) -> None:
    name = new_mark()
    source = """
import socket, sys
a, b = socket.socketpair()
try:
    socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])
    print('"reached"')
except OSError:
    print('"refused"')
"""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        for network in ("off", "open"):
            with world.environment(backend, network=network) as environment:
                plan = environment.plan(python(source, name))
                assert answers(plan) == "refused"
                if network == "open":
                    assert answers(without("ruleset", "allow", "restrict")(plan)) == "reached"
                assert launch(plan).wait_status == 0
