"""What the probe tries, from inside a jail. Run by an interpreter of the host with this file's text as its program; it
imports nothing but the standard library, and prints one JSON object: attempt → "" if it worked, else why it did not.

Every attempt is one small function that raises if it is refused. Those named ``may_…`` are the controls: they must
work, or nothing that was refused proves anything.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

given: dict[str, Any] = {}  # what to try, and on what: filled when this runs as a program
libc = ctypes.CDLL(None, use_errno=True)


def path(*parts: str) -> str:
    return os.path.join(given["outside"], *parts)


def inside(*parts: str) -> str:
    return os.path.join(given["inside"], *parts)


def write(name: str, flags: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL) -> None:
    os.close(os.open(name, flags, 0o600))


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# ---- files, by the right that each needs ----

FILES: dict[str, Callable[[Callable[..., str]], None]] = {
    "make-reg": lambda at: write(at("new")),
    "write-file": lambda at: write(at("victim"), os.O_WRONLY),
    "append": lambda at: write(at("victim"), os.O_WRONLY | os.O_APPEND),
    "make-dir": lambda at: os.mkdir(at("newdir")),
    "make-sym": lambda at: os.symlink("x", at("newlink")),
    "make-fifo": lambda at: os.mkfifo(at("newfifo")),
    "make-sock": lambda at: os.mknod(at("newsock"), stat.S_IFSOCK | 0o600),
    "refer": lambda at: os.rename(at("a", "moved"), at("b", "moved")),
    "rename": lambda at: os.rename(at("renamed"), at("renamed2")),
    "link": lambda at: os.link(at("victim"), at("b", "linked")),
    "remove-file": lambda at: os.unlink(at("doomed")),
    "remove-dir": lambda at: os.rmdir(at("doomed-dir")),
}


def truncate(at: Callable[..., str]) -> None:
    os.truncate(at("full"), 0)


def metadata(at: Callable[..., str]) -> None:
    os.chmod(at("victim"), 0o777)


def times(at: Callable[..., str]) -> None:
    os.utime(at("victim"), (1, 1))


def change_a_mount() -> None:
    """Whatever lies in them: the mounts themselves say whether anything outside can be changed."""
    places = [place for place in ("/", "/usr", "/etc", "/home") if os.path.isdir(place)]
    if all(os.statvfs(place).f_flag & os.ST_RDONLY for place in places):
        raise OSError("every mount is read-only")


# ---- everything else ----


def read(name: str) -> None:
    with open(name) as file:
        if not file.read():
            raise OSError("there is nothing in it")


def connect(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        client.send(b"x")


def connect_in_directory() -> None:
    """By the directory's descriptor: an address takes 107 bytes, a path may be longer."""
    directory = os.open(given["outside"], os.O_PATH | os.O_DIRECTORY)
    connect(socket.AF_UNIX, socket.SOCK_STREAM, f"/proc/self/fd/{directory}/socket")


def make_socket(family: int, kind: int) -> None:
    socket.socket(family, kind).close()


def make_pair() -> None:
    for end in socket.socketpair():
        end.close()


def push_character() -> None:
    """Refused by the filter before the kernel looks at the descriptor; anything else means that it was not."""
    try:
        fcntl.ioctl(0, 0x5412, b"x")  # TIOCSTI
    except PermissionError:
        raise
    except OSError:
        return


def control(device: str, request: int, argument: bytes) -> None:
    """Open for reading, which the jail may allow, and tell it something."""
    fd = os.open(device, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        fcntl.ioctl(fd, request, argument)
    finally:
        os.close(fd)


def read_memory() -> None:
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(given["address"], 8)
    checked(libc.process_vm_readv(given["pid"], local, 1, remote, 1, 0))


def attach_shared_memory() -> None:
    checked(libc.shmget(given["shm_key"], 0, 0))


def listen_inside() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        connect(socket.AF_INET, socket.SOCK_STREAM, server.getsockname())


def leave_a_daemon() -> None:
    """It holds standard output: the host sees when the last of us is gone."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(30)
    os._exit(0)


def attempts() -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for name, action in {**FILES, "truncate": truncate, "metadata": metadata, "times": times}.items():
        found[name] = lambda action=action: action(path)  # type: ignore[misc]
        found[f"may_{name}"] = lambda action=action: action(inside)  # type: ignore[misc]
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    found |= {
        "mounts": change_a_mount,
        "keys": lambda: read(given["key"]),
        "may_keys": lambda: read(given["plain"]),
        "hidden": lambda: read(path("hidden")),
        "may_hidden": lambda: read(path("full-copy")),
        "read-only-inside": lambda: write(inside("narrow", "new")),
        "may_read-only-inside": lambda: write(inside("wide")),
        "project-config": lambda: write(inside("corral.toml"), os.O_WRONLY),
        "processes": lambda: os.stat(f"/proc/{given['pid']}/stat"),
        "may_processes": lambda: os.stat("/proc/self/stat"),
        "signals": lambda: os.kill(given["pid"], 0),
        "may_signals": lambda: os.kill(os.getpid(), 0),
        "memory": read_memory,
        "tcp": lambda: connect(socket.AF_INET, stream, ("127.0.0.1", given["tcp"])),
        "tcp6": lambda: connect(socket.AF_INET6, stream, ("::ffff:127.0.0.1", given["tcp"])),
        "udp": lambda: connect(socket.AF_INET, datagram, ("127.0.0.1", given["udp"])),
        "may_tcp": listen_inside,
        "families": lambda: make_socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "vsock": lambda: make_socket(40, stream),
        "may_families": make_pair,
        "abstract-sockets": lambda: connect(socket.AF_UNIX, stream, "\0" + given["abstract"]),
        "pathname-sockets": connect_in_directory,
        "control-sockets": lambda: connect(socket.AF_UNIX, stream, given["control"]),
        "terminals": lambda: write(given["terminal"], os.O_RDWR | os.O_NOCTTY),
        "devices": lambda: control(given["device"], 0x5414, bytes(8)),  # TIOCSWINSZ
        "may_devices": lambda: control("/dev/urandom", 0x80045200, bytes(4)),  # RNDGETENTCNT
        "terminal-input": push_character,
        "ipc": attach_shared_memory,
        "temp": lambda: os.stat(given["temp"]),
        "may_temp": lambda: write(os.path.join(os.environ.get("TMPDIR", "/tmp"), "corral-probe")),
        "may_tree": leave_a_daemon,
    }
    return found


def main() -> None:
    given.update(json.loads(sys.argv[1]))
    said: dict[str, str] = {}
    table = attempts()
    for name in given["attempts"]:
        try:
            table[name]()
            said[name] = ""
        except Exception as error:  # noqa: BLE001 - whatever stops an attempt is its answer
            said[name] = f"{type(error).__name__}: {error}"
    os.write(1, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main()
