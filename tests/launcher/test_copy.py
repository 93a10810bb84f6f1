"""copy: what is written goes to a layer of its own, and what lies below never changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from corral.jail.kernel import MOUNT_RDONLY
from hostfacts import skip_unless_host
from launcher.driver import inside, launch, opened, refused_step
from launcher.driver import tmpfs_on as covered

pytestmark = [pytest.mark.jail, pytest.mark.usefixtures("user_namespaces", "overlays")]

EINVAL, ENOTDIR = 22, 20
SH = ["sh", "-c"]


@pytest.fixture
def overlays() -> None:
    skip_unless_host("no-overlay")


class Ground:
    """A home, and the two directories that its copy needs."""

    def __init__(self, base: Path) -> None:
        self.home, self.upper, self.work = base / "home", base / "upper", base / "work"
        for directory in (self.home, self.upper, self.work):
            directory.mkdir()
        (self.home / "notes").write_text("notes\n")
        (self.home / "old").write_text("old\n")
        (self.home / ".netrc").write_text("secret\n")

    def copied(self, *hidden: str, attrs: int = 0) -> list[object]:
        """Slot 0 home, 1 and 2 the layers, 3 the names to hide, 4 the copy."""
        steps = [*opened(0, self.home), *opened(1, self.upper), *opened(2, self.work)]
        top: object = "-"
        if hidden:
            top = 3
            steps += ["mount", 3, "tmpfs", "mode=755", 0]
            for name in hidden:
                steps += ["whiteout", 3, name]
        return inside(
            [*steps, "copy", 4, top, 0, 1, 2, "userxattr", attrs, *opened(5, self.home), "attach", 4, 5]
        )

    def content(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.home.iterdir()}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_what_is_written_goes_to_the_upper_layer_and_the_home_stays(ground: Ground) -> None:
    before = ground.content()
    script = f"cd {ground.home}; cat notes; echo more >> notes; echo x > made; rm old; cat notes; ls"
    done = launch(ground.copied(), [*SH, script])
    assert (done.returncode, done.stdout) == (0, b"notes\nnotes\nmore\nmade\nnotes\n"), done
    assert ground.content() == before
    assert (ground.upper / "notes").read_text() == "notes\nmore\n"
    assert (ground.upper / "made").read_text() == "x\n"
    assert stat.S_ISCHR((ground.upper / "old").lstat().st_mode)
    assert sorted(os.listdir(ground.upper)) == ["made", "notes", "old"]


def test_the_next_run_finds_what_the_last_one_wrote(ground: Ground) -> None:
    assert (
        launch(ground.copied(), [*SH, f"echo kept > {ground.home}/made; rm {ground.home}/old"]).returncode
        == 0
    )
    done = launch(ground.copied(), [*SH, f"cat {ground.home}/made; ls {ground.home}"])
    assert done.stdout == b"kept\nmade\nnotes\n", done


def test_names_of_the_top_are_hidden_and_can_be_made_anew(ground: Ground) -> None:
    script = f"cd {ground.home}; cat .netrc; ls -A; echo mine > .netrc && cat .netrc"
    done = launch(ground.copied(".netrc"), [*SH, script])
    assert done.stdout == b"notes\nold\nmine\n", done
    assert done.stderr.count(b"No such file or directory") == 1
    assert (ground.home / ".netrc").read_text() == "secret\n"
    assert b"secret" in launch(ground.copied(), [*SH, f"rm {ground.upper}/.netrc; {script}"]).stdout


def test_a_whole_directory_can_be_replaced_in_the_copy(ground: Ground) -> None:
    (ground.home / "project").mkdir()
    (ground.home / "project/file").write_text("host\n")
    script = (
        f"cd {ground.home}; rm -r project; mkdir project; ls project; echo new > project/other; ls project"
    )
    done = launch(ground.copied(), [*SH, script])
    assert (done.returncode, done.stdout) == (0, b"other\n"), done
    assert (ground.home / "project/file").read_text() == "host\n"


def test_attributes_of_the_copy_hold(ground: Ground) -> None:
    done = launch(
        ground.copied(attrs=MOUNT_RDONLY), [*SH, f"cat {ground.home}/notes; echo x > {ground.home}/made"]
    )
    assert done.stdout == b"notes\n"
    assert b"Read-only file system" in done.stderr
    assert os.listdir(ground.upper) == []


def test_a_copy_that_is_not_attached_is_nowhere(ground: Ground) -> None:
    plan = ground.copied()
    before_attaching = [*plan[: plan.index("attach")], "init"]
    assert launch(before_attaching, [*SH, f"echo x > {ground.home}/made"]).returncode == 0
    assert (ground.home / "made").exists()
    assert os.listdir(ground.upper) == []


def refused(ground: Ground, *, upper: Path | None = None, work: Path | None = None) -> tuple[int, int]:
    """Where it stops with other layers; nothing may be run, and home is as it was."""
    before = ground.content()
    pieces = [ground.home, upper or ground.upper, work or ground.work]
    steps: list[object] = []
    for slot, path in enumerate(pieces):
        steps += opened(slot, path, path.lstat().st_mode & 0o170000)
    steps += ["copy", 4, "-", 0, 1, 2, "userxattr", 0, *opened(5, ground.home), "attach", 4, 5]
    done = launch(inside(steps), ["touch", ground.home / "witness"])
    assert ground.content() == before
    return refused_step(done)


def test_layers_that_are_files_are_refused(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for layers in ({"upper": tmp_path / "file"}, {"work": tmp_path / "file"}):
        step, error = refused(ground, **layers)
        assert (step, error) in ((5, ENOTDIR), (5, EINVAL))


def test_layers_of_two_file_systems_are_refused(ground: Ground, place: Path) -> None:
    steps = [*covered(place), *opened(2, ground.home), *opened(3, ground.upper)]
    steps += ["copy", 4, "-", 2, 3, 0, "userxattr", 0, *opened(5, ground.home), "attach", 4, 5]
    done = launch(inside(steps), ["touch", ground.home / "witness"])
    assert refused_step(done) == (7, EINVAL)
    assert not (ground.home / "witness").exists()


def test_one_directory_cannot_be_both_layers(ground: Ground) -> None:
    assert refused(ground, work=ground.upper) == (5, EINVAL)


def test_a_step_that_fails_behind_it_runs_nothing_and_writes_nothing(ground: Ground, tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    plan = [*ground.copied()[:-1], *opened(6, tmp_path / "missing"), "init"]
    done = launch(plan, ["touch", ground.home / "witness"])
    assert refused_step(done) == (8, 2)
    assert os.listdir(ground.upper) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert launch(ground.copied(), ["touch", ground.home / "witness"]).returncode == 0
    assert os.listdir(ground.upper) == ["witness"]
