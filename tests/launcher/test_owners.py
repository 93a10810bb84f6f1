"""idmap, become: whose files are, inside, and who the command is."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.jail.kernel import CLONE_NEW
from hostfacts import skip_unless_host
from launcher.driver import inside, launch, namespaces, opened, python, refused_step

pytestmark = pytest.mark.jail

EPERM, EINVAL = 1, 22
SOMEBODY = 60999
WHO = python(
    "import os; status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines())\n"
    "print(os.getresuid(), os.getresgid(), os.getgroups(),"
    " *[int(status[n], 16) for n in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')])"
)


@contextlib.contextmanager
def owners() -> Iterator[int]:
    """A user namespace in which what is ours on disk is somebody's."""
    make = "import ctypes, sys; assert ctypes.CDLL(None).unshare(0x10000000) == 0; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(python(make), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        for name in ("uid", "gid"):
            Path(f"/proc/{holder.pid}/{name}_map").write_text(f"0 {SOMEBODY} 1")
        fd = os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY)
        assert holder.stdin is not None
        holder.stdin.close()
    try:
        yield fd
    finally:
        os.close(fd)


def own_mounts(*steps: object) -> list[object]:
    """Without a user namespace, as root alone may."""
    return ["namespaces", CLONE_NEW["mnt"], "private", *steps]


# ---- idmap ----


def mapped(fd: int, source: Path, place: Path) -> list[object]:
    steps = ["fd", 9, fd, *opened(0, source), "tree", 1, 0, 0, "idmap", 1, 9]
    return [*steps, *opened(2, place), "attach", 1, 2]


def test_what_is_ours_on_disk_is_somebodys_inside_and_the_other_way_round(
    place: Path, tmp_path: Path
) -> None:
    skip_unless_host("mounting")
    source = tmp_path / "source"
    source.mkdir()
    (source / "ours").write_text("ours\n")
    script = "stat -c '%u %g' . ours; echo more >> ours; echo new > made; stat -c %u made; id -u"
    with owners() as fd:
        there = [*opened(3, place), "chdir", 3]  # the way to it is not somebody's to go
        plan = own_mounts(*mapped(fd, source, place), "init", *there, "become", SOMEBODY, SOMEBODY)
        done = launch(plan, ["sh", "-c", script], pass_fds=(fd,))
    somebody = f"{SOMEBODY} {SOMEBODY}"
    assert done.stdout.decode().splitlines() == [somebody, somebody, str(SOMEBODY), str(SOMEBODY)], done
    assert (source / "ours").read_text() == "ours\nmore\n"
    assert ((source / "made").stat().st_uid, (source / "made").stat().st_gid) == (0, 0)
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]


def test_without_the_map_that_user_cannot_write_what_is_ours(place: Path, tmp_path: Path) -> None:
    """The control."""
    skip_unless_host("mounting")
    place.chmod(0o755)
    (place / "of-the-host").chmod(0o644)
    plan = own_mounts("init", *opened(3, place), "chdir", 3, "become", SOMEBODY, SOMEBODY)
    done = launch(plan, ["sh", "-c", "cat of-the-host; echo x >> of-the-host"])
    assert done.stdout == b"host\n"
    assert b"Permission denied" in done.stderr
    assert (place / "of-the-host").read_text() == "host\n"


def test_what_is_in_place_already_is_not_mapped(place: Path, tmp_path: Path) -> None:
    skip_unless_host("mounting")
    with owners() as fd:
        steps = ["fd", 9, fd, *opened(0, tmp_path), "tree", 1, 0, 0, *opened(2, place), "attach", 1, 2]
        done = launch(own_mounts(*steps, "idmap", 1, 9, "init"), ["touch", place / "witness"], pass_fds=(fd,))
    assert refused_step(done) == (7, EINVAL)
    assert not (place / "witness").exists()


def test_a_directory_in_a_mount_is_not_mapped(place: Path) -> None:
    skip_unless_host("mounting")
    with owners() as fd:
        plan = own_mounts("fd", 9, fd, *opened(0, place), "idmap", 0, 9, "init")
        assert refused_step(launch(plan, ["true"], pass_fds=(fd,))) == (4, EINVAL)


def test_what_is_no_user_namespace_is_no_map(place: Path) -> None:
    skip_unless_host("mounting")
    for kind in ("mnt", "user"):  # our own is the one that the file system knows already
        fd = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
        try:
            done = launch(own_mounts(*mapped(fd, place, place), "init"), ["true"], pass_fds=(fd,))
        finally:
            os.close(fd)
        step, error = refused_step(done)
        assert (step, error in (EINVAL, EPERM)) == (5, True)


def test_who_is_not_root_outside_maps_nothing_of_the_hosts(place: Path) -> None:
    skip_unless_host("user-namespaces")
    fd = os.open("/proc/self/ns/user", os.O_RDONLY)
    try:
        done = launch(inside(mapped(fd, place, place)), ["touch", place / "witness"], pass_fds=(fd,))
    finally:
        os.close(fd)
    step, error = refused_step(done)
    assert (step, error in (EINVAL, EPERM)) == (5, True)
    assert not (place / "witness").exists()


# ---- become ----


def test_root_becomes_somebody_with_one_group_and_nothing_to_come_back_with() -> None:
    skip_unless_host("root-attacks")
    for keeper in ([], ["supervise", 0]):
        done = launch([*keeper, "become", SOMEBODY, SOMEBODY + 1], WHO)
        uid, gid = SOMEBODY, SOMEBODY + 1
        assert done.stdout.decode() == f"{(uid, uid, uid)} {(gid, gid, gid)} [] 0 0 0 0 0\n", done
    back = python("import os\ntry: os.setuid(0)\nexcept PermissionError: print('refused')")
    assert launch(["become", SOMEBODY, SOMEBODY], back).stdout == b"refused\n"


def test_what_is_done_before_it_is_done_as_root_and_after_it_as_that_user(place: Path) -> None:
    skip_unless_host("root-attacks")
    place.chmod(0o700)
    before = [*opened(0, place), "make", 1, 0, "before", "dir", 0o700, "become", SOMEBODY, SOMEBODY]
    done = launch([*before, "make", 2, 0, "after", "dir", 0o700], ["touch", place / "witness"])
    assert refused_step(done) == (3, 13)
    assert sorted(entry.name for entry in place.iterdir()) == ["before", "of-the-host"]


def test_who_may_not_becomes_nobody_else(place: Path) -> None:
    skip_unless_host("user-namespaces")
    plans = [[*namespaces("mnt"), "init"]]  # one user is known there, and groups cannot be dropped
    if os.geteuid() != 0:
        plans.append([])
    for plan in plans:
        done = launch([*plan, "become", SOMEBODY, SOMEBODY], ["touch", place / "witness"])
        step, error = refused_step(done)
        assert (step, error) == (len([word for word in plan if str(word).isalpha()]), EPERM)
        assert not (place / "witness").exists()
