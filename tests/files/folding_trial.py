"""Run as a program, in a mount namespace of its own: makes a file system that does not tell cases apart, and tries the
file layer on it. `folding_trial.py ext4|vfat|fuse DIRECTORY` ends with 0 if all is well, 77 if there is no such file
system here.

The one by FUSE is served from here and can only be read: it folds what another directory holds.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import sys
from pathlib import Path

from corral.environment.files import FileHalf
from corral.errors import SensitivePath
from corral.paths.beneath import Anchor
from corral.paths.opening import best_opener, descend
from corral.paths.sensitive import folds_case
from corral.policy import Policy

NOT_HERE = 77
PLAIN, SECRET = b"plain", b"secret"
TREE = {
    ".git/config": SECRET,
    "sub/.env": SECRET,
    "sub/.env.local": SECRET,
    "Read.Me": PLAIN,
    "sub/other": PLAIN,
}
REFUSED = (".GIT/config", ".Git/CONFIG", ".git", "sub/.ENV", "SUB/.Env.Local", ".gIt/new", ".SSH/new")


def try_layer(top: Path, *, writes: bool) -> None:
    assert (top / ".GIT/CONFIG").read_bytes() == SECRET  # it does fold
    for opener in (best_opener(), descend):
        with Anchor(str(top), opener=opener) as anchor:
            assert folds_case(anchor.fd)
            files = FileHalf([anchor], Policy.off())
            for path in REFUSED:
                assert_refused(files, path)
            assert [entry.name.lower() for entry in files.list_dir()] == ["read.me", "sub"]
            assert files.read_bytes("READ.ME") == files.read_bytes("SUB/Other") == PLAIN
            if writes:
                files.write_file("Sub/New", PLAIN)
                assert (top / "sub/new").read_bytes() == PLAIN
                files.remove_file("sub/NEW")
    assert (top / ".git/config").read_bytes() == SECRET


def assert_refused(files: FileHalf, path: str) -> None:
    for use in (files.read_bytes, files.stat, lambda path: files.write_file(path, b"x"), files.remove_file):
        try:
            use(path)
        except SensitivePath:
            continue
        raise AssertionError(f"{path} was not refused")


def fill(top: Path) -> None:
    for name, content in TREE.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)


def on_image(kind: str, at: Path) -> None:
    image, top = at / "image", at / "top"
    top.mkdir()
    image.touch()
    os.truncate(image, 16 << 20)
    make = {"ext4": ["mkfs.ext4", "-q", "-O", "casefold"], "vfat": ["mkfs.vfat"]}[kind]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for command in ([*make, str(image)], ["mount", "-o", "loop", "-t", kind, str(image), str(top)]):
        try:
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PATH": path})
        except (OSError, subprocess.CalledProcessError):
            sys.exit(NOT_HERE)
    inner = top / "folding"
    inner.mkdir()
    if kind == "ext4":
        subprocess.run(["chattr", "+F", str(inner)], check=True)
    fill(inner)
    try_layer(inner, writes=True)


# ---- by FUSE ----

IN, ENTRY = "<IIQQIIII", "<QQQQII"
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
STATFS, OPENDIR, READDIR, RELEASEDIR, BATCH_FORGET = 17, 27, 28, 29, 42


class FoldingServer:
    """Node numbers are places in a list of paths; the root is number 1."""

    def __init__(self, source: Path, device: int) -> None:
        self._paths = [source, source]
        self._device = device

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self._device, 1 << 17)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return  # unmounted
                raise
            _, operation, unique, node, *_ = struct.unpack_from(IN, request)
            if operation in (FORGET, BATCH_FORGET):
                continue
            try:
                answer, code = self._answer(operation, node, request[struct.calcsize(IN) :]), 0
            except OSError as error:
                answer, code = b"", -(error.errno or errno.EIO)
            os.write(self._device, struct.pack("<IiQ", 16 + len(answer), code, unique) + answer)

    def _answer(self, operation: int, node: int, body: bytes) -> bytes:
        if operation == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 1 << 16, 1, 0, 0, 0)
        path = self._paths[node]
        if operation == LOOKUP:
            return self._entry(self._child(path, os.fsdecode(body.rstrip(b"\0"))))
        if operation == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return path.read_bytes()[offset : offset + size]
        if operation == READDIR:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._listing(path, offset, size)
        if operation == STATFS:
            return bytes(80)
        if operation in (RELEASE, RELEASEDIR, FLUSH):
            return b""
        raise OSError(errno.ENOSYS, "")

    def _child(self, path: Path, name: str) -> Path:
        for entry in path.iterdir():
            if entry.name.casefold() == name.casefold():
                return entry
        raise FileNotFoundError(errno.ENOENT, name)

    def _entry(self, path: Path) -> bytes:
        if path not in self._paths:
            self._paths.append(path)
        node = len(self._paths) - 1 - self._paths[::-1].index(path)
        return struct.pack(ENTRY, node, 0, 0, 0, 0, 0) + self._attributes(node)

    def _attributes(self, node: int) -> bytes:
        info = self._paths[node].stat()
        numbers = (node, info.st_size, 0, 0, 0, 0, 0, 0, 0, info.st_mode, info.st_nlink, 0, 0, 0, 4096, 0)
        return struct.pack("<QQQQQQIIIIIIIIII", *numbers)

    def _listing(self, path: Path, offset: int, size: int) -> bytes:
        listed = b""
        for at, name in enumerate(sorted(os.listdir(path))[offset:], offset + 1):
            raw = os.fsencode(name)
            record = struct.pack("<QQII", 1, at, len(raw), 0) + raw
            record += bytes(-len(record) % 8)
            if len(listed) + len(record) > size:
                break
            listed += record
        return listed


def on_fuse(at: Path) -> None:
    source, top = at / "source", at / "top"
    top.mkdir()
    fill(source)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        sys.exit(NOT_HERE)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"folding", os.fsencode(top), b"fuse", 0, options.encode()):
        sys.exit(NOT_HERE)
    server = os.fork()
    if server == 0:
        with contextlib.suppress(KeyboardInterrupt):
            FoldingServer(source, device).serve()
        os._exit(0)
    os.close(device)
    try:
        try_layer(top, writes=False)
    finally:
        libc.umount2(os.fsencode(top), 2)
        os.waitpid(server, 0)


if __name__ == "__main__":
    kind, place = sys.argv[1], Path(sys.argv[2])
    if kind == "fuse":
        on_fuse(place)
    else:
        on_image(kind, place)
