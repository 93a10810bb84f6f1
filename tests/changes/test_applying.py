"""Apply gives the tree that running outside would have given; discard gives the tree as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from changes.field import Field, Picture, picture
from changes.test_listing import ROWS, git, prepare, repository
from corral.changes import apply, discard, list_changes
from corral.errors import PolicyError, Refused
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail

# Extended attributes and FIFOs stay behind; everything else lands as it was made.
STAYS_BEHIND = ("an attribute", "an attribute that is called like the overlay's", "a fifo")

DATE = "2020-02-02 02:02:02 +0000"
# Real work, on a tree with a repository, a tarball and a C project.
CORPUS = {
    "unpack a tarball": "tar --no-same-owner -xf ../parcel.tar",
    "build a C project": "cd c && ar rc lib.a && gcc -c one.c two.c && gcc -o prog one.o two.o && ./prog > out.txt",
    # An ordinary user's overlay gives a file another inode when it is linked, which git takes for an attack.
    "clone a local repository": f"git clone -q {'--no-hardlinks' if os.geteuid() else '--local'} . cloned",
    "commit": "echo more >> f; git add .; git -c user.name=n -c user.email=e commit -qm second",
    "rebase": "git checkout -q -b other HEAD~1; echo o > o; git add .; "
    "git -c user.name=n -c user.email=e commit -qm o; git -c user.name=n -c user.email=e rebase -q main",
    "stash": "echo more >> f; git -c user.name=n -c user.email=e stash -q; git stash pop -q",
    "worktree": "git worktree add -q sub/tree",
    "mv of a directory": "git mv sub/g g2; mv c c2",
    "many small files": "for d in $(seq 40); do mkdir -p node_modules/p$d/lib; for f in $(seq 10); do "
    "echo $d $f > node_modules/p$d/lib/$f.js; done; done; ln -s ../p1/lib/1.js node_modules/p2/link",
}


def as_if_outside(field: Field, line: str, *, times: bool) -> tuple[Picture, Picture]:
    """The tree after apply, and a copy of the tree in which the same was run."""
    line = f"export GIT_AUTHOR_DATE='{DATE}' GIT_COMMITTER_DATE='{DATE}'; {line}"
    copy = field.base / "outside" / "copy"
    shutil.copytree(field.lower, copy, symlinks=True)
    field.run(line)
    subprocess.run(["sh", "-ec", line], cwd=copy, check=True, stdout=subprocess.DEVNULL)
    done = apply(field.layers, allow_exec=True)
    assert not done.left
    assert list_changes(field.layers) == []
    assert os.listdir(field.upper) == [], "what is applied is not kept twice"
    return picture(field.lower, times=times), picture(copy, times=times)


@pytest.mark.parametrize("what", [row for row in ROWS if row not in STAYS_BEHIND])
def test_apply_is_as_if_it_had_run_outside(field: Field, what: str) -> None:
    prepare(field)
    applied, outside = as_if_outside(field, ROWS[what][0], times=False)
    assert applied == outside


@pytest.mark.parametrize("what", CORPUS)
def test_apply_of_real_work_is_as_if_it_had_run_outside(field: Field, what: str) -> None:
    work_tree(field)
    applied, outside = as_if_outside(field, CORPUS[what], times=False)
    assert applied.keys() == outside.keys()
    # What holds times, paths, or was made a second later has other bytes in the two runs.
    for name in list(applied):
        if is_different_every_time(name):
            applied.pop(name)
            outside.pop(name)
    assert applied == outside
    if (field.lower / ".git").is_dir():
        git(field.lower, "fsck")


def is_different_every_time(name: str) -> bool:
    return ".git/" in name or name.endswith((".a", ".o", "/prog", "/.git"))


def work_tree(field: Field) -> None:
    git(field.lower, "init", "-q", "-b", "main")
    repository(field.lower)
    field.file("late", "late\n")
    git(field.lower, "add", ".")
    git(field.lower, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "late")
    field.file(
        "c/one.c",
        '#include <stdio.h>\nint two(void);\nint main(void) { printf("%d\\n", two()); return 0; }\n',
    )
    field.file("c/two.c", "int two(void) { return 2; }\n")
    parcel = field.base / "parcel"
    for n in range(50):
        made = parcel / f"d{n % 7}" / f"file {n}"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(str(n) * n)
    (parcel / "link").symlink_to("d1")
    for where in (field.base, field.base / "outside"):
        where.mkdir(exist_ok=True)
        subprocess.run(["tar", "-C", str(field.base), "-cf", str(where / "parcel.tar"), "parcel"], check=True)


def test_git_goes_on_where_the_jail_left_off(field: Field) -> None:
    work_tree(field)
    field.run(CORPUS["rebase"])
    apply(field.layers, allow_exec=True)
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=field.lower, capture_output=True, text=True, check=True
    )
    assert log.stdout.split() == ["o", "late", "first"]
    status = subprocess.run(
        ["git", "status", "--short"], cwd=field.lower, capture_output=True, text=True, check=True
    )
    assert status.stdout.split() == []


@pytest.mark.soak
def test_twenty_thousand_files_are_applied(field: Field) -> None:
    field.run(
        "for d in $(seq 200); do mkdir -p node_modules/p$d/lib; for f in $(seq 100); do "
        "echo $d $f > node_modules/p$d/lib/$f.js; done; done"
    )
    assert len(list_changes(field.layers)) == 20_401
    apply(field.layers)
    assert sum(1 for _ in (field.lower / "node_modules").rglob("*.js")) == 20_000
    assert os.listdir(field.upper) == []


# ---- a part of it ----


def test_only_what_is_named_is_applied(field: Field) -> None:
    prepare(field)
    field.run("echo x > d/f; rm d/g; mkdir -p n/m; echo 1 > n/m/one; echo 2 > n/m/two; echo x > e")
    done = apply(field.layers, ["d/f", "n/m/one"])
    assert [change.path for change in done.applied] == ["d/f", "n", "n/m", "n/m/one"]
    assert (field.lower / "d/f").read_text() == "x\n"
    assert (field.lower / "d/g").exists()
    assert os.listdir(field.lower / "n/m") == ["one"]
    assert [change.path for change in list_changes(field.layers)] == ["d/g", "e", "n/m/two"]
    apply(field.layers)
    assert not (field.lower / "d/g").exists()
    assert (field.lower / "n/m/two").read_text() == "2\n"
    assert os.listdir(field.upper) == []


def test_a_directory_made_anew_can_be_applied_in_parts(field: Field) -> None:
    prepare(field)
    field.run("rm -r d; mkdir d; echo x > d/f; echo n > d/n")
    apply(field.layers, ["d/f"])
    assert (field.lower / "d/f").read_text() == "x\n"
    assert (field.lower / "d/g").exists()
    assert not (field.lower / "d/n").exists()
    field.inside("test ! -e d/g; test -e d/n; grep x d/f")
    field.file("d/by-hand", "a person's\n")
    apply(field.layers, ["d/g"])
    assert not (field.lower / "d/g").exists()
    apply(field.layers)
    assert sorted(os.listdir(field.lower / "d")) == ["by-hand", "f", "n"]
    assert os.listdir(field.upper) == []


def test_a_path_without_changes_is_told(field: Field) -> None:
    prepare(field)
    field.run("echo x > e")
    for action in (apply, discard):
        with pytest.raises(PolicyError, match="nothing is changed at d"):
            action(field.layers, ["d"])


def test_a_rename_is_one_change_under_either_name(field: Field) -> None:
    prepare(field)
    for name in ("moved", "e"):
        field.run("mv e moved")
        apply(field.layers, [name])
        assert sorted(os.listdir(field.lower)) == ["d", "l", "moved"]
        (field.lower / "moved").rename(field.lower / "e")


def test_some_hunks_of_a_file(field: Field) -> None:
    lines = [f"{n}\n" for n in range(40)]
    field.file("f", "".join(lines))
    field.run("sed -i -e 's/^3$/three/' -e 's/^33$/thirty-three/' f")
    first = "".join(lines).replace("3\n", "three\n", 1)
    apply(field.layers, ["f"], partial={"f": first.encode()})
    assert (field.lower / "f").read_text() == first
    (change,) = list_changes(field.layers)
    assert (change.kind, change.conflict) == ("modified", "")
    apply(field.layers)
    assert (field.lower / "f").read_text() == first.replace("\n33\n", "\nthirty-three\n")
    assert list_changes(field.layers) == []


def test_a_second_run_builds_on_the_first(field: Field) -> None:
    prepare(field)
    field.run("echo one > e; echo new > n")
    field.run("echo two > e; rm n; echo x > d/f")
    assert [change.line().split()[:2] for change in list_changes(field.layers)] == [["M", "d/f"], ["M", "e"]]
    apply(field.layers)
    assert (field.lower / "e").read_text() == "two\n"


# ---- modes, links, special files ----


def test_modes_are_kept_but_not_those_that_give_rights(field: Field) -> None:
    prepare(field)
    field.run(
        "echo x > private; chmod 600 private; echo x > tool; chmod 755 tool; echo x > all; chmod 666 all; chmod 600 e"
    )
    apply(field.layers)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in field.lower.iterdir() if path.is_file()}
    assert modes["private"] == 0o600
    assert modes["tool"] == 0o755
    assert modes["e"] == 0o600
    assert modes["all"] == 0o664, "nothing becomes writable for everybody"


def test_what_is_not_readable_even_for_its_owner_is_applied_nevertheless(field: Field) -> None:
    field.run(
        "mkdir closed; echo x > closed/f; chmod 000 closed/f; chmod 000 closed; echo x > g; chmod 000 g"
    )
    apply(field.layers)
    assert (field.lower / "closed").stat().st_mode & 0o777 == 0
    os.chmod(field.lower / "closed", 0o700)
    assert (field.lower / "closed/f").stat().st_mode & 0o777 == 0
    os.chmod(field.lower / "g", 0o600)
    assert (field.lower / "g").read_text() == "x\n"
    assert os.listdir(field.upper) == []


def test_a_file_with_several_names_is_parted_from_the_others(field: Field) -> None:
    """As the overlay did inside; the store of a package manager may be on the other end."""
    prepare(field)
    os.link(field.lower / "e", field.lower / "twin")
    field.run("echo x > e")
    apply(field.layers)
    assert (field.lower / "e").read_text() == "x\n"
    assert (field.lower / "twin").read_text() == "content of e\n"


def test_a_directory_in_which_nothing_may_be_written_refuses_all_of_it(field: Field) -> None:
    skip_unless_host("user-only")
    prepare(field)
    field.run("echo x > e; echo x > d/f")
    before = picture(field.lower)
    os.chmod(field.lower / "d", 0o555)
    try:
        with pytest.raises(Refused, match="nothing was applied"):
            apply(field.layers)
    finally:
        os.chmod(field.lower / "d", 0o755)
    assert picture(field.lower) == before
    apply(field.layers)


# ---- discard ----

# Every system call that changes a tree, in a program that uses it.
CALLS = {
    "symlink": "os.symlink('/etc', 'd/l')",
    "link": "os.link('e', 'd/e2')",
    "mkfifo": "os.mkfifo('d/p')",
    "socket bind": "import socket; socket.socket(socket.AF_UNIX).bind('d/s')",
    "setxattr": "os.setxattr('d/f', 'user.x', b'1'); os.setxattr('d', 'user.x', b'1')",
    "utime": "os.utime('d/f', (5, 5)); os.utime('d', (5, 5))",
    "truncate": "os.truncate('d/f', 2)",
    "chmod": "os.chmod('d/f', 0o777); os.chmod('d', 0o700)",
    "mmap write": "import mmap; m = mmap.mmap(os.open('d/f', os.O_RDWR), 4); m[0:2] = b'XX'; m.flush(); m.close()",
    "rename of a directory": "subprocess.run(['mv', 'd', 'd2'], check=True)",
    "rename over": "os.rename('e', 'd/f')",
    "renameat2 exchange": "ctypes.CDLL(None).renameat2(-100, b'e', -100, b'd/f', 2)",
    "copy_file_range": "os.copy_file_range(os.open('e', 0), os.open('d/f', os.O_RDWR), 5)",
    "fallocate": "os.posix_fallocate(os.open('d/f', os.O_RDWR), 0, 9000)",
    "O_TMPFILE and linkat": "fd = os.open('d', os.O_TMPFILE | os.O_RDWR); os.write(fd, b'x'); "
    "os.link(f'/proc/self/fd/{fd}', 'd/t', src_dir_fd=os.open('/', 0), follow_symlinks=True)",
    "unlink and rmdir": "os.unlink('d/f'); os.unlink('d/g'); os.rmdir('d')",
    "mkdir over": "os.unlink('e'); os.mkdir('e'); os.mkdir('e/f')",
    "mknod": "os.mknod('d/r'); os.mknod('d/q', 0o4755)",
    "append": "os.write(os.open('d/f', os.O_WRONLY | os.O_APPEND), b'x')",
}


@pytest.mark.parametrize("call", CALLS)
def test_after_discard_the_tree_is_as_it_was(field: Field, call: str) -> None:
    prepare(field)
    before = picture(field.lower)
    program = f"import ctypes, os, subprocess\n{CALLS[call]}\n"
    (field.base / "program.py").write_text(program)
    field.run("python3 ../program.py")
    assert list_changes(field.layers), "the call changed nothing, so nothing was shown"
    discard(field.layers)
    assert picture(field.lower) == before
    assert list_changes(field.layers) == []
    assert os.listdir(field.upper) == []


def test_only_what_is_named_is_discarded(field: Field) -> None:
    prepare(field)
    field.run("rm -r d; mkdir d; echo x > d/f; echo n > d/n; echo x > e; chmod 700 d")
    discard(field.layers, ["d/g", "e"])
    assert [change.path for change in list_changes(field.layers)] == ["d", "d/f", "d/n"]
    field.inside("grep -q g d/g; grep -q x d/f; test -e d/n; grep -q content e")
    discard(field.layers, ["d"])
    assert list_changes(field.layers) == []
    field.inside("grep -q content d/f; test ! -e d/n")


def test_a_renamed_directory_of_real_root_comes_apart(field: Field) -> None:
    skip_unless_host("root-only")
    field.attributes = "trusted"
    for name in ("d/a", "d/sub/b", "d/sub/c"):
        field.file(name, f"{name}\n")
    field.run('python3 -c \'import os; os.rename("d", "moved")\'; echo more >> moved/a; rm moved/sub/c')
    changes = [change.line().split("  (")[0] for change in list_changes(field.layers)]
    assert changes == ["D d/", "A moved/", "A moved/a", "A moved/sub/", "A moved/sub/b"]
    apply(field.layers, ["moved/sub"])
    assert (field.lower / "moved/sub/b").read_text() == "d/sub/b\n"
    field.inside("test ! -e d; grep -q more moved/a; grep -q b moved/sub/b; test ! -e moved/sub/c")
    apply(field.layers)
    assert (field.lower / "moved/a").read_text() == "d/a\nmore\n"
    assert not (field.lower / "d").exists()
    assert os.listdir(field.upper) == []


def test_the_real_directory_is_never_needed_to_discard(field: Field) -> None:
    prepare(field)
    field.run("echo x > e")
    (field.lower / "e").unlink()
    discard(field.layers)
    assert list_changes(field.layers) == []


def test_nothing_is_applied_or_discarded_while_something_runs(field: Field) -> None:
    from corral.changes import begin, seal, survey

    prepare(field)
    held = begin(field.layers)
    other = begin(field.layers)
    field.inside("echo x > e")
    for action in (apply, discard):
        with pytest.raises(Refused, match="still runs"):
            action(field.layers)
    found = survey(field.layers)
    assert found.running
    assert [change.path for change in found.changes] == ["e"]
    os.close(held)
    assert not seal(field.layers), "the other one goes on"
    os.close(other)
    assert seal(field.layers)
    apply(field.layers)
    assert (field.lower / "e").read_text() == "x\n"


def test_paths_lead_nowhere_but_into_the_directory(field: Field, tmp_path: Path) -> None:
    prepare(field)
    field.run("echo x > d/f")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (field.lower / "d").rename(tmp_path / "kept")
    (field.lower / "d").symlink_to(elsewhere)
    with pytest.raises(Refused):
        apply(field.layers)
    assert list(elsewhere.iterdir()) == []
