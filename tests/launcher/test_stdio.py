"""stdio: 0-2 carry the host's mounts, so what lies there is checked and, where it can be, opened again inside."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from hostfacts import skip_unless_host
from launcher.driver import Finished, launch, namespaces, opened, python, refused_step

pytestmark = pytest.mark.jail

ENOENT, EBADF, ENOTBLK, EISDIR, ESTALE = 2, 9, 15, 21, 116
SHOW_STDIN = python(
    "import os; print(os.readlink('/proc/self/fd/0'), os.lseek(0, 0, 1)); print(os.read(0, 100))"
)


@contextmanager
def open_descriptor(path: str | Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_text("0123456789")
    return file


@pytest.mark.parametrize("reopen", [0, 1])
@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_directory_as_a_standard_descriptor_is_refused(reopen: int, stream: str, tmp_path: Path) -> None:
    with open_descriptor(tmp_path, os.O_RDONLY) as fd:
        streams = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            stream: fd,
        }
        done = launch(["stdio", reopen], ["touch", tmp_path / "witness"], capture_output=False, **streams)
        assert done.returncode == 125
        if stream != "stderr":
            assert b" 21" in done.stderr
    assert not (tmp_path / "witness").exists()


def test_a_descriptor_that_is_only_a_name_is_refused(file: Path) -> None:
    with open_descriptor(file, os.O_PATH) as fd:
        assert refused_step(launch(["stdio", 0], ["true"], stdin=fd)) == (0, EBADF)
    with open_descriptor(file, os.O_RDONLY) as fd:
        assert launch(["stdio", 0], ["cat"], stdin=fd).stdout == b"0123456789"


def test_a_block_device_is_refused() -> None:
    skip_unless_host("block-device")
    devices = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    refused = 0
    for device in devices:
        try:
            fd = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            assert refused_step(launch(["stdio", 0], ["true"], stdin=fd)) == (0, ENOTBLK)
        finally:
            os.close(fd)
        refused += 1
    assert refused, "no block device here can be opened"


def test_pipes_sockets_terminals_and_devices_pass() -> None:
    echo = python("import os; os.write(1, os.read(0, 100))")
    assert launch(["stdio", 1], echo, stdin=None, input=b"piped").stdout == b"piped"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"socket")
        assert launch(["stdio", 1], echo, stdin=theirs.fileno()).stdout == b"socket"
    leader, terminal = os.openpty()
    try:
        os.write(leader, b"typed\n")
        assert launch(["stdio", 1], echo, stdin=terminal).stdout == b"typed\n"
    finally:
        os.close(leader)
        os.close(terminal)
    assert launch(["stdio", 1], echo, stdin=subprocess.DEVNULL).stdout == b""


def test_a_regular_file_is_opened_again_with_its_offset_kept(file: Path) -> None:
    with open_descriptor(file, os.O_RDONLY) as fd:
        os.lseek(fd, 4, os.SEEK_SET)
        done = launch(["stdio", 1], SHOW_STDIN, stdin=fd)
        assert done.stdout.decode().splitlines() == [f"{file} 4", "b'456789'"]
        assert os.lseek(fd, 0, os.SEEK_CUR) == 4, "it was our own descriptor that was read"
        launch(["stdio", 0], SHOW_STDIN, stdin=fd)
        assert os.lseek(fd, 0, os.SEEK_CUR) == 10


def test_a_file_opened_again_inside_is_on_the_mounts_of_the_jail(file: Path) -> None:
    """Without it the command writes the host's file through /proc/self/fd/0, past a read-only mount."""
    skip_unless_host("user-namespaces")
    write = python("import os; os.write(os.open('/proc/self/fd/0', os.O_WRONLY), b'changed')")

    def attempt(reopen: int) -> Finished:
        with open_descriptor(file, os.O_RDONLY) as fd:
            plan = [*namespaces("mnt"), "readonly", "init", "stdio", reopen]
            return launch(plan, write, stdin=fd)

    done = attempt(1)
    assert b"Read-only file system" in done.stderr, done
    assert file.read_text() == "0123456789"
    assert attempt(0).returncode == 0
    assert file.read_text() == "changed789"


def test_a_file_that_is_hidden_inside_is_refused(file: Path, tmp_path: Path) -> None:
    skip_unless_host("user-namespaces")
    cover = ["mount", 0, "tmpfs", "", 0, *opened(1, tmp_path), "attach", 0, 1]
    with open_descriptor(file, os.O_RDONLY) as fd:
        done = launch([*namespaces("mnt"), *cover, "init", "stdio", 1], ["true"], stdin=fd)
        assert refused_step(done) == (6, ENOENT)


def test_a_file_that_is_another_one_inside_is_refused(file: Path, tmp_path: Path) -> None:
    skip_unless_host("user-namespaces")
    cover = [
        "mount",
        0,
        "tmpfs",
        "",
        0,
        *opened(1, tmp_path),
        "attach",
        0,
        1,
        "make",
        2,
        0,
        "file",
        "file",
        0o644,
    ]
    with open_descriptor(file, os.O_RDONLY) as fd:
        done = launch([*namespaces("mnt"), *cover, "init", "stdio", 1], ["true"], stdin=fd)
        assert refused_step(done) == (7, ESTALE)


def test_a_file_that_was_replaced_since_it_was_opened_is_refused(file: Path, tmp_path: Path) -> None:
    with open_descriptor(file, os.O_RDONLY) as fd:
        os.link(file, tmp_path / "kept")
        file.unlink()
        file.write_text("0123456789")
        assert launch(["stdio", 1], ["cat"], stdin=fd).returncode == 125


def test_a_file_behind_a_symlink_is_opened_again_by_its_real_name(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    with open_descriptor(tmp_path / "link", os.O_RDONLY) as fd:
        assert launch(["stdio", 1], ["cat"], stdin=fd).stdout == b"0123456789"


def test_a_file_without_a_name_passes(file: Path) -> None:
    """A here-document, a memfd."""
    with open_descriptor(file, os.O_RDONLY) as fd:
        file.unlink()
        assert launch(["stdio", 1], ["cat"], stdin=fd).stdout == b"0123456789"
    memory = os.memfd_create("here")
    try:
        os.write(memory, b"document")
        os.lseek(memory, 0, os.SEEK_SET)
        assert launch(["stdio", 1], ["cat"], stdin=memory).stdout == b"document"
    finally:
        os.close(memory)


def test_a_file_open_for_writing_stays_the_same_file(tmp_path: Path) -> None:
    with open_descriptor(tmp_path / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
        done = launch(
            ["stdio", 1], ["echo", "written"], capture_output=False, stdout=fd, stderr=subprocess.PIPE
        )
    assert (done.returncode, (tmp_path / "out").read_text()) == (0, "written\n")


def test_a_closed_standard_descriptor_is_empty_and_not_a_slot(tmp_path: Path) -> None:

    closing = ["sh", "-c", 'exec "$@" <&-', "sh", launcher_path(), *opened(0, tmp_path), "stdio", 1, "--"]
    done = launch([], [*closing, *python("import os; print(os.readlink('/proc/self/fd/0'), os.read(0, 9))")])
    assert done.stdout == b"/dev/null b''\n"
