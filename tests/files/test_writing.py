"""What a write keeps, drops and refuses; removing, renaming and listing beside it."""

from __future__ import annotations

import errno
import io
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cases import case
from corral.errors import FileTooLarge
from files.yard import INSIDE, NOBODY, Yard, class_raised_by_nobody, give_to_nobody, names_below
from hostfacts import skip_unless_host
from leaks import no_leaks

if TYPE_CHECKING:
    from corral.files.content import Content

pytestmark = pytest.mark.jail


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@case("jinn-53")
def test_a_new_file_has_the_usual_mode_and_nothing_lies_beside_it(yard: Yard) -> None:
    files = yard.files()
    before = os.umask(0o022)
    try:
        with no_leaks():
            assert files.write_file("a/b/new", "hello world") == 11
        assert mode_of(yard.root / "a/b/new") == 0o644
        assert mode_of(yard.root / "a") == 0o755
        os.umask(0o077)
        files.write_file("private", "x")
        assert mode_of(yard.root / "private") == 0o600
    finally:
        os.umask(before)
    assert names_below(yard.root) == ["a", "a/b", "a/b/new", "private"]


@case("jinn-54")
@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o666])
def test_the_mode_is_kept(yard: Yard, mode: int) -> None:
    target = yard.file("f")
    target.chmod(mode)
    yard.files().write_file("f", "new")
    assert mode_of(target) == mode
    assert target.read_text() == "new"


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1644])
def test_special_bits_are_not_handed_on_to_new_content(yard: Yard, mode: int) -> None:
    target = yard.file("f")
    target.chmod(mode)
    yard.files().write_file("f", "new")
    assert mode_of(target) == mode & 0o777


def test_the_owner_is_kept_where_we_may(yard: Yard) -> None:
    skip_unless_host("root-attacks")
    target = yard.file("f")
    os.chown(target, NOBODY, NOBODY)
    yard.files().write_file("f", "new")
    assert (target.stat().st_uid, target.stat().st_gid) == (NOBODY, NOBODY)


def test_attributes_and_access_lists_are_kept(yard: Yard) -> None:
    target = yard.file("f")
    target.chmod(0o600)
    os.setxattr(target, "user.note", b"mine")
    subprocess.run(["setfacl", "-m", f"u:{NOBODY}:r", target], check=True)
    before = os.getxattr(target, "system.posix_acl_access")
    yard.files().write_file("f", "new")
    assert os.getxattr(target, "user.note") == b"mine"
    assert os.getxattr(target, "system.posix_acl_access") == before


def test_a_default_of_the_directory_opens_no_file_that_had_no_access_list(yard: Yard) -> None:
    target = yard.file("f")
    target.chmod(0o640)
    subprocess.run(["setfacl", "-d", "-m", f"u:{NOBODY}:rwx", yard.root], check=True)
    files = yard.files()
    files.write_file("f", "new")
    assert "system.posix_acl_access" not in os.listxattr(target)
    files.write_file("fresh", "new")
    assert "system.posix_acl_access" in os.listxattr(yard.root / "fresh"), "and a new file has it"


@pytest.mark.parametrize("as_nobody", [False, True])
def test_a_file_that_is_protected_by_its_mode_is_not_replaced_not_even_by_root(
    yard: Yard, as_nobody: bool
) -> None:
    target = yard.file("f")
    give_to_nobody(yard.root, target)
    target.chmod(0o444)
    files = yard.files()
    if as_nobody:
        assert class_raised_by_nobody(lambda: files.write_file("f", "x")) == "PermissionError"
    else:
        with pytest.raises(PermissionError) as caught:
            files.write_file("f", "x")
        assert caught.value.errno == errno.EACCES
    assert target.read_bytes() == INSIDE
    assert names_below(yard.root) == ["f"]


def test_create_only_makes_a_file_once(yard: Yard) -> None:
    files = yard.files()
    files.write_file("d/f", "one", existing="refuse")
    for existing in ("d/f", "d"):
        with pytest.raises(FileExistsError):
            files.write_file(existing, "two", existing="refuse")
    with pytest.raises(FileExistsError):
        files.open("d/f", "x")
    assert files.read_file("d/f") == "one"
    assert names_below(yard.root) == ["d", "d/f"]


def test_create_only_holds_when_somebody_is_faster(yard: Yard) -> None:
    files = yard.files()
    with pytest.raises(FileExistsError), files.open("f", "x") as handle:
        handle.write("mine")
        yard.file("f", b"theirs")
    assert files.read_file("f") == "theirs"
    assert names_below(yard.root) == ["f"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: "text é", "text é".encode()),
        (lambda: b"bytes\0\xff", b"bytes\0\xff"),
        (lambda: bytearray(b"array"), b"array"),
        (lambda: memoryview(b"view"), b"view"),
        (lambda: io.BytesIO(b"file"), b"file"),
        (lambda: io.StringIO("té"), "té".encode()),
        (lambda: "", b""),
    ],
)
def test_any_kind_of_content_is_written(yard: Yard, make: Callable[[], Content], expected: bytes) -> None:
    files = yard.files()
    assert files.write_file("f", make()) == len(expected)
    assert files.read_bytes("f") == expected


def test_content_that_fails_half_way_leaves_the_old(yard: Yard) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise RuntimeError("gone")
            return super().read(3)

    target = yard.file("f")
    with pytest.raises(RuntimeError):
        yard.files().write_file("f", Broken(b"longer than that"))
    assert target.read_bytes() == INSIDE
    assert names_below(yard.root) == ["f"]


def test_an_open_file_reads_and_writes_text_and_bytes_as_they_are(yard: Yard) -> None:
    files = yard.files()
    with files.open("f", "w") as handle:
        assert handle.write("a\r\nb") == 4
        assert not (yard.root / "f").exists()
        with pytest.raises(TypeError):
            handle.write(b"bytes")
    with files.open("f", "rb") as binary:
        assert binary.read() == b"a\r\nb"
    with files.open("f") as text:
        assert text.read() == "a\r\nb"
    for mode in ("a", "r+", "w+", "", "rwb"):
        with pytest.raises(ValueError, match="mode"):
            files.open("f", mode)  # type: ignore[call-overload]


def test_a_limit_refuses_more_than_that(yard: Yard) -> None:
    yard.file("f", b"x" * 100)
    files = yard.files()
    assert len(files.read_bytes("f", limit=100)) == 100
    with pytest.raises(FileTooLarge, match="more than 99") as caught:
        files.read_bytes("f", limit=99)
    assert isinstance(caught.value, OSError)
