"""A second process flips directory, link and file under every read and write: not one byte crosses."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import case
from corral.environment.files import FileHalf
from corral.errors import CorralError
from corral.paths.beneath import Anchor
from corral.policy import Policy
from files.racer import racing
from files.yard import INSIDE, OPENERS, OUTSIDE

pytestmark = [pytest.mark.jail, pytest.mark.timeout(300)]

TIMES = 20_000
AT_LEAST = 1000
PLAIN_TRIES = 200_000


@pytest.fixture
def arena() -> Iterator[Path]:
    """In memory: the race is with the names, and a disk that syncs would only make it slower."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(dir=base)).resolve()
    for path, content in (
        ("up/root/d/f", INSIDE),
        ("up/outside/f", OUTSIDE),
        ("other/root/d/f", OUTSIDE),
        ("up/root/file", INSIDE),
    ):
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_bytes(content)
    (made / "up/root/link").symlink_to(made / "up/outside")
    (made / "up/root/relative").symlink_to("../outside")
    (made / "up/root/to-d").symlink_to("d")
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=OPENERS)
def anchor(request: pytest.FixtureRequest, arena: Path) -> Iterator[Anchor]:
    with Anchor(str(arena / "up/root"), opener=OPENERS[request.param]()) as made:
        yield made


def resolve_then_open(root: str, path: str) -> bytes:
    """What everybody writes first."""
    real = os.path.realpath(path)
    if not real.startswith(root + "/"):
        raise PermissionError(path)
    with open(path, "rb") as file:
        return file.read()


def plain_check_is_broken(arena: Path) -> bool:
    root = str(arena / "up/root")
    for _ in range(PLAIN_TRIES):
        try:
            if resolve_then_open(root, f"{root}/d/f") == OUTSIDE:
                return True
        except OSError:
            pass
    return False


@case("tracker-41", "peers-F4")
def test_nothing_is_read_or_written_outside_while_a_directory_flips(arena: Path, anchor: Anchor) -> None:
    files = FileHalf([anchor], Policy.off())
    root = arena / "up/root"
    outside_before = (arena / "up/outside").stat().st_mtime_ns
    read = written = 0
    with racing(root / "d", root / "link", root / "file", root / "relative") as flips:
        for n in range(TIMES):
            try:
                content = files.read_bytes(("d/f", "to-d/f", "d/../d/f")[n % 3])
                assert content == INSIDE
                read += 1
            except (CorralError, OSError):
                pass
        for n in range(TIMES):
            try:
                files.write_file(("d/w", "d/../d/w", f"d/new{n % 7}/w")[n % 3], b"written")
                written += 1
            except (CorralError, OSError):
                pass
        flipped = flips.count
        broken = plain_check_is_broken(arena)
    assert sorted(path.name for path in (arena / "up/outside").iterdir()) == ["f"]
    assert (arena / "up/outside").stat().st_mtime_ns == outside_before
    assert (arena / "up/outside/f").read_bytes() == OUTSIDE
    assert min(read, written, flipped) >= AT_LEAST, (read, written, flipped)
    assert broken, "the racer is too slow to break anything, so the rest says nothing"


def test_the_anchor_is_held_while_its_parent_flips(arena: Path, anchor: Anchor) -> None:
    files = FileHalf([anchor], Policy.off())
    read = 0
    with racing(arena / "up", arena / "other") as flips:
        for n in range(TIMES):
            assert files.read_bytes("d/f") == INSIDE
            read += 1
            if n % 10 == 0:
                files.write_file("d/w", b"written")
        broken = False
        for _ in range(PLAIN_TRIES):
            if (arena / "up/root/d/f").read_bytes() == OUTSIDE:
                broken = True
                break
        flipped = flips.count
    assert read == TIMES
    assert flipped >= AT_LEAST
    assert broken
    roots = [arena / top / "root/d" for top in ("up", "other")]
    assert [(root / "w").exists() for root in roots].count(True) == 1
    assert [(root / "f").read_bytes() for root in roots if (root / "w").exists()] == [INSIDE]
