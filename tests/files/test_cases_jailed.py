"""The numbered cases of tracker and its peers: files under one writable glob."""

from __future__ import annotations

import os
import threading

import pytest

from cases import case
from corral.errors import PathEscape, PathNotAllowed
from files.yard import INSIDE, OUTSIDE, Yard, class_raised_by_nobody, give_to_nobody, names_below

pytestmark = pytest.mark.jail


# ---- files under one glob ----


@case("tracker-30")
def test_a_write_makes_its_parents(yard: Yard) -> None:
    files = yard.jailed("workspace/**")
    assert files.write_file("workspace/new/dir/f", "text") == 4
    assert (yard.root / "workspace/new/dir/f").read_bytes() == b"text"
    assert files.read_file("workspace/new/dir/f") == "text"


@case("tracker-31")
def test_a_write_that_no_glob_allows_leaves_not_even_a_directory(yard: Yard) -> None:
    files = yard.jailed("workspace/**")
    files.write_file("workspace/f", "x")
    with pytest.raises(PathNotAllowed) as caught:
        files.write_file("deny/f", "x")
    assert (caught.value.path, caught.value.rule) == ("deny/f", "writable")
    assert caught.value.grant == "--writable deny/f"
    assert names_below(yard.root) == ["workspace", "workspace/f"]


@case("tracker-32", "tracker-33")
@pytest.mark.parametrize("path", ["{outside}/f", "/f", "../f", "workspace/../../f", "../outside/f"])
def test_a_write_that_is_absolute_or_goes_up_is_refused(yard: Yard, path: str) -> None:
    files = yard.jailed("workspace/**")
    with pytest.raises(PathEscape):
        files.write_file(path.format(outside=yard.outside), "x")
    with pytest.raises(PathEscape):
        yard.anchor().parent(str(yard.root / "workspace/f"))
    assert names_below(yard.root) == []
    assert yard.below_outside() == ["secret"]


@case("tracker-34", "peers-F3")
def test_a_workspace_that_became_a_link_out_takes_no_write(yard: Yard) -> None:
    files = yard.jailed("workspace/**")
    files.write_file("workspace/f", "x")
    (yard.root / "workspace").rename(yard.root / "was")
    yard.link("workspace", yard.outside)
    for path in ("workspace/f", "workspace/new/f", "workspace/secret"):
        with pytest.raises(PathEscape):
            files.write_file(path, "x")
    assert yard.below_outside() == ["secret"]
    assert (yard.outside / "secret").read_bytes() == OUTSIDE


@case("tracker-35", "peers-F2")
def test_a_link_as_the_last_name_is_refused_even_if_it_stays_inside(yard: Yard) -> None:
    files = yard.jailed("workspace/**")
    target = yard.file("workspace/target")
    yard.link("workspace/in", "target")
    yard.link("workspace/out", yard.outside / "secret")
    yard.link("workspace/out-missing", yard.outside / "missing")
    for name in ("in", "out", "out-missing"):
        with pytest.raises(PathEscape):
            files.write_file(f"workspace/{name}", "x")
        assert (yard.root / "workspace" / name).is_symlink()
    assert target.read_bytes() == INSIDE
    assert yard.below_outside() == ["secret"]


@case("tracker-36")
def test_removing_twice_is_an_ordinary_not_found(yard: Yard) -> None:
    yard.file("workspace/f")
    files = yard.jailed("workspace/**")
    files.remove_file("workspace/f")
    assert not (yard.root / "workspace/f").exists()
    with pytest.raises(FileNotFoundError):
        files.remove_file("workspace/f")


@case("tracker-37")
def test_removing_is_held_by_the_same_rules(yard: Yard) -> None:
    kept = yard.file("kept")
    yard.link("workspace/out", yard.outside)
    yard.link("workspace/to-kept", "../kept")
    files = yard.jailed("workspace/**")
    with pytest.raises(PathNotAllowed):
        files.remove_file("kept")
    with pytest.raises(PathEscape):
        files.remove_file("workspace/out/secret")
    for path in ("", ".", "/"):
        with pytest.raises(PathEscape):
            files.remove_file(path)
    files.remove_file("workspace/to-kept")  # a link goes itself
    with pytest.raises(IsADirectoryError):
        files.remove_file("workspace")
    assert kept.exists()
    assert (yard.outside / "secret").exists()


@case("tracker-38", "jinn-56")
def test_a_directory_that_may_not_be_written_is_no_escape(yard: Yard) -> None:
    kept = yard.file("workspace/kept")
    give_to_nobody(yard.root, yard.root / "workspace", kept)
    files = yard.jailed("workspace/**")
    assert class_raised_by_nobody(lambda: files.write_file("workspace/f", "x")) == ""
    (yard.root / "workspace").chmod(0o500)
    assert class_raised_by_nobody(lambda: files.write_file("workspace/g", "x")) == "PermissionError"
    assert class_raised_by_nobody(lambda: files.write_file("workspace/kept", "x")) == "PermissionError"
    assert class_raised_by_nobody(lambda: files.write_file("workspace/new/g", "x")) == "PermissionError"
    assert names_below(yard.root) == ["workspace", "workspace/f", "workspace/kept"]
    assert kept.read_bytes() == INSIDE


@case("tracker-39")
def test_making_directories_twice_and_by_eight_threads_at_once(yard: Yard) -> None:
    files = yard.files()
    files.make_dir("a/b")
    files.make_dir("a/b")
    failed: list[BaseException] = []

    def make() -> None:
        try:
            for n in range(20):
                files.make_dir(f"deep/{n}/b/c/d/e")
        except BaseException as error:  # noqa: BLE001 - told by the assertion below
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert all((yard.root / f"deep/{n}/b/c/d/e").is_dir() for n in range(20))
    for depth in ("link", "a/link", "a/b/link"):
        yard.link(depth, yard.outside)
        with pytest.raises(PathEscape):
            files.make_dir(f"{depth}/x/y")
        os.unlink(yard.root / depth)
    assert yard.below_outside() == ["secret"]


@case("tracker-40")
def test_a_glob_of_one_file_allows_that_file_alone(yard: Yard) -> None:
    files = yard.jailed("workspace/allowed.md")
    files.write_file("workspace/allowed.md", "x")
    with pytest.raises(PathNotAllowed):
        files.write_file("workspace/sibling.md", "x")
    assert names_below(yard.root) == ["workspace", "workspace/allowed.md"]


@case("rubino-39")
def test_links_out_are_refused_and_new_files_under_missing_parents_are_not(yard: Yard) -> None:
    added = yard.root.with_name("added")
    added.mkdir()
    yard.link("out", yard.outside / "secret")
    yard.link("out-d", yard.outside)
    yard.link("chain", "out-d")
    files = yard.files(added)
    for path in ("out", "out-d/secret", "chain/secret", "out-d/new/er", "chain/new/er"):
        with pytest.raises(PathEscape):
            files.read_file(path)
        with pytest.raises(PathEscape):
            files.write_file(path, "x")
    files.write_file("missing/parents/new", "x")
    files.write_file(str(added / "new"), "x")
    assert files.read_file(added / "new") == "x"
    assert yard.below_outside() == ["secret"]
