"""Key material under home is hidden by name in the namespaces tier, also from tricks with directories and renames."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from corral import Grant, LaunchRefused, LocalEnvironment, NotEnforceable, Policy, PolicyError
from corral.jail.enclosure import Enclosure
from corral.paths.sensitive import KEY_MATERIAL
from jail.fences import without
from jail.world import SECRET, World, eventually, launch

pytestmark = pytest.mark.jail


def put(path: Path, text: str = SECRET) -> None:
    """As editors and credential stores do it: a new file, renamed over the old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    beside.rename(path)


def test_every_name_of_the_list_is_hidden_and_its_neighbours_are_not(world: World) -> None:
    for name in KEY_MATERIAL:
        if not (world.home / name).is_dir():
            put(world.home / name)
        put((world.home / name).parent / "neighbour", "neighbour")
    with world.environment("namespaces") as environment:
        done = environment.run(["grep", "-rsl", SECRET, str(world.home)])
        seen = environment.run(["grep", "-rsl", "neighbour", str(world.home)]).stdout.splitlines()
    assert done.stdout == ""
    assert set(seen) == {str((world.home / name).parent / "neighbour") for name in KEY_MATERIAL}


def test_the_landlock_tier_says_that_keys_can_be_read(world: World) -> None:
    with world.environment("landlock") as environment:
        done = environment.run(["cat", str(world.home / ".ssh/id_test")])
        assert (done.stdout, "keys" in done.not_covered) == (SECRET, True)


def test_what_is_hidden_stays_hidden_when_the_host_replaces_it_during_the_run(world: World) -> None:
    hidden = [world.home / name for name in (".netrc", ".env", ".ssh/id_test")]
    put(world.home / ".env")
    waits = 'touch started; until [ -e replaced ]; do sleep 0.01; done; cat "$@"; cat ~/.profile'
    with world.environment("namespaces", grants=(Grant.hide(str(world.home / ".env")),)) as environment:

        def replace() -> None:
            assert eventually((world.workspace / "started").exists)
            put(world.home / ".netrc")
            put(world.home / ".env")
            fresh = world.home / "fresh"
            put(fresh / "id_test")
            (world.home / ".ssh").rename(world.home / "old-ssh-keys")
            fresh.rename(world.home / ".ssh")
            put(world.home / ".profile", "new profile")
            (world.workspace / "replaced").touch()

        host = threading.Thread(target=replace)
        host.start()
        done = environment.run(["sh", "-c", waits, "sh", *map(str, hidden)], timeout=20)
        host.join()
    assert SECRET not in done.stdout
    assert done.stderr.count("No such file") == 3
    assert done.stdout == "new profile"


def test_what_appears_under_a_hidden_name_only_during_the_run_is_hidden_too(world: World) -> None:
    """Also where not even its directory was there when the run began."""
    waits = "touch started; until [ -e made ]; do sleep 0.01; done; cd ~; cat .pgpass .aws/config .cargo/credentials"
    with world.environment("namespaces") as environment:

        def make() -> None:
            assert eventually((world.workspace / "started").exists)
            put(world.home / ".pgpass")
            put(world.home / ".aws/config")
            put(world.home / ".cargo/credentials")
            (world.workspace / "made").touch()

        host = threading.Thread(target=make)
        host.start()
        done = environment.run(["sh", "-c", waits], timeout=20)
        host.join()
    assert SECRET not in done.stdout
    assert done.stderr.count("No such file") == 3


def test_a_working_directory_under_a_mask_is_refused(world: World) -> None:
    with world.environment("namespaces") as environment:
        with pytest.raises(LaunchRefused, match="nothing was run"):
            environment.run(["cat", "id_test"], cwd=str(world.home / ".ssh"))
        assert environment.run(["ls"], cwd=str(world.outside)).stdout == "victim\n"


def test_a_caller_that_stands_under_a_mask_does_not_take_the_command_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.home / ".ssh")
    with world.environment("namespaces") as environment:
        plan = environment.plan(["cat", "id_test"])
        assert SECRET.encode() not in launch(plan).stdout.content()
        assert launch(without("chdir")(plan)).stdout.content() == SECRET.encode()


@pytest.mark.parametrize("where", ["in home", "beside home", "in the workspace"])
def test_key_directories_that_are_symlinks_hide_what_they_point_to(world: World, where: str) -> None:
    real = {
        "in home": world.home / "dotfiles/ssh",
        "beside home": world.base / "dotfiles/ssh",
        "in the workspace": world.workspace / "ssh",
    }[where]
    real.parent.mkdir(exist_ok=True)
    (world.home / ".ssh").rename(real)
    (world.home / ".ssh").symlink_to(real)
    with world.environment("namespaces") as environment:
        for path in (real / "id_test", world.home / ".ssh/id_test"):
            assert SECRET not in environment.run(["cat", str(path)]).stdout
        assert environment.run(["ls", str(real.parent)]).exit_code == 0


def test_a_parent_directory_that_is_a_symlink_hides_what_lies_behind_it(world: World) -> None:
    put(world.home / "dotfiles/config/gh/hosts.yml")
    put(world.home / "dotfiles/config/other", "plain")
    (world.home / ".config").symlink_to("dotfiles/config")
    with world.environment("namespaces") as environment:
        for config in (".config", "dotfiles/config"):
            assert SECRET not in environment.run(["cat", str(world.home / config / "gh/hosts.yml")]).stdout
            assert environment.run(["cat", str(world.home / config / "other")]).stdout == "plain"


def test_both_the_accounts_home_and_the_variables_are_covered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`HOME=/somewhere corral run` must not uncover the real one."""
    other = world.base / "other"
    other.mkdir()
    put(other / ".netrc")
    monkeypatch.setattr("corral.state.account_home", lambda: str(world.home))
    monkeypatch.setenv("HOME", str(other))
    with world.environment("namespaces") as environment:
        for home in (world.home, other):
            assert SECRET not in environment.run(["cat", str(home / ".netrc")]).stdout
        assert environment.run(["cat", str(world.home / ".profile")]).stdout == "plain"


def test_a_home_that_is_the_workspace_still_hides_its_keys(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused while Corral's own directories lie in it, and fine where they do not."""
    policy = Policy.workspace_write(backend="namespaces")
    with pytest.raises(PolicyError, match="Corral's own"):
        LocalEnvironment(world.home, policy)
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(world.base / "config"))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(world.base / "state"))
    with LocalEnvironment(world.home, policy) as environment:
        assert environment.run(["touch", "written"]).exit_code == 0
        for name in (".ssh/id_test", ".netrc"):
            assert SECRET not in environment.run(["cat", name]).stdout
    assert (world.home / "written").exists()


def test_a_grant_to_hide_hides_and_the_landlock_tier_refuses_to_promise_it(
    world: World, backend: str
) -> None:
    (world.workspace / "private").mkdir()
    put(world.workspace / "private/notes")
    grants = (Grant.hide("private"),)
    if backend == "landlock":
        with pytest.raises(NotEnforceable, match="hidden"):
            world.environment(backend, grants=grants)
        return
    with world.environment(backend, grants=grants) as environment:
        assert environment.run(["ls", "private"]).stdout == ""
        assert environment.run(["ls"]).stdout == "private\n"
    assert (world.workspace / "private/notes").read_text() == SECRET


def test_of_each_hidden_path_it_is_said_how_it_is_hidden(world: World) -> None:
    """Under home by name, which outlives a replacement; in a writable place by a mount, which does not."""
    put(world.workspace / ".env")
    policy = Policy.workspace_write(backend="namespaces", grants=(Grant.hide(".env"),))
    enclosure = Enclosure(str(world.workspace), policy)
    try:
        hidden = enclosure.hidden_paths()
    finally:
        enclosure.close()
    assert hidden[str(world.home / ".ssh")] == "by name"
    assert hidden[str(world.workspace / ".env")] == "over-mount"


def test_what_the_policy_unhides_can_be_read(world: World) -> None:
    with world.environment("namespaces", unhide=(".netrc",)) as environment:
        assert environment.run(["cat", str(world.home / ".netrc")]).stdout == SECRET
        assert SECRET not in environment.run(["cat", str(world.home / ".ssh/id_test")]).stdout


def test_a_command_cannot_take_away_what_hides_for_the_next_one(world: World) -> None:
    """The environment keeps its layer of names between runs; nothing a run can reach is part of it."""
    key = str(world.home / ".ssh/id_test")
    with world.environment("namespaces") as environment:
        assert SECRET not in environment.run(["cat", key]).stdout
        environment.shell(
            "rm -rf /tmp/.[a-z]* /tmp/* /var/tmp/* /tmp/../tmp /dev/shm/*; chmod 777 /tmp; touch /tmp/x"
        )
        environment.shell(f"rm -rf {world.home}/.ssh /tmp/corral-{os.getuid()}/*/masks-*")
        assert SECRET not in environment.run(["cat", key]).stdout


def test_a_temp_directory_below_home_is_fine_and_opens_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`TMPDIR=~/tmp`: what the environment keeps there for itself then lies in the home that it hides things in."""
    temp = world.home / "tmp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    with world.environment("namespaces", grants=(Grant.rw(str(temp)),)) as environment:
        for _ in range(2):
            done = environment.run(["cat", str(world.home / ".ssh/id_test"), str(world.home / ".profile")])
            assert done.stdout == "plain"
            environment.shell(f"rm -rf {temp}/*/*/masks-* /tmp/*")


def test_a_masked_name_cannot_be_made_visible_from_inside(world: World) -> None:
    tricks = (
        f"mv {world.home}/.ssh {world.workspace}/x",
        f"ln {world.home}/.netrc {world.workspace}/x",
        f"cd {world.home}/.ssh/..; cat .netrc",
        f"cat /proc/self/root{world.home}/.netrc /proc/1/root{world.home}/.netrc /proc/1/cwd/.netrc",
        f"umount {world.home}; cat {world.home}/.netrc",
    )
    with world.environment("namespaces") as environment:
        for trick in tricks:
            assert SECRET not in environment.shell(trick).stdout, trick
    assert os.listdir(world.workspace) == []
