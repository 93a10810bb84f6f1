"""A tree that a command left is removed whole, and nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.files.removing import remove_tree

pytestmark = pytest.mark.jail


def test_links_are_removed_and_what_they_lead_to_is_not(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path / "kept")
    (tree / "gone").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    remove_tree(str(tree))
    assert not tree.exists()
    assert (tmp_path / "kept/file").exists()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "kept/file").exists()


def test_permissions_that_were_taken_away_do_not_matter(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/c/file").touch()
    for path in (tree / "a/b/c", tree / "a/b", tree / "a", tree):
        path.chmod(0)
    remove_tree(str(tree))
    assert not tree.exists()


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deeper", dir_fd=fd)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    remove_tree(str(tree))
    assert not tree.exists()


def test_an_environment_that_nobody_closed_cleans_up_when_the_interpreter_goes(tmp_path: Path) -> None:
    source = """
import sys, warnings
warnings.simplefilter("ignore")
from corral import LocalEnvironment
environment = LocalEnvironment(sys.argv[1])
print(environment.shell("readlink -f /tmp; touch /tmp/file").stdout, end="")
"""
    for name in ("temp", "work"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path / "work")],
        env={**os.environ, "TMPDIR": str(tmp_path / "temp")},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("/tmp\n", "")
    assert [list(made.iterdir()) for made in (tmp_path / "temp").iterdir()] == [[]]
