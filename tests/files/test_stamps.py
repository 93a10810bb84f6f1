"""What was read is not written over once somebody else has changed it; and what kind of content it is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cases import case
from corral.errors import Refused, StaleFile
from corral.files.sniff import sniff
from corral.files.stamps import KEPT_SECONDS, Stamps
from files.yard import Yard

pytestmark = pytest.mark.jail


def later(path: Path) -> None:
    """So that the times differ whatever the clock's step is."""
    info = path.stat()
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1_000_000))


@case("jinn-58")
def test_a_file_that_somebody_changed_since_the_read_is_not_written_over(yard: Yard) -> None:
    target = yard.file("d/f", b"one")
    files = yard.files(stamps=Stamps())
    assert files.read_file("d/f") == "one"
    files.write_file("d/f", "two")
    files.write_file("d/f", "three")  # what we wrote ourselves we know
    target.write_bytes(b"theirs")
    later(target)
    with pytest.raises(StaleFile) as caught:
        files.write_file("d/f", "four")
    assert str(caught.value) == "file modified since last read (mtime changed). Re-read before writing: f"
    assert (caught.value.path, caught.value.rule) == ("d/f", "changed since read")
    assert isinstance(caught.value, Refused)
    assert target.read_bytes() == b"theirs"
    assert files.read_file("d/f") == "theirs"
    files.write_file("d/f", "four")
    assert os.listdir(target.parent) == ["f"]


@case("jinn-59")
def test_what_was_never_read_or_is_gone_may_be_written(yard: Yard) -> None:
    yard.file("unread")
    gone = yard.file("gone")
    files = yard.files(stamps=Stamps())
    files.write_file("unread", "x")
    files.read_file("gone")
    gone.unlink()
    files.write_file("gone", "x")
    files.write_file("new", "x")


@case("jinn-60")
@pytest.mark.parametrize("content", [b"other length", b"ENO"])
def test_a_restored_time_does_not_hide_a_change(yard: Yard, content: bytes) -> None:
    target = yard.file("f", b"one")
    files = yard.files(stamps=Stamps())
    files.read_file("f")
    before = target.stat()
    target.write_bytes(content)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(StaleFile, match=r"\((size|ctime) changed\)"):
        files.write_file("f", "two")


def test_a_change_that_is_none_of_the_content_passes(yard: Yard) -> None:
    target = yard.file("f", b"one")
    files = yard.files(stamps=Stamps())
    files.read_file("f")
    time.sleep(0.02)
    target.chmod(0o600)
    files.write_file("f", "two")
    assert target.read_bytes() == b"two"


def test_a_file_that_was_replaced_is_another_one(yard: Yard) -> None:
    target = yard.file("f", b"one")
    files = yard.files(stamps=Stamps())
    files.read_file("f")
    before = target.stat()
    twin = yard.file("twin", b"one")
    os.utime(twin, ns=(before.st_atime_ns, before.st_mtime_ns))
    twin.rename(target)
    with pytest.raises(StaleFile, match="file changed"):
        files.write_file("f", "two")


def test_a_change_while_the_new_content_is_being_written_is_seen(yard: Yard) -> None:
    target = yard.file("f", b"one")
    files = yard.files(stamps=Stamps())
    files.read_file("f")
    with pytest.raises(StaleFile), files.open("f", "w") as handle:
        handle.write("two")
        target.write_bytes(b"theirs")
        later(target)
    assert target.read_bytes() == b"theirs"
    assert os.listdir(yard.root) == ["f"]


def test_one_shot_programs_are_protected_too(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path / "state"))
    target = yard.file("f", b"one")
    yard.files(stamps=Stamps.kept_for(str(yard.root), "agent")).read_file("f")
    (store,) = (tmp_path / "state/stamps").iterdir()
    assert store.stat().st_mode & 0o777 == 0o600
    target.write_bytes(b"theirs")
    later(target)
    yard.files(stamps=Stamps.kept_for(str(yard.outside), "agent"))
    with pytest.raises(StaleFile):
        yard.files(stamps=Stamps.kept_for(str(yard.root), "agent")).write_file("f", "two")
    old = time.time() + KEPT_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: old)
    yard.files(stamps=Stamps.kept_for(str(yard.root), "agent")).write_file("f", "two")
    store.write_text("broken")
    yard.files(stamps=Stamps.kept_for(str(yard.root), "agent")).write_file("f", "three")


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "no-extension", ("image", "image/png")),
        (b"\xff\xd8\xff\xe0", "x", ("image", "image/jpeg")),
        (b"GIF89a", "x", ("image", "image/gif")),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "x", ("image", "image/webp")),
        (b"RIFF\x10\0\0\0WAVE", "x", ("binary", "application/octet-stream")),
        (b"BM\x10\0\0\0", "x", ("image", "image/bmp")),
        (b"BMW is a car", "x", ("text", "text/plain")),
        (b"<svg/>", "drawing.SVG", ("image", "image/svg+xml")),
        (b"just text", "named.png", ("text", "text/plain")),
        (b"%PDF-1.7", "x", ("pdf", "application/pdf")),
        (b"anything", "x.pdf", ("pdf", "application/pdf")),
        (b"a\0b", "x", ("binary", "application/octet-stream")),
        (b"a" * 512 + b"\0", "x", ("text", "text/plain")),
        (b"", "x", ("text", "text/plain")),
    ],
)
def test_content_tells_what_it_is(head: bytes, name: str, expected: tuple[str, str]) -> None:
    assert sniff(head, name) == expected


def test_what_is_kept_for_the_next_process_is_written_anew_now_and_then(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.files.stampfile.ANEW_BYTES", 4000)
    monkeypatch.setattr("corral.files.stampfile.KEPT_AT_MOST", 5)
    store = tmp_path / "store"
    files = yard.files(stamps=Stamps(str(store)))
    for number in range(100):
        yard.file(f"f{number}")
        files.read_file(f"f{number}")
        files.read_file(f"f{number}")  # the same again is not written again
    assert store.stat().st_size < 5000
    assert [path for path in os.listdir(tmp_path) if path.startswith("store")] == ["store"]
    for number in (99, 98):
        changed = yard.root / f"f{number}"
        changed.write_bytes(b"theirs")
        later(changed)
        with pytest.raises(StaleFile):
            yard.files(stamps=Stamps(str(store))).write_file(f"f{number}", "two")
    files.remove_file("f97")
    yard.file("f97", b"new")
    yard.files(stamps=Stamps(str(store))).write_file("f97", "two")


def test_only_so_many_clients_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("corral.files.stampfile.STORES_AT_MOST", 3)
    info = tmp_path.stat()
    for number in range(10):
        Stamps.kept_for(str(tmp_path), f"client-{number}").remember("x", info)
    assert len(os.listdir(tmp_path / "state/stamps")) <= 4
