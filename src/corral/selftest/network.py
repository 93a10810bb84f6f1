"""Ways to the network, where the policy has it off."""

from __future__ import annotations

import socket

from corral.selftest.case import must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


def connect(family: int, host: str, port: int) -> None:
    with socket.socket(family) as client:
        client.settimeout(2)
        client.connect((host, port))


@must_fail("tcp", "connect to a listener of the host")
def tcp(given: Given) -> None:
    connect(socket.AF_INET, "127.0.0.1", given["tcp"])


@must_fail("tcp", "connect to it at 0.0.0.0")
def tcp_any(given: Given) -> None:
    connect(socket.AF_INET, "0.0.0.0", given["tcp"])


@must_fail("tcp", "connect to it by a number")
def tcp_number(given: Given) -> None:
    connect(socket.AF_INET, "2130706433", given["tcp"])


@must_fail("tcp", "connect to it by a mapped address")
def tcp_mapped(given: Given) -> None:
    connect(socket.AF_INET6, "::ffff:127.0.0.1", given["tcp"])


@must_fail("udp", "send it a packet")
def udp(given: Given) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", given["udp"]))
    if not given["udp_counts"]:
        raise OSError("only the host can tell whether it arrived")


@must_fail("families", "open a netlink socket")
def netlink(given: Given) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()


@must_fail("families", "open a vsock")
def vsock(given: Given) -> None:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()


@must_fail("families", "open a packet socket")
def packet(given: Given) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


@must_fail("families", "open a raw socket")
def raw(given: Given) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@must_fail("families", "open a socket of the kernel's cryptography")
def crypto(given: Given) -> None:
    socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET).close()


@must_work("look up one's own name")
def names(given: Given) -> None:
    socket.gethostname()
