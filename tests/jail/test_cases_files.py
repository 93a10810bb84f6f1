"""Cases F of the notes on peers: ways out of the file system's fence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cases import case
from jail.world import World, fingerprint, new_mark

pytestmark = pytest.mark.jail


@case("peers-F2")
@pytest.mark.parametrize("leaf", ["victim", "missing"])
def test_a_symlink_to_outside_is_no_way_out(backend: str, world: World, leaf: str) -> None:
    (world.workspace / "link").symlink_to(world.outside / leaf)
    (world.workspace / "directory").symlink_to(world.outside)
    before = fingerprint(world.outside / "victim")
    with world.environment(backend) as environment:
        for line in ("echo x > link", "echo x >> link", f"echo x > directory/{leaf}", "touch link/../y"):
            assert environment.shell(line).exit_code != 0
        assert environment.shell("rm link && echo x > link").exit_code == 0
    assert fingerprint(world.outside / "victim") == before
    assert os.listdir(world.outside) == ["victim"]


@case("peers-F5")
def test_a_hard_link_to_an_outside_file_cannot_be_made_and_used(backend: str, world: World) -> None:
    before = fingerprint(world.outside / "victim")
    with world.environment(backend) as environment:
        assert environment.shell(f"ln {world.outside}/victim hard && echo x >> hard").exit_code != 0
        assert environment.shell("echo x > a && ln a b && echo y >> b && grep -c . a").stdout == "2\n"
    assert fingerprint(world.outside / "victim") == before


@case("peers-F9")
def test_the_links_of_proc_are_no_way_out(backend: str, world: World) -> None:
    out = world.outside
    tries = (
        *(f"/proc/self/root{out}/p", "/proc/self/cwd/../outside/p", f"/proc/$$/root{out}/p"),
        *(f"/proc/1/root{out}/p", f"/proc/self/task/$$/root{out}/p", f"/proc/thread-self/root{out}/p"),
        *("/proc/self/root/proc/1/cwd/../outside/p", f"/proc/$PPID/root{out}/p", f"/proc/$PPID/cwd{out}/p"),
    )
    with world.environment(backend) as environment:
        for path in tries:
            assert environment.shell(f"echo x > {path}").exit_code != 0, path
        assert environment.shell("echo x > /proc/self/cwd/inside").exit_code == 0
    assert os.listdir(out) == ["victim"]
    assert os.listdir(world.workspace) == ["inside"]


@case("peers-F11")
def test_mode_times_and_attributes_of_an_outside_file_stay_as_they_are(world: World) -> None:
    victim = world.outside / "victim"
    before = fingerprint(victim)
    tries = (f"setfattr -n user.x -v 1 {victim}", f"touch -d 2001-01-01 {victim}", f"chmod 000 {victim}")
    with world.environment("namespaces") as environment:
        for line in tries:
            assert environment.shell(line).exit_code != 0
        (world.workspace / "victim").touch()
        for line in tries:
            assert environment.shell(line.replace(str(victim), "./victim")).exit_code == 0, line
    assert fingerprint(victim) == before


@case("peers-F14")
def test_a_new_user_namespace_gives_no_bind_mount_of_an_outside_directory(backend: str, world: World) -> None:
    (world.workspace / "m").mkdir()
    bind = f"mount --bind {world.outside} m && echo x > m/z"
    with world.environment(backend) as environment:
        for line in (f"unshare -Urm sh -c '{bind}'", bind, f"unshare -m sh -c '{bind}'"):
            assert environment.shell(line).exit_code != 0, line
    assert os.listdir(world.outside) == ["victim"]


@case("peers-F16")
def test_what_is_written_to_shared_scratch_does_not_appear_on_the_host(world: World) -> None:
    name = new_mark()
    places = ("/tmp", "/var/tmp", "/dev/shm")
    with world.environment("namespaces") as environment:
        for place in places:
            assert environment.shell(f"echo x > {place}/{name} && cat {place}/{name}").stdout == "x\n"
            assert not Path(place, name).exists()


@case("peers-F16")
def test_the_landlock_tier_writes_to_its_own_temp_only(world: World) -> None:
    name = new_mark()
    with world.environment("landlock") as environment:
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            assert environment.shell(f"echo x > {place}/{name}").exit_code != 0
            assert not Path(place, name).exists()
        assert environment.shell(f"echo x > $TMPDIR/{name} && cat $TMPDIR/{name}").stdout == "x\n"
