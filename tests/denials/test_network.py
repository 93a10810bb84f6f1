"""Refused connections: each tool is aimed at a server of the host, refused, understood, and connects when allowed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from corral import Policy
from denials.refusals import allowed, denials_of, run, the_denial, works
from hostfacts import skip_unless_host
from jail.world import PYTHON, World

pytestmark = pytest.mark.jail

PERL = "use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => '127.0.0.1:@P') or die $@"
# name: command; whether its text names the address
TOOLS: dict[str, tuple[list[str], bool]] = {
    "bash": (["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/@P"], True),
    "python": ([PYTHON, "-c", "import socket; socket.create_connection(('127.0.0.1', @P))"], False),
    "perl": (["perl", "-e", PERL], False),
    "node": (["node", "-e", "require('net').connect(@P, '127.0.0.1', () => process.exit(0))"], True),
    "curl": (["curl", "-sS", "http://127.0.0.1:@P/"], True),
    "wget": (["wget", "-O-", "-t1", "http://127.0.0.1:@P/"], True),
}
RESOLVERS: dict[str, tuple[list[str], str]] = {
    "bash": (["bash", "-c", "exec 3<>/dev/tcp/name.example/80"], "name.example"),
    "python": (
        [PYTHON, "-c", "import socket; socket.create_connection(('name.example', 80))"],
        "the network",
    ),
    "git": (["git", "clone", "-q", "git://name.example/x"], "name.example:9418"),
    "node": (["node", "-e", "require('http').get('http://name.example')"], "name.example"),
    "curl": (["curl", "-sS", "http://name.example"], "name.example"),
    "wget": (["wget", "-O-", "-t1", "http://name.example"], "name.example"),
    "ssh": (["ssh", "-oBatchMode=yes", "name.example"], "name.example"),
}
UNREACHABLE: dict[str, tuple[list[str], str]] = {
    "bash": (["bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/81"], "192.0.2.1:81"),
    "python": ([PYTHON, "-c", "import socket; socket.create_connection(('192.0.2.1', 81))"], "the network"),
    "node": (["node", "-e", "require('net').connect(81, '192.0.2.1')"], "192.0.2.1:81"),
    "curl": (["curl", "-sS", "http://192.0.2.1:81/"], "192.0.2.1:81"),
    "ssh": (["ssh", "-oBatchMode=yes", "192.0.2.1"], "192.0.2.1:22"),
}
OPTIONAL = ("node", "curl", "wget", "ssh")


def skip_without(tool: str) -> None:
    if tool in OPTIONAL:
        skip_unless_host(f"no-{tool}")


@contextlib.contextmanager
def server() -> Iterator[int]:
    """Answers every connection with an empty page."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.settimeout(1)
                        connection.recv(4096)
                        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_refused_connection_is_understood_and_made_with_the_grant(
    world: World, backend: str, tool: str
) -> None:
    skip_without(tool)
    policy = Policy.workspace_write(backend=backend)
    command, is_named = TOOLS[tool]
    with server() as port:
        argv = [word.replace("@P", str(port)) for word in command]
        denial = the_denial(world, policy, argv)
        named = is_named or backend == "namespaces"  # there the command's own words are looked at
        assert denial.what == (f"127.0.0.1:{port}" if named else "the network")
        assert (denial.operation, denial.rule) == ("connect", "network off")
        assert denial.grant is not None
        assert (denial.grant.flag, denial.grant.config) == ("--network open", 'network = "open"')
        works(world, allowed(policy, denial), argv)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "perl"])
def test_a_server_that_nobody_started_is_not_ours_where_the_jail_has_a_network_of_its_own(
    world: World, tool: str
) -> None:
    skip_without(tool)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    policy = Policy.workspace_write(backend="namespaces")
    done = run(world, policy, [word.replace("@P", str(port)) for word in TOOLS[tool][0]])
    assert done.exit_code != 0
    assert denials_of(world, policy, done) == ()


@pytest.mark.parametrize("tool", RESOLVERS)
def test_a_name_that_cannot_be_looked_up_is_understood(world: World, backend: str, tool: str) -> None:
    skip_without(tool)
    command, what = RESOLVERS[tool]
    denial = the_denial(world, Policy.workspace_write(backend=backend), command)
    assert (denial.what, denial.rule) == (what, "network off")


@pytest.mark.parametrize("tool", UNREACHABLE)
def test_an_address_that_cannot_be_reached_is_understood(world: World, backend: str, tool: str) -> None:
    skip_without(tool)
    command, what = UNREACHABLE[tool]
    denial = the_denial(world, Policy.workspace_write(backend=backend), command)
    assert (denial.what, denial.rule) == (what, "network off")


def test_a_socket_family_that_is_closed_is_understood(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    argv = [PYTHON, "-c", "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"]
    denial = the_denial(world, policy, argv)
    assert denial.operation == "connect"
    works(world, allowed(policy, denial), argv)


def test_with_the_network_open_no_failure_is_ours(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend, network="open")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = run(world, policy, ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"])
    assert done.exit_code != 0
    assert denials_of(world, policy, done) == ()
