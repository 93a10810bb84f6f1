"""One table for both ways to open: what the kernel says about a path, and what we say."""

from __future__ import annotations

import errno
import os
import time

import pytest

from corral.errors import BadPath, LinkLoop, PathEscape
from corral.paths.opening import SYS_OPENAT2, best_opener, descend
from files.yard import INSIDE, OUTSIDE, Yard

pytestmark = pytest.mark.jail

# What is opened for reading, and what comes of it: content, or an error.
READS: list[tuple[str, bytes | type[BaseException]]] = [
    ("file", INSIDE),
    ("./file", INSIDE),
    ("d//e//file", INSIDE),
    ("d/../file", INSIDE),
    ("d/e/../../file", INSIDE),
    ("...", INSIDE),
    ("..foo", INSIDE),
    ("new\nline", INSIDE),
    ("\x1b[31m", INSIDE),
    (os.fsdecode(b"\xff\xfe"), INSIDE),
    ("d/to-file", INSIDE),
    ("to-d/e/file", INSIDE),
    ("chain-1", INSIDE),
    ("absolute-in", INSIDE),
    ("absolute-in-d/e/file", INSIDE),
    ("to-d/../file", INSIDE),  # a link's parent is where it leads
    ("../outside/secret", PathEscape),
    ("..", PathEscape),
    ("d/../../outside/secret", PathEscape),
    ("/etc/passwd", PathEscape),
    ("out", PathEscape),
    ("out-d/secret", PathEscape),
    ("out-relative", PathEscape),
    ("out-and-in/root/file", PathEscape),
    ("dangling-out", PathEscape),
    ("magic", PathEscape),
    ("chain-out-1", PathEscape),
    ("missing/../file", PathEscape),
    ("loop-1", LinkLoop),
    ("loop-1/x", LinkLoop),
    ("itself", LinkLoop),
    ("missing", FileNotFoundError),
    ("missing/x", FileNotFoundError),
    ("dangling-in", FileNotFoundError),
    ("file/x", NotADirectoryError),
    ("file/", NotADirectoryError),
    ("file/.", NotADirectoryError),
    ("to-file/x", NotADirectoryError),
    ("", BadPath),
    ("a\0b", BadPath),
    ("\ud800", BadPath),
    ("x" * 256, OSError),
    ("x/" * 2100, OSError),
    ("x" * 4096, OSError),
]


def furnish(yard: Yard) -> None:
    for name in ("file", "d/e/file", "...", "..foo", "new\nline", "\x1b[31m", os.fsdecode(b"\xff\xfe")):
        yard.file(name)
    yard.link("d/to-file", "../file")
    yard.link("to-file", "file")
    yard.link("to-d", "d")
    yard.link("chain-1", "chain-2")
    yard.link("chain-2", "to-d/to-file")
    yard.link("absolute-in", yard.root / "file")
    yard.link("absolute-in-d", yard.root / "d")
    yard.link("out", yard.outside / "secret")
    yard.link("out-d", yard.outside)
    yard.link("out-relative", "../outside/secret")
    yard.link("out-and-in", "..")
    yard.link("dangling-out", yard.outside / "missing")
    yard.link("dangling-in", "missing")
    yard.link("magic", "/proc/self/root/etc/passwd")
    yard.link("chain-out-1", "chain-out-2")
    yard.link("chain-out-2", "out")
    yard.link("loop-1", "loop-2")
    yard.link("loop-2", "loop-1")
    yard.link("itself", "itself")


def test_a_path_is_read_inside_or_refused_by_the_class_it_deserves(yard: Yard) -> None:
    furnish(yard)
    anchor = yard.anchor()
    for path, expected in READS:
        started = time.perf_counter()
        if isinstance(expected, bytes):
            fd, _ = anchor.open(path)
            assert os.read(fd, 100) == expected, path
            os.close(fd)
        else:
            with pytest.raises(expected) as caught:
                anchor.open(path)
            assert type(caught.value) is not OSError or caught.value.errno == errno.ENAMETOOLONG, path
        assert time.perf_counter() - started < 0.5, path


def test_what_was_opened_is_told_by_its_real_names(yard: Yard) -> None:
    furnish(yard)
    anchor = yard.anchor()
    for path, names in [("chain-1", ("file",)), ("to-d/e/file", ("d", "e", "file")), ("to-d/..", ())]:
        fd, found = anchor.open(path)
        os.close(fd)
        assert found == names


def test_every_name_on_the_way_is_shown_to_the_check(yard: Yard) -> None:
    furnish(yard)
    seen: list[tuple[str, ...]] = []
    fd, _ = yard.anchor().open("chain-1", check=lambda names, _: seen.append(names))
    os.close(fd)
    assert [names[-1] for names in seen][1:] == ["chain-1", "chain-2", "to-d", "d", "to-file", "file"]


CHANGES: list[tuple[str, type[BaseException] | None]] = [
    ("new", None),
    ("./z", None),
    ("d//e//y", None),
    ("d/../new", None),
    ("d/e/../../w", None),
    ("fresh/er/new", None),
    ("d/../fresh/new", None),
    ("../x", PathEscape),
    ("..", PathEscape),
    (".", PathEscape),
    ("d/..", PathEscape),
    ("d/../../x", PathEscape),
    ("/etc/x", PathEscape),
    ("to-d/x", PathEscape),
    ("out-d/x", PathEscape),
    ("absolute-in-d/x", PathEscape),
    ("loop-1/x", PathEscape),
    ("d/../to-d/x", PathEscape),
    ("missing/../x", PathEscape),
    ("file/x", NotADirectoryError),
    ("", BadPath),
]


def test_a_change_follows_no_link_at_all(yard: Yard) -> None:
    furnish(yard)
    anchor = yard.anchor()
    before = yard.below_outside()
    for path, refusal in CHANGES:
        if refusal is None:
            with anchor.parent(path, make=True) as parent:
                os.stat(parent.fd)
        else:
            with pytest.raises(refusal):
                anchor.parent(path, make=True)
    assert yard.below_outside() == before
    assert not (yard.root / "fresh").exists(), "nothing was kept, so nothing stays"
    assert not (yard.root / "missing").exists()


def test_no_permission_is_not_called_an_escape(yard: Yard) -> None:
    yard.file("closed/x")
    anchor = yard.anchor()

    def refused(_: int, path: str, __: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    anchor.opener = refused
    with pytest.raises(PermissionError) as caught:
        anchor.open("closed/x")
    assert not isinstance(caught.value, PathEscape)
    assert caught.value.errno == errno.EACCES


def test_a_call_that_crossed_a_rename_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    import corral.paths.opening as opening

    codes = [errno.EAGAIN, errno.EINTR, errno.EAGAIN]

    class Syscall:
        def __call__(self, number: int, *_: object) -> int:
            assert number == SYS_OPENAT2
            return -1 if codes else os.open("/", os.O_RDONLY)

    class Libc:
        syscall = Syscall()

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc)
    monkeypatch.setattr(ctypes, "get_errno", lambda: codes.pop())
    assert opening._bind_openat2() is not None
    assert codes == []


def test_without_openat2_there_is_the_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    import corral.paths.opening as opening

    class Libc:
        class Syscall:
            def __call__(self, *_: object) -> int:
                return -1

        syscall = Syscall()

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc)
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.ENOSYS)
    monkeypatch.setattr(opening, "_bound", [])
    assert best_opener() is descend


def test_the_anchor_stays_the_same_directory_when_its_path_does_not(yard: Yard) -> None:
    yard.file("file")
    anchor = yard.anchor()
    yard.root.rename(yard.root.with_name("moved"))
    yard.root.mkdir()
    yard.file("file", OUTSIDE)
    fd, _ = anchor.open("file")
    assert os.read(fd, 100) == INSIDE
    os.close(fd)


def test_a_long_way_through_links_ends_soon(yard: Yard) -> None:
    deep = "/".join(["a"] * 700)
    yard.file(f"{deep}/f")
    for n in range(40):
        yard.link(f"l{n}", f"{deep}/{'/'.join(['..'] * 700)}/l{n + 1}")
    yard.link("l40", "a")
    started = time.perf_counter()
    with pytest.raises(LinkLoop):
        yard.anchor().open("l0")
    assert time.perf_counter() - started < 10
