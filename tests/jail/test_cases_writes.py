"""Cases of the tracker's and of rubino's notes: one fence around writes, from end to end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import CommandNotFound
from hostfacts import skip_unless_host
from jail.inline import inline_plan, run_inline
from jail.world import World, carrying, fingerprint, new_mark, python

pytestmark = pytest.mark.jail

WRITABLE: dict[str, Any] = {"writable": ("workspace/**",)}


# ---- writes below one glob ----


@case("tracker-42")
def test_the_write_inside_lands_and_the_one_outside_makes_the_shell_fail(backend: str, world: World) -> None:
    with world.environment(backend, **WRITABLE) as environment:
        done = environment.shell("set -e; echo in > workspace/in; echo out > out")
    assert (world.workspace / "workspace/in").read_text() == "in\n"
    assert not (world.workspace / "out").exists()
    assert done.exit_code != 0


@case("tracker-43")
def test_a_grandchild_shell_is_held_too(backend: str, world: World) -> None:
    nested = "sh -c 'sh -c \"echo in > workspace/in; echo out > out\"'"
    with world.environment(backend, **WRITABLE) as environment:
        assert environment.shell(nested).exit_code != 0
    assert os.listdir(world.workspace) == ["workspace"]
    assert os.listdir(world.workspace / "workspace") == ["in"]


@case("tracker-44")
def test_a_symlink_made_inside_exists_and_a_write_through_it_makes_nothing(
    backend: str, world: World
) -> None:
    target = world.outside / "target"
    with world.environment(backend, **WRITABLE) as environment:
        done = environment.shell(f"ln -s {target} workspace/link && echo x > workspace/link")
    assert done.exit_code != 0
    assert (world.workspace / "workspace/link").is_symlink()
    assert not target.exists()


@case("tracker-45")
def test_a_writable_directory_that_was_missing_is_made(backend: str, world: World) -> None:
    old = os.umask(0o022)
    try:
        with world.environment(backend, **WRITABLE) as environment:
            assert environment.shell("echo x > workspace/x").exit_code == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE((world.workspace / "workspace").stat().st_mode) == 0o755
    assert (world.workspace / "workspace/x").read_text() == "x\n"


# ---- the write jail from end to end ----


@case("rubino-20", "peers-F1")
def test_a_write_in_the_workspace_lands_and_one_beside_it_leaves_no_file(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        assert environment.shell("echo x > here").exit_code == 0
        for place in (world.outside, world.home, world.workspace.parent / "granted"):
            assert environment.shell(f"echo x > {place}/there").exit_code != 0
            assert not (place / "there").exists()
    assert (world.workspace / "here").read_text() == "x\n"


@case("rubino-21")
def test_redirecting_to_null_works_in_silence(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        done = environment.shell("echo x > /dev/null 2> /dev/null; cat < /dev/null; echo y 2>/dev/null >&2")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


@case("rubino-22")
def test_nothing_changes_outside_whatever_a_command_tries(backend: str, world: World) -> None:
    outside, victim = world.outside, world.outside / "victim"
    (world.workspace / "mine").write_text("mine")
    (world.workspace / "link").symlink_to(victim)
    before = fingerprint(victim)
    tries = (
        *(
            f"> {outside}/new",
            f": > {victim}",
            f"rm -f {victim}",
            f"mv mine {outside}/mine",
            f"mkdir {outside}/d",
        ),
        *(f"mv {victim} stolen", f"ln {victim} hard", f"ln mine {outside}/hard", f"ln -s x {outside}/sym"),
        *("echo x >> link", "cp /dev/null link", f"mkfifo {outside}/fifo", f"rmdir {outside}"),
    )
    with world.environment(backend) as environment:
        for line in tries:
            assert environment.shell(line).exit_code != 0, line
        assert environment.shell("mv mine mine2 && ln mine2 hard && mkdir d && rm hard").exit_code == 0
    assert fingerprint(victim) == before
    assert os.listdir(outside) == ["victim"]


@case("rubino-24")
def test_a_set_uid_program_gains_nothing(backend: str, world: World) -> None:
    skip_unless_host("root-attacks")
    program = world.workspace / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    with world.environment(backend) as environment:
        assert environment.shell("sh -c 'sh -c \"./id -u\"'").stdout == "0\n"


@case("rubino-24")
def test_children_of_children_stay_confined_and_cannot_gain_privileges(backend: str, world: World) -> None:
    deep = "for i in 1 2 3 4; do set -- sh -c \"$*\"; done; sh -c 'grep NoNewPrivs /proc/self/status'"
    with world.environment(backend) as environment:
        assert environment.shell(deep).stdout.split() == ["NoNewPrivs:", "1"]
        assert environment.run(python(NESTED_WRITE, world.outside / "x")).exit_code == 0
    assert not (world.outside / "x").exists()
    assert (world.workspace / "from-below").exists()


# Four generations down: the write inside must work, the one outside must not.
NESTED_WRITE = """
import os, sys
for _ in range(4):
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
open("from-below", "w")
try:
    open(sys.argv[1], "w")
except OSError:
    sys.exit(0)
sys.exit(1)
"""


@case("rubino-25")
def test_a_timeout_ends_the_tree_and_status_and_missing_commands_pass_through(
    backend: str, world: World
) -> None:
    mark = new_mark()
    with world.environment(backend) as environment:
        done = environment.run(["sh", "-c", "sh -c 'sleep 300; :' \"$0\" & sleep 300", mark], timeout=0.2)
        assert done.timed_out
        assert carrying(mark) == []
        assert environment.run(["sh", "-c", "exit 77"]).exit_code == 77
        with pytest.raises(CommandNotFound):
            environment.run(["no-such-program"])
        assert environment.shell("no-such-program").exit_code == 127
    with inline_plan(world.workspace, ["no-such-program"], backend=backend) as plan:
        assert run_inline(plan).returncode == 127


@case("rubino-26")
def test_the_agents_own_home_cannot_be_written(backend: str, world: World) -> None:
    for own in (".config/corral", ".local/state/corral"):
        (world.home / own).mkdir(parents=True, exist_ok=True)
        (world.home / own / "kept").write_text("kept")
    with world.environment(backend) as environment:
        for own in (".config/corral", ".local/state/corral"):
            assert environment.shell(f"echo x > ~/{own}/kept").exit_code != 0
            assert environment.shell(f"echo x > ~/{own}/new").exit_code != 0
            assert environment.shell(f"mv ~/{own} ~/gone || mv ~/.config gone").exit_code != 0
            assert sorted(os.listdir(world.home / own))[-1] == "kept"
            assert (world.home / own / "kept").read_text() == "kept"
        assert environment.shell("echo x > here").exit_code == 0
