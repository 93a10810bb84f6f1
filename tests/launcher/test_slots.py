"""open, fd, close, keep: the only place where paths become descriptors, and what the command is left with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from launcher.driver import (
    CHARACTER,
    DIRECTORY,
    LIST_DESCRIPTORS,
    REGULAR,
    held_descriptors,
    launch,
    opened,
    pinned,
    refused_step,
)

pytestmark = pytest.mark.jail

ENOENT, EBADF, EXDEV, ENOTDIR, EISDIR, EINVAL, ELOOP, ESTALE = 2, 9, 18, 20, 21, 22, 40, 116
BENEATH = 8


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


# ---- open ----


def test_a_path_that_is_still_what_was_pinned_is_opened(tmp_path: Path) -> None:
    done = launch([*pinned(0, tmp_path), "chdir", 0], ["pwd"])
    assert (done.returncode, done.stdout.decode().strip()) == (0, str(tmp_path))


@pytest.mark.parametrize(
    ("path", "expected", "error"),
    [
        ("/", REGULAR, EISDIR),
        ("/", 0, EISDIR),
        ("/dev/null", DIRECTORY, ENOTDIR),
        ("/dev/null", REGULAR, ENOTDIR),
        ("/etc/passwd", DIRECTORY, ENOTDIR),
        ("/etc/passwd", CHARACTER, ENOTDIR),
    ],
)
def test_another_kind_of_file_is_refused(path: str, expected: int, error: int) -> None:
    assert refused_step(launch(opened(0, path, expected), ["true"])) == (0, error)
    right = stat.S_IFMT(os.lstat(path).st_mode)
    assert launch(opened(0, path, right), ["true"]).returncode == 0


@pytest.mark.parametrize("operand", [6, 7], ids=["device", "inode"])
def test_another_device_or_inode_is_refused(operand: int, tmp_path: Path) -> None:
    plan = pinned(0, tmp_path)
    assert launch(plan, ["true"]).returncode == 0
    wrong = [*plan[:operand], int(str(plan[operand])) + 1, *plan[operand + 1 :]]
    assert refused_step(launch(wrong, ["true"])) == (0, ESTALE)
    unchecked = [*plan[:operand], "-", *plan[operand + 1 :]]
    assert launch(unchecked, ["true"]).returncode == 0


def test_a_directory_replaced_by_another_one_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    plan = pinned(0, place)
    place.rename(tmp_path / "elsewhere")
    place.mkdir()
    assert refused_step(launch(plan, ["true"])) == (0, ESTALE)
    place.rmdir()
    (tmp_path / "elsewhere").rename(place)
    assert launch(plan, ["true"]).returncode == 0


@pytest.mark.parametrize("depth", range(3))
def test_a_symlink_in_any_component_is_refused(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    path.mkdir(parents=True)
    plan = opened(0, path)
    assert launch(plan, ["true"]).returncode == 0
    component = [path, path.parent, path.parent.parent][depth]
    component.rename(tmp_path / "moved")
    component.symlink_to(tmp_path / "moved")
    assert path.is_dir()
    assert refused_step(launch(plan, ["true"])) == (0, ELOOP)


def test_a_magic_link_of_proc_is_refused(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        done = launch(opened(0, f"/proc/{os.getpid()}/fd/{fd}"), ["true"])
    finally:
        os.close(fd)
    assert refused_step(done) == (0, ELOOP)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refused_step(launch(opened(0, tmp_path / "missing"), ["true"])) == (0, ENOENT)
    assert refused_step(launch(opened(0, ""), ["true"])) == (0, EINVAL)


def test_a_path_beneath_a_slot_is_found_and_one_that_leads_out_is_not(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)

    def beneath(path: str | Path) -> list[object]:
        return [
            *opened(0, tmp_path / "in"),
            "open",
            1,
            0,
            str(path),
            BENEATH,
            DIRECTORY,
            "-",
            "-",
            "chdir",
            1,
        ]

    done = launch(beneath("deep"), ["pwd"])
    assert done.stdout.decode().strip() == str(tmp_path / "in" / "deep")
    for path in ("..", "deep/../..", tmp_path / "in", "/"):
        assert refused_step(launch(beneath(path), ["true"])) == (1, EXDEV)


def test_a_path_beneath_a_slot_follows_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name, code in (("real", 0), ("link", 125)):
        plan = [*opened(0, tmp_path), "open", 1, 0, name, BENEATH, DIRECTORY, "-", "-"]
        assert launch(plan, ["true"]).returncode == code


def test_a_path_from_the_root_does_not_depend_on_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "only-here").mkdir()
    done = launch([*opened(0, "only-here"), "chdir", 0], ["pwd"], cwd=tmp_path)
    assert refused_step(done) == (0, EINVAL)


def test_an_unknown_way_to_resolve_is_refused() -> None:
    assert refused_step(launch(["open", 0, "/", "/", 1 << 40, DIRECTORY, "-", "-"], ["true"])) == (0, EINVAL)


def test_opening_neither_reads_nor_blocks(tmp_path: Path) -> None:
    """A FIFO without a writer and a file without a permission open all the same: it is a name, not access."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "closed").touch(mode=0o000)
    for name, kind in (("fifo", stat.S_IFIFO), ("closed", REGULAR)):
        assert launch(opened(0, tmp_path / name, kind), ["true"], timeout=5).returncode == 0


def test_a_slot_does_not_reach_the_command(tmp_path: Path) -> None:
    held = held_descriptors(launch(opened(0, tmp_path), LIST_DESCRIPTORS))
    assert set(held) == {0, 1, 2}


# ---- fd ----


def test_an_inherited_descriptor_can_be_used_and_does_not_reach_the_command(
    descriptor: int, tmp_path: Path
) -> None:
    done = launch(["fd", 0, descriptor, "chdir", 0], ["pwd"], pass_fds=(descriptor,))
    assert done.stdout.decode().strip() == str(tmp_path)
    held = held_descriptors(launch(["fd", 0, descriptor], LIST_DESCRIPTORS, pass_fds=(descriptor,)))
    assert set(held) == {0, 1, 2}


@pytest.mark.parametrize("number", [77, 1 << 20, 4294967295])
def test_a_descriptor_that_is_not_open_is_refused(number: int) -> None:
    assert refused_step(launch(["fd", 0, number], ["true"])) == (0, EBADF)


def test_a_number_beyond_all_descriptors_is_not_taken_for_a_small_one(descriptor: int) -> None:
    done = launch(["fd", 0, (1 << 32) + descriptor], ["true"], pass_fds=(descriptor,))
    assert refused_step(done) == (0, EBADF)
    done = launch(["fd", 0, 1 << 32], ["true"])
    assert refused_step(done) == (0, EBADF)


def test_a_standard_descriptor_in_a_slot_stays_with_the_command() -> None:
    done = launch(["fd", 0, 1, "close"], ["echo", "still here"])
    assert (done.returncode, done.stdout) == (0, b"still here\n")


# ---- close, keep ----


def test_an_inherited_descriptor_is_gone_after_close(descriptor: int) -> None:
    assert descriptor in held_descriptors(launch([], LIST_DESCRIPTORS, pass_fds=(descriptor,)))
    held = held_descriptors(launch(["close"], LIST_DESCRIPTORS, pass_fds=(descriptor,)))
    assert set(held) == {0, 1, 2}


def test_close_leaves_slots_and_nothing_between_below_or_above_them(tmp_path: Path) -> None:
    fds = [os.open("/dev/zero", os.O_RDONLY) for _ in range(5)]
    high = os.dup2(fds[0], 900, inheritable=False)
    slot = os.open(tmp_path, os.O_RDONLY)
    top = os.dup2(slot, 950, inheritable=False)
    try:
        plan = ["fd", 0, slot, "fd", 1, top, "close", "keep", 1, "chdir", 0]
        done = launch(plan, LIST_DESCRIPTORS, pass_fds=(*fds, high, slot, top))
        held = held_descriptors(done)
        assert set(held) == {0, 1, 2, top}
        assert held[top] == str(tmp_path)
    finally:
        for fd in (*fds, high, slot, top):
            os.close(fd)


def test_close_spares_a_slot_that_keep_leaves_to_the_command(descriptor: int, tmp_path: Path) -> None:
    for keeper in ([], ["supervise", 1]):
        plan = ["fd", 0, descriptor, "close", *keeper, "keep", 0]
        held = held_descriptors(launch(plan, LIST_DESCRIPTORS, pass_fds=(descriptor,)))
        assert set(held) == {0, 1, 2, descriptor}
        assert held[descriptor] == str(tmp_path)


def test_a_slot_opened_by_path_can_be_kept_too(tmp_path: Path) -> None:
    held = held_descriptors(launch([*opened(0, tmp_path), "keep", 0], LIST_DESCRIPTORS))
    assert str(tmp_path) in held.values()
    assert len(held) == 4


def test_standard_descriptors_that_are_closed_are_something_before_a_slot_is_opened(tmp_path: Path) -> None:
    """Otherwise the first slot would become the command's standard input."""
    launcher_without_stdio = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    report = tmp_path / "report"
    listing = ["sh", "-c", f"readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 > {report}"]

    done = launch([], [*launcher_without_stdio, launcher_path(), *opened(0, tmp_path), "--", *listing])
    assert done.returncode == 0, done
    assert report.read_text().splitlines() == ["/dev/null", str(report), "/dev/null"]
