"""`network = off`: no listener of the host's is reached, by no spelling and through no family, in both tiers."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
from collections.abc import Iterator

import pytest

from cases import case
from hostfacts import landlock_abi
from jail.world import World, answers, new_mark, python

pytestmark = pytest.mark.jail

CONNECT = """
import errno, json, socket, sys
answers = {}
for where, port in json.loads(sys.argv[1]):
    try:
        with socket.create_connection((where, port), 2):
            answers[where] = "ok"
    except socket.gaierror:
        answers[where] = "EAI"
    except OSError as error:
        answers[where] = errno.errorcode.get(error.errno, str(error))
print(json.dumps(answers))
"""

SPELLINGS = (
    *(
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.255.255.254",
    ),
    *("::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1"),
)


@contextlib.contextmanager
def listeners() -> Iterator[list[socket.socket]]:
    """One that takes every IPv4 and, where there is IPv6, every mapped spelling."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("0.0.0.0", 0)))]
        with contextlib.suppress(OSError):
            six = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
            found.append(stack.enter_context(six))
        yield found


@case("peers-N1")
def test_no_spelling_of_a_loopback_address_connects(backend: str, world: World) -> None:
    with listeners() as servers:
        port = servers[-1].getsockname()[1]
        aims = json.dumps([(where, port) for where in SPELLINGS])
        with world.environment(backend, network="off") as environment:
            closed = answers(environment.plan(python(CONNECT, aims)))
        assert [where for where, answer in closed.items() if answer == "ok"] == []
        assert select.select(servers, [], [], 0.05)[0] == []
        with world.environment(backend, network="open") as environment:
            opened = answers(environment.plan(python(CONNECT, aims)))
        assert opened["127.0.0.1"] == "ok"
        assert select.select(servers, [], [], 1)[0] == servers[-1:]


@case("peers-N9")
def test_clearing_the_proxy_variables_opens_no_route(backend: str, world: World) -> None:
    with listeners() as servers:
        port = servers[0].getsockname()[1]
        line = (
            f"unset http_proxy https_proxy all_proxy; export NO_PROXY='*'; exec 3<>/dev/tcp/127.0.0.1/{port}"
        )
        with world.environment(backend) as environment:
            assert environment.shell(line, extra_env={"http_proxy": "http://127.0.0.1:1"}).exit_code != 0
        with world.environment(backend, network="open") as environment:
            assert environment.shell(line).exit_code == 0


FAMILIES = """
import errno, json, socket, sys
answers = {}
kinds = {"stream": 1, "datagram": 2, "raw": 3, "seqpacket": 5}
for family in range(1, 46):
    for name, kind in kinds.items():
        for protocol in (0, 1, 58, 255):
            try:
                socket.socket(family, kind, protocol).close()
                answers.setdefault(str(family), []).append(name)
            except OSError as error:
                pass
print(json.dumps({family: sorted(set(kinds)) for family, kinds in answers.items()}))
"""
INET, INET6, UNIX = str(int(socket.AF_INET)), str(int(socket.AF_INET6)), str(int(socket.AF_UNIX))


@case("peers-N3")
def test_no_other_socket_family_and_no_raw_socket_can_be_made(backend: str, world: World) -> None:
    """Packet, netlink, vsock, crypto, …: all are tried. ICMP's unprivileged kind is a datagram in an empty network."""
    with world.environment(backend, network="off") as environment:
        got = answers(environment.plan(python(FAMILIES)))
    allowed = {INET, INET6, UNIX} if backend == "namespaces" else {UNIX}
    assert set(got) <= allowed
    assert "raw" not in got.get(INET, []) + got.get(INET6, [])
    with world.environment(backend, network="open") as environment:
        opened = answers(environment.plan(python(FAMILIES)))
    assert set(opened) <= {INET, INET6, UNIX, str(int(socket.AF_NETLINK))}
    assert "stream" in opened[INET]
    assert "raw" not in opened[INET]


PING = """
import json, socket, sys
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
        s.sendto(b"\\x08\\x00\\xf7\\xff" + bytes(4), (sys.argv[1], 0))
    print('"sent"')
except OSError as error:
    print('"refused"')
"""


@case("peers-N3")
def test_an_echo_request_does_not_leave(backend: str, world: World) -> None:
    """To this host's own address, when it has one beside loopback: there is no route to it inside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # only looks the route up, nothing is sent
        address = probe.getsockname()[0]
    aim = address if address != "0.0.0.0" else "192.0.2.1"
    with world.environment(backend, network="off") as environment:
        assert answers(environment.plan(python(PING, aim))) == "refused"


def test_names_are_not_resolved_not_even_through_a_resolvers_socket(backend: str, world: World) -> None:
    ask = "import json, socket; socket.getaddrinfo('corral.invalid', 80)"
    with world.environment(backend, network="off") as environment:
        done = environment.run(python(ask), timeout=10)
        assert "gaierror" in done.stderr
        assert environment.run(["getent", "passwd", str(os.getuid())]).exit_code == 0


def test_loopback_works_inside_and_is_the_jails_own(world: World) -> None:
    talk = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(b"x")
        print(server.accept()[0].recv(1))
"""
    with world.environment("namespaces", network="off") as environment:
        assert environment.run(python(talk)).stdout == "b'x'\n"
        listed = environment.run(["cat", "/proc/net/dev"]).stdout
        assert [line.split(":")[0].strip() for line in listed.splitlines()[2:]] == ["lo"]


def test_udp_packets_do_not_arrive(backend: str, world: World) -> None:
    send = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.sendto(b"x", ("127.0.0.1", int(sys.argv[1])))
"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        command = python(send, str(receiver.getsockname()[1]))
        with world.environment(backend, network="off") as environment:
            environment.run(command)
        assert select.select([receiver], [], [], 0.05)[0] == []
        with world.environment(backend, network="open") as environment:
            assert environment.run(command).exit_code == 0
        assert receiver.recv(1) == b"x"


def test_sockets_of_its_own_work_where_the_tier_fences_them(world: World) -> None:
    talk = """
import os, socket, sys
for address in (sys.argv[1], chr(0) + sys.argv[1]):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(address)
        server.listen()
        client.connect(address)
print("talked")
"""
    with world.environment("namespaces") as environment:
        assert environment.run(python(talk, new_mark())).stdout == "talked\n"
    with world.environment("landlock", unix_sockets=True) as environment:
        assert environment.run(python(talk, new_mark())).stdout == "talked\n"
        assert ("pathname-sockets" in environment.posture.covered) == (landlock_abi() >= 9)


def test_an_open_network_resolves_names_by_the_hosts_configuration(world: World) -> None:
    with world.environment("namespaces", network="open") as environment:
        inside = environment.run(["cat", "/etc/resolv.conf", "/etc/hosts"])
    with contextlib.suppress(FileNotFoundError), open("/etc/resolv.conf") as file:
        assert inside.stdout.startswith(file.read())
    with open("/etc/hosts") as file:
        assert inside.stdout.endswith(file.read())
