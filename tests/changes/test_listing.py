"""What is listed: one row a way to change a tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from changes.field import Field
from corral.changes import Change, list_changes
from corral.changes.gitindex import same_but_for_stat_data
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail

# what is done inside: what is listed, as (letter, path) or (letter, source, path)
ROWS: dict[str, tuple[str, list[str]]] = {
    "a new file": ("echo x > new", ["A new"]),
    "a new directory": ("mkdir -p n/m; echo x > n/m/f", ["A n/", "A n/m/", "A n/m/f"]),
    "a changed file": ("echo x >> d/f", ["M d/f"]),
    "a file written again with the same": (
        "cat d/f > /tmp/$$; cat /tmp/$$ > d/f; rm /tmp/$$; touch -r e d/f; touch -r d/g d/f",
        [],
    ),
    "a deleted file": ("rm d/f", ["D d/f"]),
    "a deleted directory": ("rm -r d", ["D d/"]),
    "a renamed file": ("mv d/f moved", ["R d/f -> moved"]),
    "a renamed file that was changed before": ("echo x >> d/f; mv d/f moved", ["D d/f", "A moved"]),
    "a mode": ("chmod 700 d/f", ["m d/f"]),
    "the mode of a directory": ("chmod 700 d", ["m d/"]),
    "a time": ("touch -d 2001-01-01 d/f", ["t d/f"]),
    "a new link": ("ln -s /etc/passwd l2", ["A l2"]),
    "a link to elsewhere": ("ln -sfn e l", ["M l"]),
    "a file in place of a directory": ("rm -r d; echo x > d", ["T d"]),
    "a directory in place of a file": ("rm e; mkdir e; echo x > e/f", ["T e/", "A e/f"]),
    "a link in place of a file": ("rm e; ln -s d e", ["T e"]),
    "a directory made anew": (
        "rm -r d; mkdir d; echo x > d/f; echo y > d/n",
        ["T d/", "M d/f", "D d/g", "A d/n"],
    ),
    "a directory made anew as it was": (
        "cp -a d /tmp/$$d; rm -r d; cp -a /tmp/$$d d; rm -r /tmp/$$d",
        [],
    ),
    "an attribute": ("setfattr -n user.mine -v 1 e", ["x e"]),
    "an attribute that is called like the overlay's": ("setfattr -n user.overlay.opaque -v y d", ["x d/"]),
    "a file that was read only": ("cat e d/f > /dev/null; ls -lR", []),
    "a file made and removed": ("echo x > n; rm n", []),
    "a fifo": ("mkfifo p", ["A p"]),
    "a second name": ("ln e e2", ["A e2"]),
}


@pytest.mark.parametrize("what", ROWS)
def test_each_way_to_change_a_tree_is_listed(field: Field, what: str) -> None:
    prepare(field)
    line, expected = ROWS[what]
    field.run(line)
    assert [short(change) for change in list_changes(field.layers)] == expected


def prepare(field: Field) -> None:
    field.file("d/f", "content of f\n")
    field.file("d/g", "content of g\n")
    os.utime(field.lower / "d/g", (1, 1))
    os.utime(field.lower / "d/f", (1, 1))
    field.file("e", "content of e\n")
    (field.lower / "l").symlink_to("d/f")


def short(change: Change) -> str:
    return change.line().split("  (")[0]


def test_before_and_after_are_told(field: Field) -> None:
    prepare(field)
    field.run("printf longer > e; chmod 600 e")
    (change,) = list_changes(field.layers)
    assert change.before is not None
    assert change.after is not None
    assert (change.before.size, change.after.size) == (13, 6)
    assert (change.before.mode, change.after.mode) == (0o644, 0o600)
    assert change.before.digest != change.after.digest
    assert change.line() == "M e  (13 -> 6 bytes; mode 644 -> 600)"


def test_names_that_a_terminal_would_obey_are_shown_escaped(field: Field) -> None:
    field.run(
        "echo x > \"$(printf 'a\\033[2Jb')\"; echo x > \"$(printf 'n\\nl')\"; echo x > ./-rf; "
        "printf x > \"$(printf '\\377')\""
    )
    lines = [change.line() for change in list_changes(field.layers)]
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
    assert any("a\\x1b[2Jb" in line for line in lines)


def test_an_attribute_of_a_program_is_shown_by_its_own_name(field: Field) -> None:
    field.file("d/f")
    field.run("setfattr -n user.overlay.redirect -v /etc d; setfattr -n user.x -v 1 d/f; echo y > d/f")
    told = {change.path: change.attributes for change in list_changes(field.layers)}
    assert told == {"d": ("user.overlay.redirect",), "d/f": ("user.x",)}


def test_the_same_for_the_overlay_of_real_root(field: Field) -> None:
    skip_unless_host("root-only")
    field.attributes = "trusted"
    field.file("d/sub/f", "f\n")
    field.file("d/g", "g\n")
    field.run('python3 -c \'import os; os.rename("d", "moved")\'; echo more >> moved/g; rm -r moved/sub')
    assert [short(change) for change in list_changes(field.layers)] == ["D d/", "A moved/", "A moved/g"]


def test_an_index_that_differs_in_stat_data_only_is_not_listed(field: Field) -> None:
    repository(field.lower)
    before = (field.lower / ".git/index").read_bytes()
    field.run("touch -d 2002-02-02 f; git status")
    assert [change.path for change in list_changes(field.layers)] == ["f"]
    after = (field.upper / ".git/index").read_bytes()
    assert before != after, "git has not written its index, so nothing was shown"
    assert same_but_for_stat_data(before, after)
    field.run("echo x > new; git add new")
    paths = [change.path for change in list_changes(field.layers)]
    assert ".git/index" in paths
    assert "new" in paths


@pytest.mark.parametrize("version", ["2", "4"])
def test_indexes_are_compared_in_each_version(tmp_path: Path, version: str) -> None:
    repository(tmp_path)
    git(tmp_path, "update-index", "--index-version", version)
    one = (tmp_path / ".git/index").read_bytes()
    os.utime(tmp_path / "f", (5, 5))
    git(tmp_path, "status")
    other = (tmp_path / ".git/index").read_bytes()
    assert one != other
    assert same_but_for_stat_data(one, other)
    (tmp_path / "f").write_text("other\n")
    git(tmp_path, "add", "f")
    assert not same_but_for_stat_data(one, (tmp_path / ".git/index").read_bytes())
    assert not same_but_for_stat_data(one, one[:-30])
    assert not same_but_for_stat_data(b"DIRC", one)


def repository(top: Path) -> None:
    git(top, "init", "-q")
    (top / "f").write_text("f\n")
    (top / "sub").mkdir()
    (top / "sub/g").write_text("g\n")
    git(top, "add", ".")
    git(top, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")


def git(top: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(top), *words], check=True, capture_output=True)


def test_the_cost_is_that_of_the_changes(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the clock: the directories that are listed are those that the upper one has."""
    for n in range(30):
        field.file(f"many/{n}/f")
    field.run("echo x > many/3/f")
    listed: list[object] = []
    original = os.listdir

    def counted(where: int) -> list[str]:
        listed.append(where)
        return original(where)

    monkeypatch.setattr(os, "listdir", counted)
    assert [change.path for change in list_changes(field.layers)] == ["many/3/f"]
    assert len(listed) < 10
