"""The diff is a patch that git and patch take, says what it cannot carry, and shows nothing that a terminal obeys."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from changes.field import Field, picture
from changes.test_listing import ROWS, prepare, repository
from corral.changes import apply, diff, discard
from corral.changes.lines import hunks, patched, split_hunk, split_lines
from corral.cli.paging import shown
from corral.errors import PolicyError

pytestmark = pytest.mark.jail

# What a patch does not carry.
NOT_IN_A_PATCH = (
    *("the mode of a directory", "a time", "an attribute", "a fifo"),
    "an attribute that is called like the overlay's",
)
BY_GIT = [row for row in ROWS if row not in NOT_IN_A_PATCH]
ODD_NAMES = "echo x > 'with space'; echo x > 'q\"uote'; echo x > \"$(printf 'esc\\033')\"; echo x > ./-rf; echo x > äö"


def patch_of(field: Field) -> bytes:
    return b"".join(diff(field.layers))


def copied(field: Field) -> Path:
    copy = field.base / "copy"
    shutil.copytree(field.lower, copy, symlinks=True)
    return copy


def git_apply(top: Path, patch: bytes) -> None:
    environment = {**os.environ, "GIT_DIR": "/dev/null", "GIT_CEILING_DIRECTORIES": str(top.parent)}
    subprocess.run(["git", "apply", "-"], input=patch, cwd=top, check=True, env=environment)


@pytest.mark.parametrize("what", BY_GIT)
def test_git_apply_gives_the_same_tree(field: Field, what: str) -> None:
    prepare(field)
    field.run(ROWS[what][0])
    patch = patch_of(field)
    copy = copied(field)
    if b"diff --git" in patch:
        git_apply(copy, patch)
    apply(field.layers, allow_exec=True)
    assert without_directories(copy) == without_directories(field.lower)


def without_directories(top: Path) -> dict[str, object]:
    """Names and contents; git keeps no empty directories, and of modes only whether a file is executable."""
    return {
        name: (kind, mode & 0o100, content)
        for name, (kind, mode, content, *_) in picture(top, times=False).items()
        if content is not None and isinstance(mode, int)
    }


# What `patch` does not do with any diff: links, modes alone, a file where it has just emptied a directory.
NOT_BY_PATCH = (
    *("a new link", "a link to elsewhere", "a link in place of a file", "a mode"),
    *("a file in place of a directory", "a directory in place of a file"),
)


@pytest.mark.parametrize("what", [row for row in BY_GIT if row not in NOT_BY_PATCH])
def test_patch_gives_the_same_tree(field: Field, what: str) -> None:
    prepare(field)
    field.run(ROWS[what][0])
    patch = patch_of(field)
    copy = copied(field)
    if b"\n--- " in patch or b"rename from" in patch:
        subprocess.run(["patch", "-s", "-p1"], input=patch, cwd=copy, check=True, stdout=subprocess.DEVNULL)
    apply(field.layers, allow_exec=True)
    assert without_directories(copy) == without_directories(field.lower)


def test_odd_names_and_odd_contents_survive_a_patch(field: Field) -> None:
    prepare(field)
    field.file("cr", "a\r\nb\r\n")
    field.file("no-newline", "x")
    field.run(
        f"{ODD_NAMES}; printf 'a\\r\\nc' > cr; printf 'y' > no-newline; printf '\\xff\\xfe\\n' > latin; : > empty"
    )
    patch = patch_of(field)
    copy = copied(field)
    git_apply(copy, patch)
    apply(field.layers)
    assert without_directories(copy) == without_directories(field.lower)


def test_binary_files_are_told_by_size_and_digest(field: Field) -> None:
    field.file("b", b"\0old")
    field.run("printf '\\0newer' > b")
    (line,) = patch_of(field).decode().splitlines()
    assert line.startswith("# binary b modified: 4 bytes, sha256 ")
    assert "-> 6 bytes, sha256" in line


def test_a_kept_patch_carries_binary_files_too(field: Field, tmp_path: Path) -> None:
    prepare(field)
    field.file("b", b"\0old" * 100)
    field.file("gone", bytes(range(256)))
    field.run("head -c 9999 /dev/urandom > b; head -c 70 /dev/urandom > c; rm gone; echo x > e")
    copy, kept = copied(field), tmp_path / "kept.patch"
    expected = {name: (field.upper / name).read_bytes() for name in ("b", "c", "e")}
    discard(field.layers, keep=str(kept))
    git_apply(copy, kept.read_bytes())
    assert {name: (copy / name).read_bytes() for name in expected} == expected
    assert not (copy / "gone").exists()


def test_a_patch_is_not_kept_over_another_file_and_then_nothing_is_discarded(
    field: Field, tmp_path: Path
) -> None:
    prepare(field)
    field.run("echo x > e")
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(PolicyError, match="nothing was discarded"):
        discard(field.layers, keep=str(there))
    assert there.read_text() == "mine"
    assert os.listdir(field.upper) == ["e"]


def test_a_conflict_shows_both_sides_and_their_base_and_is_nothing_that_git_would_apply(field: Field) -> None:
    field.file("f", "".join(f"{n}\n" for n in range(9)))
    field.run("sed -i s/^1$/inside/ f; echo x > other")
    field.file("f", "".join(f"{n}\n" for n in range(8)) + "outside\n")
    patch = patch_of(field).decode()
    assert "# CONFLICT in f: changed outside since the run" in patch
    assert "# -8\n# +outside" in patch
    assert "# -1\n# +inside" in patch
    copy = copied(field)
    git_apply(copy, patch.encode())
    assert (copy / "f").read_text().endswith("outside\n")
    assert (copy / "other").exists()


def test_a_conflict_during_the_run_has_no_base(field: Field) -> None:
    field.file("f", "before\n")
    field.run("echo inside > f", outside="echo outside > f")
    patch = patch_of(field).decode()
    assert "there is no base" in patch
    assert "# -outside\n# +inside" in patch


def test_on_a_terminal_control_characters_are_escaped_in_names_and_contents(field: Field) -> None:
    field.run("printf 'a\\033[2Jb\\r\\tc\\302\\233x\\n' > \"$(printf 'n\\033]0;t\\007')\"")
    text = shown(patch_of(field), colour=False)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\x9b" not in text
    assert "\x07" not in text
    assert "+a\\x1b[2Jb\\x0d\tc\\x9bx" in text
    coloured = shown(b"+x\x1b[2J\n", colour=True)
    assert coloured == "\x1b[32m+x\\x1b[2J\x1b[0m\n"


def test_a_text_that_looks_like_a_patch_does_not_get_out_of_its_hunk(field: Field) -> None:
    field.file("f", "x\n")
    field.run("printf -- '-- a/etc\\n++ b/etc\\n@@ -1 +1 @@\\ndiff --git a/x b/x\\n' >> f")
    copy = copied(field)
    git_apply(copy, patch_of(field))
    apply(field.layers)
    assert without_directories(copy) == without_directories(field.lower)


def test_what_is_in_a_repository_is_shown_and_does_not_keep_git_from_the_rest(field: Field) -> None:
    repository(field.lower)
    field.run("echo more >> f; git add f; git -c user.name=n -c user.email=e commit -qm second")
    patch = patch_of(field)
    assert b"# +++ b/.git/COMMIT_EDITMSG" in patch
    copy = copied(field)
    git_apply(copy, patch)
    assert (copy / "f").read_text() == "f\nmore\n"


# ---- lines ----


def test_hunks_put_together_give_the_new_text() -> None:
    import random

    chance = random.Random(7)
    for turn in range(500):
        old = [b"%d\n" % chance.randrange(8) for _ in range(chance.randrange(30))]
        new = [line for line in old if chance.random() > 0.2] + [b"z\n"] if turn % 2 else old[::-1]
        found = hunks(old, new)
        assert patched(old, found) == b"".join(new)
        assert patched(old, [part for hunk in found for part in split_hunk(hunk)]) == b"".join(new)
        for count in range(len(found)):
            assert patched(old, found[:count]).count(b"\n") >= 0


def test_a_text_made_to_be_slow_is_compared_in_time() -> None:
    old = [b"%d\n" % (n % 5) for n in range(60_000)]
    new = [line for n, line in enumerate(old) if n % 17]
    assert patched(old, hunks(old, new)) == b"".join(new)


def test_lines_end_at_line_feeds_only() -> None:
    assert split_lines(b"a\r\nb\x0cc\n\xe2\x80\xa8d") == [b"a\r\n", b"b\x0cc\n", b"\xe2\x80\xa8d"]
