"""The numbered cases about paths: what is inside, what is sensitive, what is no file at all."""

from __future__ import annotations

import os
import time

import pytest

from cases import case
from corral.environment.files import FileHalf
from corral.errors import (
    LinkLoop,
    PathEscape,
    PathNotAllowed,
    Refused,
    SensitivePath,
)
from files.ways import OPERATIONS
from files.yard import INSIDE, OUTSIDE, Yard, names_below

pytestmark = pytest.mark.jail

AT_ONCE = 0.25


@case("jinn-12", "jinn-25", "jinn-26")
def test_a_file_in_the_root_is_read_by_any_spelling(yard: Yard) -> None:
    yard.file("a.txt")
    yard.file("sub/b.txt")
    alias = yard.root.with_name("alias")
    alias.symlink_to(yard.root)
    for root in (yard.root, alias):
        files = FileHalf([yard.anchor(root)], yard.files()._access.rules.policy)
        for path in ("a.txt", "./a.txt", "sub/../a.txt", str(yard.root / "a.txt"), str(root / "a.txt")):
            assert files.read_bytes(path) == INSIDE
        with pytest.raises(PathEscape):
            files.read_bytes("sub/../../outside/secret")
        assert files.working_dir == str(yard.root)


@case("jinn-14", "jinn-15", "jinn-20", "jinn-21")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_lies_outside_is_out_of_reach_for_everything(yard: Yard, operation: str) -> None:
    yard.file("plain")
    yard.link("file-out", yard.outside / "secret")
    yard.link("out", yard.outside)
    files = yard.files()
    paths = ["/etc/passwd", "~/x", "~", "../outside/secret", "out/secret", "out/newdir/file"]
    if operation not in ("remove", "rename from"):  # those take the link itself
        paths.append("file-out")
    for path in paths:
        if operation == "glob" and path.startswith(("out", "file-out")):
            assert files.glob(path) == []
            continue
        with pytest.raises(PathEscape) as caught:
            OPERATIONS[operation](files, path)
        assert (caught.value.path, caught.value.rule) == (path, "outside")
    assert yard.below_outside() == ["secret"]
    assert (yard.outside / "secret").read_bytes() == OUTSIDE
    assert "plain" in names_below(yard.root)


SENSITIVE = [
    *(".git/config", ".ssh/id_rsa", ".aws/credentials", ".gnupg/pubring.kbx", ".env", ".env.local"),
    *(".git", ".ssh", ".aws", ".gnupg"),
    *("src/.env", "deploy/.env.staging", "a/b/c/.ssh/x/y"),
    *(".env/secret.txt", ".env.d/secret.txt"),
    *("../.ssh/id_rsa", "/home/u/.ssh/id_rsa", "~/.aws/credentials", "a/../.git/config", ".git/../plain"),
]


@case("jinn-13", "jinn-16", "jinn-17", "jinn-18", "jinn-30")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_sensitive_name_is_refused_by_everything_at_any_depth(yard: Yard, operation: str) -> None:
    yard.file("plain")
    for path in SENSITIVE[:13]:
        if "." in path and not (yard.root / path).exists() and path not in (".git", ".ssh", ".aws", ".gnupg"):
            yard.file(path)
    before = names_below(yard.root)
    files = yard.files()
    for path in SENSITIVE:
        with pytest.raises(SensitivePath) as caught:
            OPERATIONS[operation](files, path)
        assert str(caught.value) == f"sensitive path: {path}"
        assert caught.value.path == path
        assert isinstance(caught.value, Refused | PermissionError)
    assert names_below(yard.root) == before


@case("jinn-19")
@pytest.mark.parametrize(
    "path", [".gitignore", ".github/x.yml", ".envrc", "env", "environment.env", ".gitmodules", "git", "a.env"]
)
def test_a_name_that_only_looks_like_it_is_allowed(yard: Yard, path: str) -> None:
    files = yard.files()
    files.write_file(path, "x")
    assert files.read_file(path) == "x"
    assert path in files.glob("**")
    files.remove_file(path)


def test_sensitive_names_are_not_listed_walked_or_found(yard: Yard) -> None:
    for path in ("a", "sub/b", ".env", "sub/.env.local", ".git/config", "sub/.ssh/key", ".gitignore"):
        yard.file(path)
    files = yard.files()
    assert [entry.name for entry in files.list_dir()] == [".gitignore", "a", "sub"]
    walked = {f"{top}/{name}" for top, _, found in files.walk() for name, _ in found}
    assert walked == {"./a", "./.gitignore", "sub/b"}
    assert files.glob("**") == [".gitignore", "a", "sub", "sub/b"]
    assert files.glob("*/*") == ["sub/b"]
    assert files.glob("**/key") == []


def test_the_list_can_be_added_to(yard: Yard) -> None:
    yard.file("vault/x")
    yard.file("deep/my.key")
    files = yard.files(sensitive=["vault", "*.key"])
    for path in ("vault/x", "deep/my.key", ".env"):
        with pytest.raises(SensitivePath):
            files.read_file(path)
    assert files.glob("**") == ["deep"]


@case("jinn-22", "jinn-23")
def test_a_link_is_read_if_it_stays_inside_and_does_not_hide_what_it_is(yard: Yard) -> None:
    yard.file("a.txt")
    yard.file(".env")
    yard.file("d/.git/config")
    yard.link("fine", "a.txt")
    yard.link("innocuous", ".env")
    yard.link("twice", "innocuous")
    yard.link("dir", "d/.git")
    yard.link("absolute", yard.root / ".env")
    yard.link(".ssh", "d")
    yard.link("through", ".ssh/../a.txt")
    files = yard.files()
    assert files.read_bytes("fine") == INSIDE
    for path in ("innocuous", "twice", "dir/config", "absolute", "through"):
        for look in (files.read_bytes, files.stat):
            with pytest.raises(SensitivePath):
                look(path)
    assert "innocuous" not in files.glob("inn*/x") + files.glob("dir/*")


@case("jinn-24")
def test_a_loop_of_links_is_told_at_once(yard: Yard) -> None:
    yard.link("one", "two")
    yard.link("two", "one")
    files = yard.files()
    started = time.perf_counter()
    with pytest.raises(LinkLoop) as caught:
        files.read_file("one")
    assert isinstance(caught.value, OSError)
    with pytest.raises(PathEscape):
        files.write_file("one", "x")
    with pytest.raises(PathEscape):
        files.write_file("one/x", "x")
    assert time.perf_counter() - started < AT_ONCE


@case("jinn-27", "jinn-28")
def test_no_write_goes_through_a_link_nor_makes_what_it_points_to(yard: Yard) -> None:
    target = yard.file("target")
    yard.link("dangling", yard.outside / "new")
    yard.link("inside", "target")
    files = yard.files()
    with pytest.raises(PathEscape):
        files.read_file("dangling")
    for path in ("dangling", "inside"):
        with pytest.raises(PathEscape):
            files.write_file(path, "x")
    assert yard.below_outside() == ["secret"]
    assert target.read_bytes() == INSIDE


@case("jinn-29", "peers-F5")
def test_a_hard_link_to_a_sensitive_file_is_refused_and_all_of_them_if_wanted(yard: Yard) -> None:
    secret = yard.file("deep/.env")
    inside_git = yard.file(".git/objects/x")
    plain = yard.file("plain")
    files, strict = yard.files(), yard.files(hardlinks="refuse")
    os.link(secret, yard.root / "innocuous")
    os.link(inside_git, yard.root / "object")
    os.link(plain, yard.root / "second")
    os.link(yard.outside / "secret", yard.root / "from-outside")
    for path in ("innocuous", "object"):
        with pytest.raises(SensitivePath, match="sensitive"):
            files.read_bytes(path)
        with pytest.raises(SensitivePath):
            files.stat(path)
    assert files.read_bytes("second") == INSIDE
    os.link(plain, yard.root / "d.env")  # and one that becomes sensitive later
    os.rename(yard.root / "d.env", yard.root / ".env")
    with pytest.raises(SensitivePath):
        files.read_bytes("second")
    for path in ("innocuous", "second", "from-outside"):
        with pytest.raises((PathNotAllowed, SensitivePath)):
            strict.read_bytes(path)
        with pytest.raises((PathNotAllowed, SensitivePath)):
            files.write_file(path, "x")
    assert (yard.outside / "secret").read_bytes() == OUTSIDE
    files.write_file("from-outside", "x", links="break")
    assert (yard.outside / "secret").read_bytes() == OUTSIDE
    assert files.read_file("from-outside") == "x"
