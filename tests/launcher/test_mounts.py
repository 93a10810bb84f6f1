"""mount, overlay, whiteout, make, tree, readonly, private, attach: a view of the file system that only the jail has."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from corral.jail.kernel import CLONE_NEW, MOUNT_NODEV, MOUNT_NOEXEC, MOUNT_NOSUID, MOUNT_RDONLY
from launcher.driver import Watched, inside, launch, namespaces, opened, python, refused_step, tmpfs_on

pytestmark = [pytest.mark.jail, pytest.mark.usefixtures("user_namespaces")]

ENOENT, EEXIST, ENODEV, ENOTDIR, EINVAL, EROFS, ENAMETOOLONG, EPERM = 2, 17, 19, 20, 22, 30, 36, 1
SH = ["sh", "-c"]


# ---- mount, attach ----


def test_a_new_file_system_covers_the_place_inside_and_not_on_the_host(place: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    done = launch(inside(tmpfs_on(place)), [*SH, f"ls {place}; touch {place}/made && ls {place}"])
    assert (done.returncode, done.stdout) == (0, b"made\n")
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_a_mount_that_is_not_attached_is_nowhere(place: Path) -> None:
    done = launch(inside(["mount", 0, "tmpfs", "mode=755", 0]), ["ls", place])
    assert done.stdout == b"of-the-host\n"


def test_options_of_a_file_system_take_effect(place: Path) -> None:
    show = python(
        "import os, sys; s = os.statvfs(sys.argv[1]); print(oct(os.stat(sys.argv[1]).st_mode), s.f_blocks * s.f_frsize,"
        " s.f_files)",
        place,
    )
    done = launch(inside(tmpfs_on(place, "size=1048576,nr_inodes=50,mode=711")), show)
    assert done.stdout.split() == [b"0o40711", b"1048576", b"50"]


def test_a_size_binds(place: Path) -> None:
    fill = [*SH, f"head -c 2000000 /dev/zero > {place}/big; wc -c < {place}/big"]
    done = launch(inside(tmpfs_on(place, "size=1048576")), fill)
    assert done.stdout == b"1048576\n"
    assert launch(inside(tmpfs_on(place, "size=4194304")), fill).stdout == b"2000000\n"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("no-such-option", EINVAL),
        ("size=nonsense", EINVAL),
        ("k" * 64, ENAMETOOLONG),
        ("size=" + "1" * 64, ENAMETOOLONG),
    ],
)
def test_an_option_the_file_system_does_not_know_is_refused(options: str, error: int, place: Path) -> None:
    done = launch(inside(tmpfs_on(place, options)), ["touch", place / "witness"])
    assert refused_step(done) == (2, error)
    assert not (place / "witness").exists()


def test_an_unknown_file_system_is_refused(place: Path) -> None:
    assert refused_step(launch(inside(["mount", 0, "nosuchfs", "", 0]), ["true"])) == (2, ENODEV)


def test_attributes_of_a_mount_hold(place: Path) -> None:
    script = f"cp /bin/true {place}/program && {place}/program"
    assert launch(inside(tmpfs_on(place, attrs=MOUNT_NOSUID)), [*SH, script]).returncode == 0
    noexec = launch(inside(tmpfs_on(place, attrs=MOUNT_NOEXEC)), [*SH, script])
    assert noexec.returncode == 126
    read_only = launch(inside(tmpfs_on(place, attrs=MOUNT_RDONLY)), [*SH, script])
    assert b"Read-only file system" in read_only.stderr


def test_a_mount_needs_a_mount_namespace(place: Path) -> None:
    plan = [*namespaces(), *tmpfs_on(place), "init"]
    step, error = refused_step(launch(plan, ["true"]))
    assert (step, error) in ((2, EPERM), (4, EPERM))


def test_a_directory_is_not_attached_onto_a_file(place: Path) -> None:
    plan = ["mount", 0, "tmpfs", "", 0, *opened(1, place / "of-the-host", stat.S_IFREG), "attach", 0, 1]
    assert refused_step(launch(inside(plan), ["true"])) == (4, EINVAL)


def test_what_was_attached_cannot_be_attached_again_elsewhere_without_a_clone(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    again = [*tmpfs_on(place), *opened(2, tmp_path / "other"), "attach", 1, 2]
    assert refused_step(launch(inside(again), ["true"])) == (6, EINVAL)


def test_a_slot_from_before_a_mount_looks_underneath_it_and_one_from_after_does_not(place: Path) -> None:
    """Why every plan opens the working directory after the last mount."""
    before = [*opened(5, place), *tmpfs_on(place), "chdir", 5]
    after = [*tmpfs_on(place), *opened(5, place), "chdir", 5]
    assert launch(inside(before), ["ls"]).stdout == b"of-the-host\n"
    assert launch(inside(after), ["ls"]).stdout == b""


# ---- make ----


def test_directories_files_and_links_are_made_with_these_modes(place: Path) -> None:
    steps = [*tmpfs_on(place), "make", 2, 0, "d", "dir", 0o751, "make", 3, 2, "f", "file", 0o644]
    steps += ["make", 4, 0, "l", "->d/f", 0]
    show = [*SH, f"cd {place}; stat -c '%n %F %a' d d/f; readlink l; wc -c < l"]
    done = launch(inside(steps), show)
    lines = done.stdout.decode().splitlines()
    assert lines == ["d directory 751", "d/f regular empty file 644", "d/f", "0"]


def test_a_directory_gets_its_mode_whatever_the_umask(place: Path) -> None:
    steps = [*tmpfs_on(place), "make", 2, 0, "d", "dir", 0o777]
    done = launch(inside(steps), ["stat", "-c", "%a", place / "d"], umask=0o077)
    assert done.stdout == b"777\n"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "../a", "a/"])
def test_a_name_is_one_name(name: str, place: Path) -> None:
    for step in (["make", 2, 0, name, "dir", 0o755], ["make", 2, 0, name, "->x", 0], ["whiteout", 0, name]):
        done = launch(inside([*tmpfs_on(place), *step]), ["touch", place / "witness"])
        assert refused_step(done) == (5, EINVAL), step
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]


@pytest.mark.parametrize("name", ["...", "..a", "a b", "-", "ä\n", "x" * 255])
def test_an_odd_name_is_a_name_all_the_same(name: str, place: Path) -> None:
    done = launch(
        inside([*tmpfs_on(place), "make", 2, 0, name, "dir", 0o755]), ["test", "-d", f"{place}/{name}"]
    )
    assert done.returncode == 0, done


@pytest.mark.parametrize("kind", ["", "Dir", "fifo", "-", "->"])
def test_only_directories_files_and_links_can_be_made(kind: str, place: Path) -> None:
    done = launch(inside([*tmpfs_on(place), "make", 2, 0, "made", kind, 0o755]), ["true"])
    assert refused_step(done) == (5, ENOENT if kind == "->" else EINVAL)


def test_what_is_there_already_is_not_made_again(place: Path) -> None:
    steps = [*tmpfs_on(place), "make", 2, 0, "d", "dir", 0o755, "make", 3, 0, "d", "dir", 0o755]
    assert refused_step(launch(inside(steps), ["true"])) == (6, EEXIST)


def test_a_made_link_is_held_itself_and_not_followed(place: Path) -> None:
    steps = [*tmpfs_on(place), "make", 2, 0, "l", "->/etc", 0, "chdir", 2]
    assert refused_step(launch(inside(steps), ["true"])) == (6, ENOTDIR)


# ---- tree ----


def test_a_clone_shows_the_same_files_elsewhere_and_keeps_its_own_attributes(
    place: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "kept").write_text("kept\n")

    def clone(attrs: int) -> list[object]:
        return inside([*opened(0, source), "tree", 1, 0, attrs, *opened(2, place), "attach", 1, 2])

    write = [*SH, f"cat {place}/kept; echo more > {place}/made"]
    done = launch(clone(MOUNT_RDONLY), write)
    assert done.stdout == b"kept\n"
    assert b"Read-only file system" in done.stderr
    assert not (source / "made").exists()
    assert launch(clone(MOUNT_NODEV), write).returncode == 0
    assert (source / "made").read_text() == "more\n"


def test_a_single_file_can_be_cloned(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("another\n")
    steps = [*opened(0, tmp_path / "file", stat.S_IFREG), "tree", 1, 0, 0]
    steps += [*opened(2, place / "of-the-host", stat.S_IFREG), "attach", 1, 2]
    assert launch(inside(steps), ["cat", place / "of-the-host"]).stdout == b"another\n"
    assert (place / "of-the-host").read_text() == "host\n"


def test_a_clone_takes_the_mounts_below_it_along_and_its_attributes_bind_them_too(
    place: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    steps = [
        *opened(3, source / "below"),
        "mount",
        0,
        "tmpfs",
        "",
        0,
        "attach",
        0,
        3,
        "make",
        4,
        0,
        "deep",
        "file",
        0o644,
    ]
    steps += [*opened(1, source), "tree", 5, 1, MOUNT_RDONLY, *opened(2, place), "attach", 5, 2]
    done = launch(inside(steps), [*SH, f"ls {place}/below; touch {place}/below/made"])
    assert done.stdout == b"deep\n", done
    assert b"Read-only file system" in done.stderr


# ---- readonly ----


def test_all_that_is_mounted_becomes_read_only_and_what_is_attached_later_is_not(
    place: Path, tmp_path: Path
) -> None:
    attempt = [
        *SH,
        f"echo x > {tmp_path}/outside; echo y > {place}/inside && cat {place}/inside {place}/of-the-host",
    ]
    assert launch(inside([]), attempt).stdout == b"y\nhost\n"
    (tmp_path / "outside").unlink()
    (place / "inside").unlink()
    swept = launch(
        inside([*opened(0, place), "tree", 1, 0, 0, "readonly", *opened(2, place), "attach", 1, 2]), attempt
    )
    assert swept.stdout == b"y\nhost\n", swept
    assert swept.stderr.count(b"Read-only file system") == 1
    assert not (tmp_path / "outside").exists()
    assert (place / "inside").read_text() == "y\n"


def test_the_host_stays_as_it_was_after_a_jail_was_swept(tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    assert launch(inside(["readonly"]), ["true"]).returncode == 0
    assert Path("/proc/self/mountinfo").read_text() == before
    (tmp_path / "written").touch()


def test_the_sweep_is_refused_where_the_mounts_are_not_ours(tmp_path: Path) -> None:
    done = launch([*namespaces(), "readonly", "init"], ["touch", tmp_path / "witness"])
    assert refused_step(done) == (2, EPERM)
    assert not (tmp_path / "witness").exists()


def test_every_mount_is_read_only_without_set_uid_and_private_after_the_sweep() -> None:
    done = launch(inside(["readonly"]), ["cat", "/proc/self/mountinfo"])
    lines = done.stdout.decode().splitlines()
    assert lines
    for line in lines:
        fields, _ = line.split(" - ")
        options = fields.split()[5].split(",")
        assert "ro" in options, line
        assert "nosuid" in options, line
        assert "shared:" not in fields, line
        assert "master:" not in fields, line


# ---- overlay, whiteout ----


def layered(home: Path, *hidden: str) -> list[object]:
    steps: list[object] = [*opened(0, home), "mount", 1, "tmpfs", "mode=755", 0]
    for name in hidden:
        steps += ["whiteout", 1, name]
    return inside([*steps, "overlay", 2, 1, 0, MOUNT_RDONLY, *opened(3, home), "attach", 2, 3])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("secret\n")
    (home / ".netrc").write_text("secret\n")
    (home / "notes").write_text("notes\n")
    (home / "work").mkdir()
    (home / "work" / "code").write_text("code\n")
    return home


def test_hidden_names_are_not_there_and_all_others_are(home: Path) -> None:
    script = f"ls -A {home}; cat {home}/notes {home}/work/code; cat {home}/.ssh/id {home}/.netrc; stat {home}/.netrc"
    done = launch(layered(home, ".ssh", ".netrc"), [*SH, script])
    assert done.stdout == b"notes\nwork\nnotes\ncode\n"
    assert done.stderr.count(b"No such file or directory") == 3
    assert b"secret" in launch(layered(home), [*SH, script]).stdout


def test_a_name_below_a_directory_is_hidden_alone(home: Path) -> None:
    steps = [
        *opened(0, home),
        "mount",
        1,
        "tmpfs",
        "mode=755",
        0,
        "make",
        4,
        1,
        "work",
        "dir",
        0o755,
        "whiteout",
        4,
        "code",
    ]
    (home / "work" / "other").write_text("other\n")
    plan = inside([*steps, "overlay", 2, 1, 0, MOUNT_RDONLY, *opened(3, home), "attach", 2, 3])
    done = launch(plan, [*SH, f"ls -A {home} {home}/work"])
    assert b"code" not in done.stdout
    assert b"other" in done.stdout
    assert b".netrc" in done.stdout


def test_the_layered_directory_is_read_only(home: Path) -> None:
    script = f"echo x > {home}/made; echo x >> {home}/notes; mkdir {home}/.ssh; rm {home}/notes"
    done = launch(layered(home, ".ssh"), [*SH, script])
    assert done.stderr.count(b"Read-only file system") == 4, done
    assert (home / "notes").read_text() == "notes\n"


def test_a_name_the_host_creates_or_replaces_later_stays_hidden(home: Path) -> None:
    script = f"echo up; read go; cat {home}/.netrc {home}/.later; cat {home}/plain {home}/notes"
    reader, writer = os.pipe()
    try:
        with Watched(layered(home, ".netrc", ".later"), [*SH, script], stdin=reader) as run:
            run.await_output(b"up\n")
            (home / "new").write_text("secret\n")
            (home / "new").rename(home / ".netrc")
            (home / ".later").write_text("secret\n")
            (home / "plain").write_text("plain\n")
            os.write(writer, b"go\n")
            output = run.read_output()
    finally:
        os.close(reader)
        os.close(writer)
    assert b"secret" not in output
    assert output == b"plain\nnotes\n"


def test_many_names_are_hidden(home: Path) -> None:
    names = [f".hidden-{n}" for n in range(150)]
    for name in names:
        (home / name).touch()
    done = launch(layered(home, *names), ["ls", "-A", home])
    assert done.stdout.split() == [b".netrc", b".ssh", b"notes", b"work"]


def test_a_name_is_hidden_once() -> None:
    plan = inside(["mount", 0, "tmpfs", "", 0, "whiteout", 0, "a", "whiteout", 0, "a"])
    assert refused_step(launch(plan, ["true"])) == (4, EEXIST)


def test_two_layers_of_hidden_names_do_not_mix(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".netrc").write_text("other\n")
    (other / ".ssh").write_text("other\n")
    steps = [*opened(0, home), "mount", 1, "tmpfs", "mode=755", 0, "whiteout", 1, ".ssh"]
    steps += ["overlay", 2, 1, 0, MOUNT_RDONLY]
    steps += [*opened(4, other), "mount", 5, "tmpfs", "mode=755", 0, "whiteout", 5, ".netrc"]
    steps += [
        "overlay",
        6,
        5,
        4,
        MOUNT_RDONLY,
        *opened(3, home),
        "attach",
        2,
        3,
        *opened(7, other),
        "attach",
        6,
        7,
    ]
    done = launch(inside(steps), [*SH, f"ls -A {home}; ls -A {other}"])
    assert done.stdout.split() == [b".netrc", b"notes", b"work", b".ssh"]


def test_mounts_are_gone_with_the_run(home: Path) -> None:
    before = subprocess.check_output(["cat", "/proc/self/mountinfo"], timeout=10)
    assert launch(layered(home, ".ssh"), ["true"]).returncode == 0
    assert subprocess.check_output(["cat", "/proc/self/mountinfo"], timeout=10) == before
    assert sorted(entry.name for entry in home.iterdir()) == [".netrc", ".ssh", "notes", "work"]


# ---- private ----


def test_what_is_mounted_in_a_copy_of_the_mounts_is_not_mounted_in_the_original(place: Path) -> None:
    """A copy without a user namespace of its own is a peer: what is mounted in the one is mounted in the other."""
    counted = {}
    for first in ([], ["private"]):
        inner = ["namespaces", CLONE_NEW["mnt"], *first, *tmpfs_on(place), "--"]
        words = " ".join(shlex.quote(str(word)) for word in [launcher_path(), *inner])
        script = f"mount --make-rshared / && {words} grep -c ' {place} ' /proc/$$/mountinfo"
        as_root = ["namespaces", CLONE_NEW["user"] | CLONE_NEW["mnt"], "ids", 0, os.getuid(), 0, os.getgid()]
        counted[len(first)] = launch([*as_root, "init"], [*SH, script]).stdout
    assert counted == {0: b"1\n", 1: b"0\n"}
    assert [entry.name for entry in place.iterdir()] == ["of-the-host"]


def test_mounts_that_are_not_ours_are_not_made_private(place: Path) -> None:
    done = launch([*namespaces(), "private", "init"], ["touch", place / "witness"])
    assert refused_step(done) == (2, EPERM)
    assert not (place / "witness").exists()
