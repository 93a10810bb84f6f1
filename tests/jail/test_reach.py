"""The table of what else lies outside: networks, sockets, processes, keys. One row an attempt, one column a policy.

`+` is done; `-` is refused; the name of a claim means: refused where the tier holds that claim, and otherwise done,
and then the claim stands in `not_covered`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corral import Grant
from corral.jail.host import find_host
from jail import probe
from jail.world import World, bystander, new_mark, python

pytestmark = pytest.mark.jail

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "ns-off": ("namespaces", {"network": "off"}),
    "ns-open": ("namespaces", {"network": "open"}),
    "ll-off": ("landlock", {"network": "off"}),
    "ll-unix": ("landlock", {"network": "off", "unix_sockets": True}),
    "ll-open": ("landlock", {"network": "open"}),
}

TABLE = """
attempt      ns-off            ns-open           ll-off            ll-unix           ll-open
tcp          -                 +                 -                 -                 +
udp          -                 +                 -                 -                 +
bind         +                 +                 -                 -                 +
loopback     +                 +                 -                 -                 +
unix         pathname-sockets  pathname-sockets  -                 pathname-sockets  pathname-sockets
bind-unix    +                 +                 ABI-9             +                 +
abstract     abstract-sockets  abstract-sockets  -                 abstract-sockets  abstract-sockets
socketpair   +                 +                 +                 +                 +
netlink      -                 +                 -                 -                 +
vsock        -                 -                 -                 -                 -
signal       signals           signals           signals           signals           signals
signal-own   +                 +                 +                 +                 +
memory       -                 -                 -                 -                 -
ptrace       -                 -                 -                 -                 -
processes    processes         processes         processes         processes         processes
key          keys              keys              keys              keys              keys
profile      +                 +                 +                 +                 +
shm          ipc               ipc               ipc               ipc               ipc
temp         temp              temp              temp              temp              temp
"""

# What each tier must hold on a kernel with Landlock ABI 6 or newer; more on ABI 9.
HOLDS = {
    "ns-off": {"signals", "abstract-sockets", "processes", "keys", "ipc", "temp", "tcp", "udp", "families"},
    "ns-open": {"signals", "abstract-sockets", "processes", "keys", "ipc", "temp"},
    "ll-off": {"signals", "abstract-sockets", "ipc", "tcp", "udp", "families", "pathname-sockets"},
    "ll-unix": {"signals", "abstract-sockets", "ipc", "tcp", "udp", "families"},
    "ll-open": {"signals", "abstract-sockets", "ipc"},
}


def cells_of(policy: str) -> dict[str, str]:
    header, *lines = (line.split() for line in TABLE.strip().splitlines())
    return {line[0]: line[header.index(policy)] for line in lines}


@dataclass(frozen=True)
class Targets:
    """Everything outside that the probe aims at, and how the host sees whether it was hit."""

    sockets: dict[str, socket.socket]
    process: subprocess.Popen[bytes]
    described: dict[str, object]

    def is_hit(self, name: str) -> bool:
        if name == "signal":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)
            return self.process.poll() is not None
        return bool(select.select([self.sockets[name]], [], [], 0.05)[0])


@contextlib.contextmanager
def targets(world: World) -> Iterator[Targets]:
    with contextlib.ExitStack() as stack:
        sockets = {
            "tcp": stack.enter_context(socket.create_server(("127.0.0.1", 0))),
            "udp": stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
            "unix": stack.enter_context(socket.socket(socket.AF_UNIX)),
            "abstract": stack.enter_context(socket.socket(socket.AF_UNIX)),
        }
        name = new_mark()
        sockets["udp"].bind(("127.0.0.1", 0))
        sockets["unix"].bind(str(world.granted / "socket"))
        sockets["abstract"].bind("\0" + name)
        sockets["unix"].listen()
        sockets["abstract"].listen()
        process = stack.enter_context(bystander())
        temp = stack.enter_context(tempfile.NamedTemporaryFile(dir="/tmp"))
        described: dict[str, object] = {
            "tcp": sockets["tcp"].getsockname()[1],
            "udp": sockets["udp"].getsockname()[1],
            "unix": str(world.granted / "socket"),
            "abstract": name,
            "bind": str(world.workspace / "own"),
            "pid": process.pid,
            "mark": str(process.args[-1]),  # type: ignore[index]
            "address": int(Path(f"/proc/{process.pid}/maps").read_text().split("-")[0], 16),
            "key": str(world.home / ".ssh/id_test"),
            "profile": str(world.home / ".profile"),
            "shm": stack.enter_context(shared_segment()),
            "temp": temp.name,
        }
        yield Targets(sockets, process, described)


@contextlib.contextmanager
def shared_segment() -> Iterator[int]:
    """The key of a System V segment on the host."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") + 1
    identifier = libc.shmget(key, 4096, 0o1600)
    assert identifier >= 0
    try:
        yield key
    finally:
        assert libc.shmctl(identifier, 0, None) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_every_attempt_to_reach_outside_gets_the_answer_of_the_table(policy: str, world: World) -> None:
    backend, fields = POLICIES[policy]
    abi = find_host("/").abi
    # Read-only, so that no overlay of home lies over it: a socket below one is a node that nobody listens on.
    shown = (Grant.ro(str(world.granted)),)
    with targets(world) as aimed_at, world.environment(backend, grants=shown, **fields) as environment:
        done = environment.run(python(probe.OTHERS, json.dumps(aimed_at.described)), timeout=20)
        assert done.exit_code == 0, done.stderr
        got = json.loads(done.stdout)
        wrong = []
        for attempt, cell in cells_of(policy).items():
            held = cell == "-" or (cell == "ABI-9" and abi < 9) or cell in done.posture.covered
            if cell not in "+-" and cell != "ABI-9":
                assert held != (cell in done.not_covered)
            hit = not held if attempt not in (*aimed_at.sockets, "signal") else aimed_at.is_hit(attempt)
            # A datagram into an empty network is sent, and lost.
            answered = (got[attempt] == "ok") != held or (attempt == "udp" and backend == "namespaces")
            if not answered or hit == held:
                wrong.append(f"{attempt} should be {'refused' if held else 'ok'}, was {got[attempt]}, {hit=}")
        assert wrong == []
        if abi >= 6:
            assert set(done.posture.covered) >= HOLDS[policy]
