"""A write is whole or absent, whatever happens at whichever of its system calls."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import case
from corral.environment.files import FileHalf
from corral.files.atomic import PREFIX
from files.injection import Injector, descriptors, interrupt, no_space, was_killed
from files.yard import Yard, names_below

pytestmark = [pytest.mark.jail, pytest.mark.timeout(120)]

OLD, NEW = b"old" * 100, b"new" * 5000

Write = Callable[[FileHalf], object]

# What is written, and whether there is something before.
WRITES: dict[str, tuple[str, Write, bytes | None]] = {
    "over a file": ("d/f", lambda files: files.write_file("d/f", NEW), OLD),
    "a new file": ("d/f", lambda files: files.write_file("d/f", NEW), None),
    "piece by piece": ("d/f", lambda files: files.write_file("d/f", io.BytesIO(NEW)), OLD),
    "create only": ("d/f", lambda files: files.write_file("d/f", NEW, existing="refuse"), None),
    "with new parents": ("a/b/f", lambda files: files.write_file("a/b/f", NEW), None),
    "by a handle": ("d/f", lambda files: by_handle(files), OLD),
}


def by_handle(files: FileHalf) -> None:
    with files.open("d/f", "wb") as handle:
        for i in range(0, len(NEW), 6000):
            handle.write(NEW[i : i + 6000])


def set_up(yard: Yard, path: str, before: bytes | None) -> Path:
    target = yard.root / path
    (yard.root / "d").mkdir(exist_ok=True)
    if before is None:
        target.unlink(missing_ok=True)
    else:
        target.write_bytes(before)
    return target


def left_behind(root: Path) -> list[str]:
    return [name for name in names_below(root) if PREFIX in name]


@case("jinn-57")
@pytest.mark.parametrize("what", WRITES)
def test_killed_at_any_call_the_file_is_the_old_or_the_new(yard: Yard, what: str) -> None:
    path, write, before = WRITES[what]
    outcomes: list[bytes | None] = []
    leftovers = 0
    for at in range(1, 200):
        target = set_up(yard, path, before)
        files = yard.files()
        anchor = yard.anchors[-1]

        def prepare(injector: Injector, anchor: object = anchor) -> None:
            injector.wrap(anchor, "opener")

        killed = was_killed(lambda files=files: write(files), at, prepare)  # type: ignore[misc]
        content = target.read_bytes() if target.exists() else None
        assert content in (before, NEW), f"{what}, killed at call {at}"
        outcomes.append(content)
        leftovers += len(left_behind(yard.root))
        if target.parent.exists():
            yard.files().write_file(target.parent.relative_to(yard.root) / "next", b"x")
        assert left_behind(yard.root) == [], f"{what}, killed at call {at}"
        if not killed:
            break
    else:
        pytest.fail("the write has no end")
    assert outcomes[0] == before
    assert NEW in outcomes[:-1], "some call comes after the rename"
    assert outcomes[-1] == NEW
    assert leftovers > 0, "no kill left a temp file, so nothing was shown to be cleaned up"


@pytest.mark.parametrize("act", [no_space, interrupt])
@pytest.mark.parametrize("what", WRITES)
def test_failed_at_any_call_nothing_is_left(
    yard: Yard, what: str, act: Callable[[str, tuple[object, ...]], None]
) -> None:
    path, write, before = WRITES[what]
    for at in range(1, 200):
        target = set_up(yard, path, before)
        files = yard.files()
        standing, held = names_below(yard.root), descriptors()
        failed = False
        with Injector(at, act, leave=("close", "rmdir")) as injector:
            injector.wrap(yard.anchors[-1], "opener")
            try:
                write(files)
            except (OSError, KeyboardInterrupt):
                failed = True
        done = target.exists() and target.read_bytes() == NEW
        assert done or not failed or (target.read_bytes() if target.exists() else None) == before
        assert left_behind(yard.root) == [], f"{what}, failed at call {at}"
        if not done:
            assert names_below(yard.root) == standing, f"{what}, failed at call {at}"
        assert descriptors() == held, f"{what}, failed at call {at}"
        if done and "/" in path and path.startswith("a/"):
            for part in (target, target.parent, target.parent.parent):
                part.unlink() if part.is_file() else part.rmdir()
        if injector.count < at:
            break
    else:
        pytest.fail("the write has no end")


def test_a_write_that_is_under_way_is_not_swept(yard: Yard) -> None:
    one, other = yard.files(), yard.files()
    with one.open("f", "wb") as handle:
        handle.write(NEW)
        other.write_file("g", b"x")
        assert [entry.name for entry in other.list_dir()] == ["g"]
        assert len(left_behind(yard.root)) == 1
    assert (yard.root / "f").read_bytes() == NEW


def test_what_a_killed_writer_left_goes_with_a_listing_too(yard: Yard) -> None:
    left = yard.file(f"{PREFIX}{'0' * 16}")
    others = [yard.file(name) for name in (f"{PREFIX}mine", f"{PREFIX}{'g' * 16}", f"{PREFIX}{'0' * 17}")]
    yard.link(f"{PREFIX}{'1' * 16}", yard.outside / "secret")
    yard.files().list_dir()
    assert not left.exists()
    assert all(other.exists() for other in others), "only names that we give are ours"
    assert (yard.outside / "secret").exists()


def test_a_handle_that_is_left_by_an_exception_or_forgotten_changes_nothing(yard: Yard) -> None:
    target = yard.file("f", OLD)
    files = yard.files()
    with pytest.raises(ZeroDivisionError), files.open("f", "w") as handle:
        handle.write("half")
        raise ZeroDivisionError
    forgotten = files.open("f", "w")
    forgotten.write("half")
    with pytest.warns(ResourceWarning, match="never closed"):
        del forgotten
    assert target.read_bytes() == OLD
    assert names_below(yard.root) == ["f"]


def test_the_injection_really_kills() -> None:
    assert was_killed(lambda: os.stat("/"), 1, lambda _: None)
    assert not was_killed(lambda: os.stat("/"), 2, lambda _: None)
