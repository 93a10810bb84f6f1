"""What must hold for any path, any sequence of operations, any bytes, any glob."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.environment.files import FileHalf
from corral.errors import CorralError, PathEscape, PolicyError
from corral.paths.beneath import Anchor
from corral.paths.globs import check_globs, matches
from corral.paths.parents import Parent
from corral.policy import Policy
from files.yard import INSIDE, OPENERS, OUTSIDE

pytestmark = pytest.mark.jail

MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

names = st.sampled_from(["a", "b", "c", "..", ".", "", "...", "..a", "link", "é", "\n"])
paths = st.one_of(
    st.lists(names, min_size=1, max_size=6).map("/".join),
    st.text(max_size=20),
    st.sampled_from(["{outside}/secret", "{root}/a", "/", "/proc/self/cwd/a", "/proc/self/root/etc/passwd"]),
)
operations = st.lists(
    st.tuples(st.sampled_from(["link", "rename", "mkdir", "write", "exchange"]), paths, paths), max_size=12
)


@contextlib.contextmanager
def playground() -> Iterator[tuple[Path, Path]]:
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)).resolve()
    root, outside = base / "root", base / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(OUTSIDE)
    (outside / "a").mkdir()
    (outside / "a/b").write_bytes(OUTSIDE)
    try:
        yield root, outside
    finally:
        shutil.rmtree(base)


def spelled(text: str, root: Path, outside: Path) -> str:
    return text.replace("{root}", str(root)).replace("{outside}", str(outside))


def disturb(root: Path, outside: Path, todo: list[tuple[str, str, str]]) -> None:
    """What a hostile command in the root may do to its names; links may point anywhere."""
    for what, one, two in todo:
        with contextlib.suppress(OSError, ValueError):
            one, two = spelled(one, root, outside), spelled(two, root, outside)
            place = root / os.path.normpath("/" + one).lstrip("/")
            if not os.path.realpath(place.parent).startswith(str(root)):
                continue  # not the layer's doing
            if what == "link":
                place.symlink_to(two)
            elif what == "mkdir":
                place.mkdir(parents=True)
            elif what == "write" and not os.path.lexists(place):
                place.write_bytes(INSIDE)
            elif what in ("rename", "exchange"):
                other = root / os.path.normpath("/" + two).lstrip("/")
                if os.path.realpath(other.parent).startswith(str(root)):
                    os.rename(place, other)


def snapshot(top: Path) -> dict[str, bytes | str]:
    return {str(p): p.read_bytes() if p.is_file() else "directory" for p in top.rglob("*")}


@pytest.mark.parametrize("opener", OPENERS)
@MANY
@given(todo=operations, tried=st.lists(paths, min_size=1, max_size=6))
def test_no_path_and_no_links_lead_out(
    opener: str, todo: list[tuple[str, str, str]], tried: list[str]
) -> None:
    with playground() as (root, outside), Anchor(str(root), opener=OPENERS[opener]()) as anchor:
        disturb(root, outside, todo)
        before = snapshot(outside)
        files = FileHalf([anchor], Policy.off())
        for text in tried:
            path = spelled(text, root, outside)
            with contextlib.suppress(CorralError, OSError):
                assert files.read_bytes(path) in (INSIDE, b"written")
            with contextlib.suppress(CorralError, OSError):
                files.write_file(path, b"written")
                assert files.read_bytes(path) == b"written"
            with contextlib.suppress(CorralError, OSError):
                files.make_dir(f"{path}/d")
            with contextlib.suppress(CorralError, OSError):
                found = [entry.name for entry in files.list_dir(path)]
                assert "secret" not in found
            with contextlib.suppress(CorralError, OSError):
                files.rename(path, "moved")
            with contextlib.suppress(CorralError, OSError):
                files.remove_file(path)
            with contextlib.suppress(CorralError, OSError):
                files.remove_tree(path)
        assert snapshot(outside) == before
        assert sorted(p.name for p in root.parent.iterdir()) == ["outside", "root"]


@MANY
@given(todo=operations, tried=st.lists(paths, min_size=1, max_size=6))
def test_both_ways_to_open_say_the_same(todo: list[tuple[str, str, str]], tried: list[str]) -> None:
    with playground() as (root, outside):
        disturb(root, outside, todo)
        told: list[list[object]] = []
        for opener in OPENERS.values():
            with Anchor(str(root), opener=opener()) as anchor:
                files = FileHalf([anchor], Policy.off())
                said: list[object] = []
                for text in tried:
                    path = spelled(text, root, outside)
                    for action in (files.read_bytes, files.list_dir, files.stat, anchor.parent):
                        try:
                            result = action(path)
                            if isinstance(result, Parent):
                                result.close()
                            said.append("parent" if isinstance(result, Parent) else result)
                        except (CorralError, OSError) as error:
                            said.append((type(error), getattr(error, "errno", None)))
                told.append(said)
        assert told[0] == told[1]


@MANY
@given(content=st.binary(max_size=5000), name=st.text(min_size=1, max_size=30))
def test_any_bytes_under_any_name_come_back(content: bytes, name: str) -> None:
    with playground() as (root, _), Anchor(str(root)) as anchor:
        files = FileHalf([anchor], Policy.off())
        try:
            files.write_file(name, content)
        except (CorralError, OSError):
            assert os.listdir(root) == []
            return
        assert files.read_bytes(name) == content
        assert len(os.listdir(root)) == 1


def slow_reference(glob: str, path: str) -> bool:
    """The table once more, by a regular expression; without classes, which may cross a slash."""
    pattern = ""
    segments = glob.split("/")
    for i, segment in enumerate(segments):
        last = i == len(segments) - 1
        if segment == "**":
            pattern += ".*" if last else "(?:[^/]+/)*"
            if last and i:
                pattern = pattern[: -len("/.*")] + "(?:/.*)?"
            continue
        for char in segment:
            pattern += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
        pattern += "" if last else "/"
    return re.fullmatch(pattern, path, re.DOTALL) is not None


glob_segments = st.one_of(st.just("**"), st.text("ab*?.", min_size=1, max_size=4))
path_names = st.text("ab.", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))


@settings(max_examples=2000, deadline=None)
@given(
    st.lists(glob_segments, min_size=1, max_size=4).map("/".join),
    st.lists(path_names, min_size=1, max_size=4).map("/".join),
)
def test_matching_agrees_with_a_slow_reference(glob: str, path: str) -> None:
    try:
        (checked,) = check_globs([glob])
    except (PolicyError, PathEscape):
        return
    assert matches(checked, path) == slow_reference(checked, path)
