"""A view: files beyond the roots as the jail of the commands shows them, /tmp being the jail's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.environment.files import FileHalf
from corral.errors import PathEscape, PathNotAllowed, SensitivePath
from corral.files.view import View
from corral.paths.beneath import Anchor
from corral.policy import Grant, Policy
from files.yard import INSIDE, OUTSIDE, Yard

pytestmark = pytest.mark.jail


@pytest.fixture
def files(yard: Yard, tmp_path: Path) -> FileHalf:
    private = tmp_path / "private-tmp"
    private.mkdir()
    (private / "in-jail").write_bytes(INSIDE)
    scratch = yard.anchor(private)
    scratch.path = scratch.given = "/scratch"
    whole = Anchor("/", opener=yard.opener)
    yard.anchors.append(whole)
    view = View(
        readable=(whole,), scratch=(scratch,), private=("/scratch", "/run", str(tmp_path / "not-shown"))
    )
    granted = tmp_path / "granted"
    granted.mkdir()
    policy = Policy.workspace_write(
        writable=["out/**"], grants=[Grant.rw(str(granted)), Grant.hide(str(tmp_path / "hid"))]
    )
    return FileHalf([yard.anchor()], policy, view=view)


def test_what_the_jail_shows_is_read_and_not_written(yard: Yard, files: FileHalf) -> None:
    secret = yard.outside / "secret"
    assert files.read_bytes(secret) == OUTSIDE
    assert files.read_bytes("/etc/passwd")
    assert files.stat("/usr").st_mode
    for change in (lambda: files.write_file(secret, "x"), lambda: files.remove_file(secret)):
        with pytest.raises(PathNotAllowed) as caught:
            change()
        assert caught.value.grant == f"--rw {secret}"
    assert secret.read_bytes() == OUTSIDE


def test_its_temp_directory_is_the_jails(yard: Yard, files: FileHalf, tmp_path: Path) -> None:
    assert files.read_bytes("/scratch/in-jail") == INSIDE
    files.write_file("/scratch/new", "x")
    assert (tmp_path / "private-tmp/new").read_text() == "x"
    assert files.glob("/scratch/*") == ["/scratch/in-jail", "/scratch/new"]
    assert [entry.name for entry in files.list_dir("/scratch")] == ["in-jail", "new"]


def test_links_lead_from_one_place_to_the_other_by_what_they_are_called_inside(
    yard: Yard, files: FileHalf
) -> None:
    yard.file("f")
    yard.link("to-scratch", "/scratch/in-jail")
    yard.link("out/to-scratch", "/scratch")
    yard.link("to-outside", yard.outside / "secret")
    yard.link("up", "../outside/secret")
    (yard.outside / "back").symlink_to("../root/f")
    (yard.outside / "down").symlink_to("../" * 20 + "scratch/in-jail")
    assert files.read_bytes("to-scratch") == INSIDE
    assert files.read_bytes("out/to-scratch/in-jail") == INSIDE
    assert files.read_bytes("to-outside") == OUTSIDE
    assert files.read_bytes("up") == OUTSIDE
    assert files.read_bytes(yard.outside / "back") == INSIDE
    assert files.read_bytes(yard.outside / "down") == INSIDE
    with pytest.raises(PathEscape):
        files.write_file("out/to-scratch/x", "x")
    with pytest.raises(PathEscape):
        files.write_file("/usr/../scratch/x", "x")


def test_rules_hold_everywhere(yard: Yard, files: FileHalf, tmp_path: Path) -> None:
    for path in ("hid/f", "not-shown/f", "x/.ssh/key", "granted/f"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(OUTSIDE)
    with pytest.raises(PathNotAllowed, match="hidden"):
        files.read_bytes(tmp_path / "hid/f")
    with pytest.raises(PathNotAllowed, match="not shown"):
        files.read_bytes(tmp_path / "not-shown/f")
    with pytest.raises(SensitivePath):
        files.read_bytes(tmp_path / "x/.ssh/key")
    files.write_file(tmp_path / "granted/f", "x")
    files.write_file("out/f", "x")
    files.write_file(yard.root / "out/g", "x")
    with pytest.raises(PathNotAllowed):
        files.write_file(yard.root / "g", "x")
