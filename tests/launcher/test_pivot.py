"""pivot, attributes, and places that may be there already: a root in which only what was put there exists."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from corral.jail.kernel import MOUNT_NOEXEC, MOUNT_RDONLY
from launcher.driver import inside, launch, namespaces, opened, refused_step, tmpfs_on

pytestmark = [pytest.mark.jail, pytest.mark.usefixtures("user_namespaces")]

EPERM, ENOENT, EEXIST, ENOTDIR, EINVAL, ELOOP = 1, 2, 17, 20, 22, 40
SH = ["/usr/bin/sh", "-c"]
# What it takes to run a shell.
SYSTEM = [name for name in ("usr", "bin", "lib", "lib32", "lib64", "sbin") if os.path.lexists(f"/{name}")]


def system() -> tuple[list[object], list[object], int]:
    """Steps that take the system, steps that put it into the root in slot 0, and a slot that is still free."""
    taken: list[object] = []
    put: list[object] = []
    slot = 10
    for name in SYSTEM:
        if os.path.islink(f"/{name}"):
            put += ["make", slot, 0, name, f"->{os.readlink(f'/{name}')}", 0]
            slot += 1
            continue
        taken += [*opened(slot, f"/{name}"), "tree", slot + 1, slot, MOUNT_RDONLY]
        put += ["make", slot + 2, 0, name, "dir", 0o755, "attach", slot + 1, slot + 2]
        slot += 3
    return taken, put, slot


def new_root(place: Path, *late: object) -> list[object]:
    """Slot 0 is the root."""
    taken, put, _ = system()
    return [*taken, *tmpfs_on(place), "pivot", 0, *put, *late]


# ---- pivot ----


def test_after_it_only_what_was_put_there_exists(place: Path) -> None:
    assert launch(inside([]), ["ls", place]).stdout == b"of-the-host\n"
    script = f"cd /; set -- *; echo $*; cd ..; pwd; test -e {place} || echo gone; test -e /etc || echo gone"
    done = launch(inside(new_root(place)), [*SH, script])
    assert done.stdout.decode().splitlines() == [" ".join(sorted(SYSTEM)), "/", "gone", "gone"], done
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]


def test_nothing_of_the_old_root_is_left_among_the_mounts(place: Path) -> None:
    taken, put, _ = system()
    proc = ["mount", 5, "proc", "", 0]  # before: without a process list in sight the kernel gives no other
    after = ["make", 6, 0, "proc", "dir", 0o755, "attach", 5, 6]
    plan = [*namespaces("mnt", "pid"), *proc, *taken, *tmpfs_on(place), "pivot", 0, *put, *after, "init"]
    done = launch(plan, ["/usr/bin/cat", "/proc/self/mountinfo"])
    points = [line.split()[4] for line in done.stdout.decode().splitlines()]
    real = [name for name in SYSTEM if not os.path.islink(f"/{name}")]
    tops = {"/" + point.split("/")[1] for point in points}
    assert "/" in points, done
    assert tops == {"/", "/proc", *(f"/{name}" for name in real)}


def test_the_host_keeps_its_root(place: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    assert launch(inside(new_root(place)), [*SH, "echo x > /made; exit 3"]).returncode == 3
    assert Path("/proc/self/mountinfo").read_text() == before
    assert not os.path.lexists("/made")


def test_a_path_is_opened_in_the_new_root_from_then_on(place: Path) -> None:
    _, _, free = system()
    done = launch(inside(new_root(place, *opened(free, place))), [*SH, "exit 0"])
    step, error = refused_step(done)
    assert error == ENOENT
    made = new_root(
        place, "make", free, 0, "here", "dir", 0o755, *opened(free + 1, "/here"), "chdir", free + 1
    )
    assert launch(inside(made), [*SH, "pwd"]).stdout == b"/here\n"
    assert step > 0


def test_only_what_is_mounted_there_can_be_the_root(place: Path) -> None:
    (place / "below").mkdir()
    done = launch(inside([*opened(0, place), "pivot", 0]), ["touch", place / "witness"])
    assert refused_step(done) == (3, EINVAL)
    file = inside([*opened(0, place / "of-the-host", stat.S_IFREG), "pivot", 0])
    assert refused_step(launch(file, ["true"])) == (3, ENOTDIR)
    detached = inside(["mount", 0, "tmpfs", "", 0, "pivot", 0])
    assert refused_step(launch(detached, ["true"])) == (3, EINVAL)
    assert not (place / "witness").exists()


def test_it_needs_mounts_of_its_own(place: Path) -> None:
    done = launch([*namespaces(), *opened(0, place), "pivot", 0, "init"], ["touch", place / "witness"])
    assert refused_step(done) == (3, EPERM)
    assert not (place / "witness").exists()


def test_a_step_that_fails_behind_it_runs_nothing_in_either_root(place: Path) -> None:
    _, _, free = system()
    late = new_root(place, "make", free, 0, "x", "dir", 0o755, "make", free + 1, 0, "x", "dir", 0o755)
    done = launch(inside(late), [*SH, f"echo ran; : > {place}/witness"])
    assert refused_step(done)[1] == EEXIST
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]


# ---- attributes ----


def test_attributes_bind_one_mount_that_is_in_place_and_none_below_it(place: Path) -> None:
    steps = [*tmpfs_on(place), "make", 2, 0, "below", "dir", 0o755, "mount", 3, "tmpfs", "mode=755", 0]
    steps += ["attach", 3, 2]
    script = f"echo x > {place}/made; echo y > {place}/below/made && cat {place}/below/made"
    plain = launch(inside(steps), ["sh", "-c", script])
    assert (plain.stdout, plain.stderr) == (b"y\n", b"")
    closed = launch(inside([*steps, "attributes", 0, MOUNT_RDONLY]), ["sh", "-c", script])
    assert closed.stdout == b"y\n"
    assert closed.stderr.count(b"Read-only file system") == 1


def test_attributes_add_up_and_none_is_taken_back(place: Path) -> None:
    steps = [*tmpfs_on(place, attrs=MOUNT_RDONLY), "attributes", 0, MOUNT_NOEXEC, "attributes", 0, 0]
    done = launch(inside(steps), ["grep", str(place), "/proc/self/mountinfo"])
    options = done.stdout.decode().split()[5].split(",")
    assert {"ro", "noexec"} <= set(options)


def test_attributes_are_of_a_mount_and_not_of_a_directory_in_it(place: Path) -> None:
    done = launch(inside([*opened(0, place), "attributes", 0, MOUNT_RDONLY]), ["touch", place / "witness"])
    assert refused_step(done) == (3, EINVAL)
    assert not (place / "witness").exists()


def test_an_attribute_that_the_kernel_does_not_know_is_refused(place: Path) -> None:
    done = launch(inside([*tmpfs_on(place), "attributes", 0, 1 << 40]), ["true"])
    assert refused_step(done) == (5, EINVAL)


def test_a_root_that_is_closed_takes_nothing_more(place: Path) -> None:
    done = launch(inside(new_root(place, "attributes", 0, MOUNT_RDONLY)), [*SH, ": > /made"])
    assert b"Read-only file system" in done.stderr
    assert launch(inside(new_root(place)), [*SH, ": > /made && echo made"]).stdout == b"made\n"


# ---- make, where it may be there from an earlier run ----


def test_what_may_be_there_is_made_once_and_taken_as_it_is(place: Path) -> None:
    steps = [*opened(0, place), "make", 1, 0, "d", "dir?", 0o700, "make", 2, 1, "f", "file?", 0o600]
    assert launch(steps, ["true"], umask=0).returncode == 0
    assert stat.S_IMODE((place / "d").stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "d/f").stat().st_mode) == 0o600
    (place / "d").chmod(0o750)
    (place / "d/f").write_text("kept\n")
    assert launch([*steps, "chdir", 1], ["cat", "f"]).stdout == b"kept\n"
    assert stat.S_IMODE((place / "d").stat().st_mode) == 0o750


@pytest.mark.parametrize("there", ["link", "file", "dangling"])
def test_a_directory_that_may_be_there_must_be_one_and_no_link_to_one(
    there: str, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    if there == "file":
        (place / "d").touch()
    else:
        (place / "d").symlink_to(tmp_path / ("elsewhere" if there == "link" else "missing"))
    steps = [*opened(0, place), "make", 1, 0, "d", "dir?", 0o700, "make", 2, 1, "made", "dir", 0o700]
    done = launch(steps, ["touch", place / "witness"])
    step, error = refused_step(done)
    assert step == 1
    assert error in (ENOTDIR, ELOOP)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (place / "witness").exists()


def test_a_file_that_may_be_there_is_held_itself_and_a_link_is_not_followed(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (place / "f").symlink_to(tmp_path / "secret")
    steps = [*opened(0, place), "make", 1, 0, "f", "file?", 0o600]
    mounted = [*steps, *opened(2, place / "of-the-host", stat.S_IFREG), "tree", 3, 2, 0, "attach", 3, 1]
    done = launch(inside(mounted), ["cat", place / "f"])
    assert (done.returncode, done.stdout) == (0, b"host\n")
    assert (tmp_path / "secret").read_text() == "secret\n"
    assert (place / "f").is_symlink()


def test_a_place_in_a_directory_that_takes_none_is_refused(place: Path) -> None:
    closed = [*tmpfs_on(place, attrs=MOUNT_RDONLY), "make", 2, 0, "d", "dir?", 0o700]
    step, error = refused_step(launch(inside(closed), ["true"]))
    assert (step, error) == (5, 30)
    through_a_file = [*opened(0, place / "of-the-host", stat.S_IFREG), "make", 1, 0, "d", "dir?", 0o700]
    assert refused_step(launch(through_a_file, ["true"])) == (1, ENOTDIR)
