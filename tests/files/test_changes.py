"""What the policy says about changes; removing, renaming, listing and finding."""

from __future__ import annotations

import os

import pytest

from corral.errors import PathEscape, PathNotAllowed, SensitivePath
from corral.policy import Grant, Policy
from files.yard import INSIDE, Yard, names_below

pytestmark = pytest.mark.jail


# ---- policy ----


def test_in_mode_read_only_nothing_changes(yard: Yard) -> None:
    target = yard.file("f")
    (yard.root / "open").mkdir()
    files = yard.files(policy=Policy.read_only(grants=[Grant.rw("open")]))
    for action in (
        lambda: files.write_file("f", "x"),
        lambda: files.write_file("new", "x"),
        lambda: files.remove_file("f"),
        lambda: files.rename("f", "g"),
        lambda: files.make_dir("d"),
        lambda: files.remove_tree("open"),
    ):
        with pytest.raises(PathNotAllowed) as caught:
            action()
        assert caught.value.rule == "mode read-only"
    files.write_file("open/f", "x")
    assert files.read_bytes("f") == INSIDE == target.read_bytes()
    assert names_below(yard.root) == ["f", "open", "open/f"]


def test_grants_narrow_and_hide_for_files_as_for_commands(yard: Yard) -> None:
    for path in ("kept/f", "kept/loose/f", "hidden/f", "plain"):
        yard.file(path)
    grants = [Grant.ro("kept"), Grant.rw("kept/loose"), Grant.hide("hidden")]
    files = yard.files(policy=Policy.workspace_write(grants=grants))
    assert files.read_bytes("kept/f") == INSIDE
    files.write_file("kept/loose/f", "x")
    for path in ("kept/f", "kept/new", "kept"):
        with pytest.raises(PathNotAllowed, match="read-only") as caught:
            files.rename("plain", path)
        assert caught.value.grant == "--rw kept"
    for look in (files.read_bytes, files.stat, files.list_dir, lambda p: files.write_file(p, "x")):
        with pytest.raises(PathNotAllowed, match="hidden") as caught:
            look("hidden/f")
        assert caught.value.grant == "--unhide hidden"
    os.link(yard.root / "hidden/f", yard.root / "twin")
    with pytest.raises(SensitivePath, match="sensitive"):
        files.read_bytes("twin")
    (yard.root / "twin").unlink()
    yard.link("to-hidden", "hidden/f")
    with pytest.raises(PathNotAllowed, match="hidden"):
        files.read_bytes("to-hidden")
    assert files.glob("**") == ["kept", "kept/f", "kept/loose", "kept/loose/f", "plain", "to-hidden"]


def test_the_projects_own_policy_is_not_rewritten(yard: Yard) -> None:
    yard.file("corral.toml")
    yard.file("sub/corral.toml")
    files = yard.files()
    assert files.read_bytes("corral.toml") == INSIDE
    for action in (
        lambda: files.write_file("corral.toml", "x"),
        lambda: files.remove_file("corral.toml"),
        lambda: files.rename("sub/corral.toml", "corral.toml"),
    ):
        with pytest.raises(PathNotAllowed) as caught:
            action()
        assert caught.value.rule == "project-config"
    files.write_file("sub/corral.toml", "x")


def test_only_the_first_root_is_meant_by_globs(yard: Yard) -> None:
    added = yard.root.with_name("added")
    added.mkdir()
    files = yard.files(added, policy=Policy.workspace_write(writable=["out/**"]))
    files.write_file("out/f", "x")
    with pytest.raises(PathNotAllowed):
        files.write_file(added / "out/f", "x")
    assert names_below(added) == []


# ---- removing, renaming, listing ----


def test_a_tree_goes_whole_or_not_at_all(yard: Yard) -> None:
    for path in ("t/a", "t/b/c", "t/b/d/e", "u/a", "u/b/.env", "u/z"):
        yard.file(path)
    yard.link("t/out", yard.outside)
    files = yard.files()
    files.remove_tree("t")
    assert not (yard.root / "t").exists()
    assert yard.below_outside() == ["secret"]
    with pytest.raises(SensitivePath):
        files.remove_tree("u")
    assert names_below(yard.root / "u") == ["a", "b", "b/.env", "z"]
    yard.link("l", yard.outside)
    with pytest.raises(PathEscape):
        files.remove_tree("l")
    with pytest.raises(NotADirectoryError):
        files.remove_tree("u/a")
    with pytest.raises(FileNotFoundError):
        files.remove_tree("missing")
    for path in (".", "..", "", "/"):
        with pytest.raises(PathEscape):
            files.remove_tree(path)


def test_renaming_moves_files_and_directories_inside_the_rules(yard: Yard) -> None:
    for path in ("a", "d/x", "e/.git/config", "taken"):
        yard.file(path)
    files = yard.files()
    files.rename("a", "new/place/b")
    assert files.read_bytes("new/place/b") == INSIDE
    files.rename("d", "new/d")
    assert files.read_bytes("new/d/x") == INSIDE
    files.rename("new/d/x", "taken")
    with pytest.raises(FileExistsError):
        files.rename("new/place/b", "taken", existing="refuse")
    for target in ("new", "new/place"):
        with pytest.raises(IsADirectoryError):
            files.rename("taken", target)
    with pytest.raises(SensitivePath):
        files.rename("e", "f")
    for target in ("../x", "/x"):
        with pytest.raises(PathEscape):
            files.rename("taken", target)
    with pytest.raises(FileNotFoundError):
        files.rename("missing", "fresh/x")
    assert not (yard.root / "fresh").exists(), "no directory for a rename that did not happen"


def test_renaming_replaces_nothing_where_the_kernel_has_no_call_for_that(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.files.atomic._rename_to_new", lambda *_: False)
    for path in ("a", "d/x", "taken", "e/y"):
        yard.file(path)
    files = yard.files()
    files.rename("a", "b", existing="refuse")
    files.rename("d", "moved")
    files.write_file("new", "x", existing="refuse")
    for source, target in (("b", "taken"), ("moved", "e")):
        with pytest.raises(FileExistsError):
            files.rename(source, target, existing="refuse")
    assert names_below(yard.root) == ["b", "e", "e/y", "moved", "moved/x", "new", "taken"]


def test_a_directory_is_not_moved_past_the_globs(yard: Yard) -> None:
    yard.file("in/d/x")
    yard.file("kept/y")
    files = yard.jailed("in/**")
    files.rename("in/d", "in/e")
    for source, target in (("in/e", "kept/e"), ("kept", "in/kept")):
        with pytest.raises(PathNotAllowed):
            files.rename(source, target)
    assert names_below(yard.root) == ["in", "in/e", "in/e/x", "kept", "kept/y"]


def test_a_listing_says_what_kind_each_entry_is(yard: Yard) -> None:
    yard.file("file")
    yard.file("directory/x")
    yard.link("link", "file")
    os.mkfifo(yard.root / "other")
    found = {entry.name: entry.kind for entry in yard.files().list_dir()}
    assert found == {name: name for name in ("file", "directory", "link", "other")}


def test_globs_find_by_pattern_and_mind_no_odd_character_in_the_root(yard: Yard) -> None:
    root = yard.root / "a[b]*?"
    for path in ("x.py", "d/y.py", "d/e/z.py", ".hidden.py", "d/no.txt"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / "link").symlink_to("d")
    yard.root = root
    files = yard.files()
    for pattern, found in {
        "*.py": [".hidden.py", "x.py"],
        "**/*.py": [".hidden.py", "d/e/z.py", "d/y.py", "x.py"],
        "d/**": ["d/e", "d/e/z.py", "d/no.txt", "d/y.py"],
        "d/**/z.py": ["d/e/z.py"],
        "**/e/**": ["d/e/z.py"],
        "link/*.py": ["link/y.py"],
        "[xy].p?": ["x.py"],
        "x.py": ["x.py"],
        "missing*": [],
        "d/missing": [],
    }.items():
        assert files.glob(pattern) == found, pattern
    for pattern in ("../*", "/etc/*", "d/../../*"):
        with pytest.raises(PathEscape):
            files.glob(pattern)
