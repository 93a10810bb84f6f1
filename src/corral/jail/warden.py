"""The warden: the first program in a unit. It looks around, tells what it sees, and waits for leave. With leave comes
what the launcher needs, and the warden becomes the launcher.

It is not imported: its text is sent through the socket on descriptor 0 and run there by an interpreter of the host,
before anything that is not ours. Nobody else ever holds that socket. What it sees is plain data; whoever asked judges.
"""

from __future__ import annotations

import _socket
import fcntl
import marshal
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
    from typing import Any
else:
    import _signal  # without the enums that cost 6 ms

MESSAGE = 1 << 17
MOST_DESCRIPTORS = 253  # as many as one message carries


def outcome(action: Callable[[], object]) -> str:
    """Empty if it worked, otherwise why not."""
    try:
        action()
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def connect(address: str) -> None:
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        client.connect(address)
    finally:
        client.close()


def make(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def own_status() -> dict[str, str]:
    with open("/proc/self/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def cgroup_value(name: str) -> str:
    """What a control file of our own group says; empty where it is not there."""
    try:
        with open("/proc/self/cgroup") as file:
            own = next((line.rstrip("\n")[3:] for line in file if line.startswith("0::")), "")
        with open(f"/sys/fs/cgroup{own}/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""


def look_around(asked: dict[str, Any]) -> dict[str, Any]:
    canary = asked["canary"]
    return {
        **{f"{kind} namespace": os.stat(f"/proc/self/ns/{kind}").st_ino for kind in ("mnt", "user", "net")},
        "canary read": outcome(lambda: os.stat(f"{canary}/alive")),
        "canary write": outcome(lambda: make(f"{canary}/touched")),
        "read-only": {path: is_read_only(path) for path in asked["read-only"] if os.path.isdir(path)},
        "writable": {path: os.access(path, os.W_OK) for path in asked["writable"]},
        "buses": {address: outcome(lambda: connect(address)) for address in asked["buses"]},  # noqa: B023
        "status": {name: own_status().get(name, "") for name in ("NoNewPrivs", "CapEff", "Seccomp")},
        "cgroup": {name: cgroup_value(name) for name in asked["cgroup"]},
    }


def take_order(control: _socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What to become, and the descriptors that go with it. Nothing means: no leave."""
    said, ancillary, _, _ = control.recvmsg(16, _socket.CMSG_SPACE(4 * MOST_DESCRIPTORS))
    fds = [
        int.from_bytes(data[at : at + 4], "little")
        for level, kind, data in ancillary
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS
        for at in range(0, len(data), 4)
    ]
    if said != b"go" or not fds:
        os._exit(0)
    with open(fds[0], "rb") as file:
        return marshal.loads(file.read()), fds[1:]


def limit(wanted: Iterable[tuple[int, int, int]]) -> None:
    """The caller's own limits: the manager's are not those of whoever started the run."""
    for number, soft, hard in wanted:
        top = resource.getrlimit(number)[1]

        def lower(value: int, top: int = top) -> int:
            return top if value < 0 or 0 <= top < value else value

        resource.setrlimit(number, (lower(soft), lower(hard)))


def place(actions: list[tuple[Any, ...]], fds: list[int]) -> None:
    """Each descriptor at the number it has to have. Out of the way first: a number may be another one's goal."""
    above = max(target for _, target, *_ in actions) + 1
    given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in fds]
    for fd in fds:
        os.close(fd)
    for kind, target, *operands in actions:
        if kind == "open":
            opened = os.open(*operands)
            if opened == target:
                os.set_inheritable(target, True)
            else:
                os.dup2(opened, target)
                os.close(opened)
        else:
            os.dup2(given[operands[0]] if kind == "given" else operands[0], target)


def become(control: _socket.socket) -> None:
    order, fds = take_order(control)
    limit(order["limits"])
    os.umask(order["umask"])
    if order["session"]:
        outcome(os.setsid)  # a unit's first process leads a session already
    place(order["actions"], fds)
    for number in order["signals"]:
        _signal.signal(number, _signal.SIG_DFL)
    os.execve(order["program"], order["argv"], order["variables"])


def main() -> None:
    control = _socket.socket(fileno=0)
    asked = marshal.loads(control.recv(MESSAGE))
    control.send(marshal.dumps(look_around(asked), 2))
    become(control)


if __name__ == "__main__":
    main()
