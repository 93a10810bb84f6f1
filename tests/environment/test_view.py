"""files="view": the file half sees what the commands see, as they see it, and /tmp is one directory for both."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral import Grant, LocalEnvironment, PathNotAllowed, Policy, PolicyError, SensitivePath
from hostfacts import skip_unless_host
from jail.world import World, new_world
from leaks import no_leaks

pytestmark = pytest.mark.jail

TIERS = ["namespaces", "landlock"]


def opened(root: Path, policy: Policy) -> LocalEnvironment:
    return LocalEnvironment(root, policy, files="view")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with new_world() as made:
        monkeypatch.setenv("HOME", str(made.home))
        monkeypatch.setenv("CORRAL_STATE_DIR", str(made.base / "state"))
        monkeypatch.setenv("CORRAL_CONFIG_DIR", str(made.base / "config"))
        yield made


@pytest.fixture(params=TIERS)
def policy(request: pytest.FixtureRequest) -> Policy:
    return Policy.workspace_write(backend=request.param)


def test_the_temp_directory_is_one_for_both_halves(policy: Policy, tmp_path: Path) -> None:
    with no_leaks(), opened(tmp_path, policy) as env:
        temp = env.shell("echo ${TMPDIR:-/tmp}").stdout.strip()
        env.write_file(f"{temp}/made/by-files", "from files")
        assert env.shell(f"cat {temp}/made/by-files; echo from command > {temp}/by-command").stdout == (
            "from files"
        )
        assert env.read_file(f"{temp}/by-command") == "from command\n"
        assert [entry.name for entry in env.list_dir(f"{temp}/made")] == ["by-files"]
        assert env.glob(f"{temp}/by-*") == [f"{temp}/by-command"]
        if policy.backend == "namespaces":
            assert temp == "/tmp"
            assert env.read_file("/var/tmp/by-command") == "from command\n"
    assert not os.path.exists("/tmp/by-command")


def test_what_the_host_has_in_tmp_is_seen_by_both_or_by_none(policy: Policy, tmp_path: Path) -> None:
    shown = subprocess.run(["mktemp"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        with opened(tmp_path, policy) as env:
            seen = env.run(["cat", shown]).exit_code == 0
            if seen:
                assert env.read_file(shown) == ""
            else:
                with pytest.raises(FileNotFoundError):
                    env.read_file(shown)
            assert seen == (policy.backend == "landlock")
    finally:
        os.unlink(shown)


def test_the_system_is_read_and_not_written(policy: Policy, tmp_path: Path) -> None:
    with opened(tmp_path, policy) as env:
        assert env.read_bytes("/etc/passwd") == env.run(["cat", "/etc/passwd"]).stdout_bytes
        assert "passwd" in [entry.name for entry in env.list_dir("/etc")]
        with pytest.raises(PathNotAllowed) as caught:
            env.write_file("/etc/passwd", "x")
        assert caught.value.grant == "--rw /etc/passwd"
        env.write_file("in-root", "x")
        env.write_file(str(tmp_path / "absolute"), "x")
    assert sorted(os.listdir(tmp_path)) == ["absolute", "in-root"]


def test_masks_secrets_and_what_is_corrals_own_stay_closed(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    for path in (work, home / ".docker", home / "x/.ssh"):
        path.mkdir(parents=True)
    for path in (home / ".docker/config.json", home / ".netrc", home / "x/.ssh/key", home / "plain"):
        path.write_text("x")
    monkeypatch.setenv("HOME", str(home))
    (work / "link").symlink_to(home / ".netrc")
    with opened(work, policy) as env:
        for masked in (home / ".docker/config.json", home / ".netrc", "link"):
            with pytest.raises(PathNotAllowed, match="hidden"):
                env.read_file(masked)
        with pytest.raises(SensitivePath):
            env.read_file(home / "x/.ssh/key")
        for root_only in ("/etc/shadow", "/proc/self/environ", "/dev/null"):
            with pytest.raises(PermissionError):
                env.read_file(root_only)
        assert env.read_file(home / "plain") == "x"
        listed = {entry.name for entry in env.list_dir(home)}
        assert listed & {"plain", "x", ".docker", ".netrc"} == {"plain", "x"}


def test_grants_below_a_private_place_are_seen_as_they_are(policy: Policy, tmp_path: Path) -> None:
    work, rw, ro = tmp_path / "work", tmp_path / "rw", tmp_path / "ro"
    for path in (work, rw, ro):
        path.mkdir()
        (path / "f").write_text(path.name)
    granted = policy.allow(Grant.rw(str(rw)), Grant.ro(str(ro)))
    with no_leaks(), opened(work, granted) as env:
        for place in (rw, ro):
            assert env.read_file(place / "f") == env.run(["cat", str(place / "f")]).stdout
        env.write_file(rw / "new", "x")
        with pytest.raises(PathNotAllowed):
            env.write_file(ro / "new", "x")
        with pytest.raises(PermissionError):
            env.remove_tree(rw)
    assert (rw / "new").read_text() == "x"
    assert os.listdir(ro) == ["f"]


def test_read_only_has_its_temp_directory_and_nothing_else(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with opened(tmp_path, Policy.read_only(backend=policy.backend)) as env:
        temp = env.shell("echo ${TMPDIR:-/tmp}").stdout.strip()
        env.write_file(f"{temp}/f", "x")
        assert env.read_file("f") == "x"
        with pytest.raises(PathNotAllowed):
            env.write_file("f", "y")


def test_without_a_jail_all_is_read_and_the_roots_and_temp_are_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    with opened(work, Policy.off()) as env:
        env.write_file("f", "x")
        assert env.read_bytes("/etc/passwd")
        with pytest.raises(PathNotAllowed):
            env.write_file("/usr/new", "x")
        with pytest.raises(PermissionError):
            env.read_file("/proc/self/environ")
    with LocalEnvironment(work, Policy.off()) as env, pytest.raises(PermissionError):
        env.read_bytes("/etc/passwd")


def test_an_added_root_is_in_the_view_too(policy: Policy, tmp_path: Path) -> None:
    work, added = tmp_path / "work", tmp_path / "added"
    work.mkdir()
    added.mkdir()
    with no_leaks(), opened(work, policy) as env:
        temp = env.shell("echo x > ${TMPDIR:-/tmp}/kept; echo ${TMPDIR:-/tmp}").stdout.strip()
        with contextlib.suppress(PermissionError):  # in a private /tmp it lands, and stays there
            env.write_file(added / "before", "x")
        env.add_root(added)
        env.write_file(added / "f", "x")
        assert env.read_file(f"{temp}/kept") == "x\n"
    assert os.listdir(added) == ["f"]


@pytest.mark.parametrize("mode", ["casual", "bare", "strict"])
def test_a_home_of_the_jails_own_is_one_for_both_halves(mode: str, world: World) -> None:
    if mode != "strict":
        skip_unless_host("ordinary-user")
    home = world.home
    with LocalEnvironment(world.workspace, Policy(mode=mode), files="view") as env:  # type: ignore[arg-type]
        env.write_file(home / "made/by-files", "from files")
        env.write_file("/tmp/by-files", "from files")
        line = f"cat {home}/made/by-files /tmp/by-files; echo x > {home}/by-command; echo x > /tmp/by-command"
        done = env.shell(line)
        assert (done.stdout, done.exit_code) == ("from files" * 2, 0), done.stderr
        for path in (home / "by-command", "/tmp/by-command", "/var/tmp/by-command"):
            assert env.read_file(path) == "x\n"
        seen = env.run(["cat", str(home / ".profile")]).exit_code == 0
        assert seen == (mode == "casual")
        if seen:
            assert env.read_file(home / ".profile") == "plain"
        else:
            with pytest.raises(FileNotFoundError):
                env.read_file(home / ".profile")
        with pytest.raises(PermissionError):
            env.read_file(home / ".ssh/id_test")
        env.write_file("in-root", "x")
        assert env.run(["cat", "in-root"]).stdout == "x"
        for system in ("/etc/passwd", "/usr/bin/env"):
            assert env.read_bytes(system)
        for closed in ("/usr/new", "/etc/new"):
            with pytest.raises(PermissionError):
                env.write_file(closed, "x")
    assert not {"made", "by-command"} & set(os.listdir(home))
    assert (world.workspace / "in-root").exists()


def test_an_unknown_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="files is roots or view"):
        LocalEnvironment(tmp_path, files="all")  # type: ignore[arg-type]
