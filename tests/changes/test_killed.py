"""Killed, or failing, at any system call of an apply: finished or undone by the next call, never half."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from changes.field import Field, Picture, picture
from corral.changes import apply, begin, journal, list_changes, moves, seal, staging, survey
from corral.changes.journal import PREFIX
from corral.errors import CorralError
from files.injection import Injector, interrupt, no_space, was_killed

pytestmark = [pytest.mark.jail, pytest.mark.timeout(300)]

# One of each kind of step: replace, add, remove a file and a tree, a directory for a file and the other way round,
# a rename, a mode, a time.
INSIDE = (
    "echo inside > e; echo new > n; rm d/g; rm -r tree; rm file; mkdir -p file/sub; echo x > file/sub/x; "
    "rm -r dir; echo x > dir; mv from to; chmod 700 mode; touch -d 2001-01-01 time; ln -sfn e link"
)
ORIGIN = "user.overlay.origin"
# Beside those that the file layer makes.
MORE_CALLS = ("symlink", "readlink", "utime", "chmod", "copy_file_range", "scandir", "mknod", "lseek")


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process leaves the page cache as it is; syncing shows nothing here, and takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(moves, "sync", lambda lower: None)


def prepare(field: Field) -> None:
    for name in ("e", "d/g", "tree/a/b", "tree/c", "file", "dir/f", "from", "mode", "time"):
        field.file(name, f"content of {name}\n")
    (field.lower / "link").symlink_to("d")
    field.run(INSIDE)


READING = (
    *(
        "open",
        "close",
        "read",
        "fsync",
        "fstat",
        "stat",
        "listdir",
        "access",
        "listxattr",
        "getxattr",
        "flock",
    ),
    *("readlink", "scandir", "lseek"),
)


def every_call(injector: Injector) -> None:
    for name in MORE_CALLS:
        injector.wrap(os, name)
    injector.wrap(moves, "exchange")
    injector.wrap(moves, "rename_to")


def every_change(injector: Injector) -> None:
    """Only calls that change something count: between two of them, nothing on the disk depends on when it ends."""
    every_call(injector)
    injector._leave = READING
    plain = os.open
    making = SimpleNamespace(make=plain)
    injector.wrap(making, "make")

    def opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
        chosen = making.make if flags & os.O_CREAT else plain
        return int(chosen(path, flags, *args, **options))

    injector._undo.append((os, "open", plain))
    os.open = opened


@pytest.fixture
def before_and_after(field: Field) -> tuple[Picture, Picture]:
    prepare(field)
    saved(field)
    before = picture(field.lower, times=False)
    apply(field.layers)
    after = picture(field.lower, times=False)
    assert before != after
    return before, after


def saved(field: Field) -> None:
    for name in ("lower", "upper"):
        subprocess.run(["cp", "-a", field.base / name, field.base / f"saved-{name}"], check=True)
    for path in (field.base / "saved-upper").rglob("*"):
        if ORIGIN in os.listxattr(path, follow_symlinks=False):
            os.removexattr(path, ORIGIN, follow_symlinks=False)  # it names inodes


def restored(field: Field) -> None:
    """As after the run. Inodes and times are others, so it is sealed anew."""
    for name in ("lower", "upper", "sealed"):
        shutil.rmtree(field.base / name)
    copies = [
        ["cp", "-a", str(field.base / f"saved-{name}"), str(field.base / name)] for name in ("lower", "upper")
    ]
    for process in [subprocess.Popen(copy) for copy in copies]:
        assert process.wait() == 0
    os.close(begin(field.layers))
    assert seal(field.layers)


def ours_in(top: Path) -> list[str]:
    return [str(path) for path in top.rglob(f"{PREFIX}*")]


@pytest.mark.parametrize(
    "counted", [every_change, pytest.param(every_call, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_killed_at_any_call_it_is_finished_or_undone_by_the_next(
    field: Field, before_and_after: tuple[Picture, Picture], counted: Callable[[Injector], None]
) -> None:
    before, after = before_and_after
    outcomes: set[str] = set()
    for at in range(1, 5000):
        restored(field)
        killed = was_killed(lambda: apply(field.layers), at, counted)
        found = survey(field.layers)
        now = picture(field.lower, times=False)
        assert now in (before, after), f"killed at call {at}"
        outcomes.add("before" if now == before else "after")
        assert ours_in(field.lower) == [], f"killed at call {at}"
        assert not os.path.exists(field.layers.in_sealed("journal"))
        if now == before:
            assert not any(change.conflict for change in found.changes), f"killed at call {at}"
            assert found.changes
        else:
            assert found.changes == []
        if not killed:
            break
    else:
        pytest.fail("the apply has no end")
    assert outcomes == {"before", "after"}


def test_undoing_is_itself_killed_at_any_call(
    field: Field, before_and_after: tuple[Picture, Picture]
) -> None:
    before, after = before_and_after
    half = half_way(field)
    for at in range(1, 5000):
        restored(field)
        assert was_killed(lambda: apply(field.layers), half, every_change)
        killed = was_killed(lambda: survey(field.layers), at, every_change)
        survey(field.layers)
        assert picture(field.lower, times=False) == before, f"killed at call {at}"
        assert ours_in(field.lower) == []
        if not killed:
            break
    apply(field.layers)
    assert picture(field.lower, times=False) == after


def half_way(field: Field) -> int:
    """A call at which some of the moves are made and some are not."""
    for at in range(1, 5000):
        restored(field)
        was_killed(lambda: apply(field.layers), at, every_change)
        told = journal.load(field.layers)
        if told is None or told.state != journal.MOVING:
            continue
        if files_put_by(field, told) and (field.lower / "tree").exists():
            return at
    pytest.fail("no call lies between two moves")


def files_put_by(field: Field, told: journal.Journal) -> list[str]:
    put = [step for step in told.steps if step.action == "put" and os.path.lexists(field.lower / step.path)]
    done = [step.path for step in put if (field.lower / step.path).lstat().st_ino == step.staged]
    return [path for path in done if (field.lower / path).is_file() and not (field.lower / path).is_symlink()]


@pytest.mark.parametrize("act", [no_space, interrupt])
def test_failed_at_any_call_nothing_is_half(
    field: Field, before_and_after: tuple[Picture, Picture], act: Callable[[str, tuple[object, ...]], None]
) -> None:
    before, after = before_and_after
    failures = 0
    for at in range(1, 5000, 9):
        restored(field)
        failed = False
        with Injector(at, act, leave=("close",)) as injector:
            every_call(injector)
            try:
                apply(field.layers)
            except (OSError, KeyboardInterrupt, CorralError):
                failed = True
        failures += failed
        survey(field.layers)
        now = picture(field.lower, times=False)
        assert now in (before, after), f"failed at call {at}"
        assert ours_in(field.lower) == []
        if injector.count < at:
            break
    else:
        pytest.fail("the apply has no end")
    assert failures > 10


def test_what_a_person_wrote_after_a_crash_is_kept_aside_when_it_is_undone(
    field: Field, before_and_after: tuple[Picture, Picture]
) -> None:
    before, _ = before_and_after
    at = half_way(field)
    restored(field)
    was_killed(lambda: apply(field.layers), at, every_change)
    told = journal.load(field.layers)
    assert told is not None
    path = files_put_by(field, told)[0]
    (field.lower / path).write_text("a person's\n")
    survey(field.layers)
    assert picture(field.lower, times=False) == before
    kept = [p for p in Path(field.layers.in_sealed("aside")).rglob("*") if p.is_file()]
    assert [p.read_text() for p in kept] == ["a person's\n"]


def test_a_change_at_the_last_moment_undoes_all_of_it(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes between the check and the move: seen when the old file is taken away."""
    prepare(field)
    original = staging.stage_file

    def and_a_person_writes(*args: object) -> None:
        original(*args)  # type: ignore[arg-type]
        (field.lower / "d/g").write_text("a person's\n")

    monkeypatch.setattr("corral.changes.applying.stage_file", and_a_person_writes)
    with pytest.raises(CorralError, match="at this very moment"):
        apply(field.layers)
    assert (field.lower / "d/g").read_text() == "a person's\n"
    assert (field.lower / "e").read_text() == "content of e\n"
    assert (field.lower / "tree/a/b").exists()
    assert ours_in(field.lower) == []
    assert {c.path: c.conflict for c in list_changes(field.layers)}["d/g"] == "after"


def test_without_an_exchange_of_names_it_is_done_in_two_steps(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def none(*_: object) -> None:
        raise OSError(errno.EINVAL, "no such thing here")

    prepare(field)
    monkeypatch.setattr(moves, "exchange", none)
    apply(field.layers)
    assert (field.lower / "e").read_text() == "inside\n"
    assert (field.lower / "file/sub/x").exists()
    assert ours_in(field.lower) == []
