"""What is ours and what is not: hidden, private, read-only and closed places, and the rows where no hint may come."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral import Grant, Policy
from denials.refusals import allowed, denials_of, run, the_denial, works
from jail.world import PYTHON, SECRET, World

pytestmark = pytest.mark.jail

IS_ROOT = os.getuid() == 0


@contextlib.contextmanager
def file_in_tmp(mode: int = 0o644) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="corral-denials-") as file:
        file.write(b"data")
        file.flush()
        os.chmod(file.name, mode)
        yield Path(file.name)


# ---- hidden ----


@pytest.mark.parametrize("name", [".netrc", ".ssh/id_test"])
@pytest.mark.parametrize(
    "command",
    [
        ["cat", "@"],
        ["head", "@"],
        ["bash", "-c", 'cat < "@"'],
        [PYTHON, "-c", "open('@')"],
        ["cp", "@", "taken"],
    ],
    ids=lambda command: command[0].rpartition("/")[2],
)
def test_hidden_key_material_is_named_by_its_mask_and_readable_when_unhidden(
    world: World, name: str, command: list[str]
) -> None:
    policy = Policy.workspace_write(backend="namespaces")
    argv = [word.replace("@", str(world.home / name)) for word in command]
    denial = the_denial(world, policy, argv)
    mask = name.split("/")[0]
    assert (denial.what, denial.operation) == (str(world.home / name), "read")
    assert denial.rule == f"keys {mask}"
    assert denial.grant is not None
    assert denial.grant.flag == f"--unhide {mask}"
    assert denial.grant.config == f'unhide = ["{mask}"]'
    works(world, allowed(policy, denial), argv)


def test_a_write_into_a_hidden_directory_names_it_and_works_once_it_is_granted(world: World) -> None:
    policy = Policy.workspace_write(backend="namespaces")
    argv = ["touch", str(world.home / ".ssh/new")]
    denial = the_denial(world, policy, argv)
    assert (denial.rule, denial.operation) == ("keys .ssh", "write")
    works(world, allowed(policy, denial), argv)


def test_what_the_policy_hides_is_told_apart_from_key_material(world: World) -> None:
    (world.workspace / "private").mkdir()
    (world.workspace / "private/notes").write_text(SECRET)
    policy = Policy.workspace_write(backend="namespaces", grants=(Grant.hide("private"),))
    denial = the_denial(world, policy, ["cat", "private/notes"])
    assert denial.rule == "hide private"
    works(world, allowed(policy, denial), ["cat", "private/notes"])


def test_corrals_own_state_is_never_offered(world: World) -> None:
    state = world.home / ".local/state/corral"
    state.mkdir(parents=True, exist_ok=True)
    policy = Policy.workspace_write(backend="namespaces")
    denial = the_denial(world, policy, ["ls", str(state)])
    assert (denial.rule, denial.grant) == ("own", None)
    assert "nothing allows it" in denial.text()


# ---- private places ----


def test_a_file_of_the_hosts_tmp_is_explained_and_readable_when_granted(world: World) -> None:
    policy = Policy.workspace_write(backend="namespaces")
    with file_in_tmp() as file:
        denial = the_denial(world, policy, ["cat", str(file)])
        assert (denial.what, denial.rule) == (str(file), "private /tmp")
        assert denial.grant is not None
        assert denial.grant.flag == f"--ro {file}"
        works(world, allowed(policy, denial), ["cat", str(file)])


def test_the_host_tmp_is_readable_without_namespaces_and_writing_it_points_to_the_private_one(
    world: World,
) -> None:
    policy = Policy.workspace_write(backend="landlock")
    with file_in_tmp() as file:
        works(world, policy, ["cat", str(file)])
        beside = file.with_name(file.name + "-beside")
        denial = the_denial(world, policy, ["touch", str(beside)])
        assert "$TMPDIR" in denial.text()
        works(world, allowed(policy, denial), ["touch", str(beside)])
        beside.unlink()


def test_run_cannot_be_granted_as_a_whole(world: World, backend: str) -> None:
    denial = the_denial(world, Policy.workspace_write(backend=backend), ["touch", "/run/x"])
    assert (denial.what, denial.grant) == ("/run/x", None)


def test_shared_memory_is_granted_by_its_own_switch(world: World) -> None:
    policy = Policy.workspace_write(backend="landlock")
    name = f"/dev/shm/corral-denials-{os.getpid()}"
    denial = the_denial(world, policy, ["touch", name])
    assert denial.rule == "shared-memory"
    works(world, allowed(policy, denial), ["bash", "-c", f"> {name}; rm {name}"])


# ---- places in the workspace that may not be written ----


def test_mode_read_only_names_the_mode(world: World, backend: str) -> None:
    policy = Policy.read_only(backend=backend)
    denial = the_denial(world, policy, ["touch", "new"])
    assert (denial.what, denial.rule) == (str(world.workspace / "new"), "mode read-only")
    assert denial.grant is not None
    assert denial.grant.flag == "-m workspace-write"
    works(world, allowed(policy, denial), ["touch", "new"])


def test_outside_the_writable_globs_names_them(world: World, backend: str) -> None:
    (world.workspace / "src").mkdir()
    policy = Policy.workspace_write(backend=backend, writable=["out/**"])
    denial = the_denial(world, policy, ["touch", "out/x", "src/x"])
    assert (denial.what, denial.rule) == (str(world.workspace / "src/x"), "writable out/**")
    works(world, allowed(policy, denial), ["touch", "out/x", "src/x"])


def test_a_read_only_grant_in_the_workspace_can_be_taken_back(world: World) -> None:
    (world.workspace / "kept").mkdir()
    policy = Policy.workspace_write(backend="namespaces", grants=(Grant.ro("kept"),))
    denial = the_denial(world, policy, ["touch", "kept/x"])
    assert denial.rule == f"ro {world.workspace}/kept"
    works(world, allowed(policy, denial), ["touch", "kept/x"])


def test_the_projects_own_config_is_never_offered(world: World) -> None:
    (world.workspace / "corral.toml").write_text('mode = "workspace-write"\n')
    policy = Policy.workspace_write(backend="namespaces")
    denial = the_denial(world, policy, ["bash", "-c", "echo >> corral.toml"])
    assert (denial.rule, denial.grant) == ("project-config", None)


# ---- owner and mode ----


def test_a_place_that_is_not_yours_either_is_said_to_be_so(world: World, backend: str) -> None:
    name = "/etc/corral-denials-test"
    denial = the_denial(world, Policy.workspace_write(backend=backend), ["touch", name])
    assert (denial.what, denial.rule) == (name, "outside")
    if IS_ROOT:
        assert denial.grant is not None
        assert denial.grant.flag == "--rw /etc"
    else:
        assert denial.grant is None
        assert "your own permissions" in denial.text()


def test_a_denied_read_outside_is_ours_only_where_a_capability_was_taken(world: World, backend: str) -> None:
    locked = world.outside / "locked"
    locked.write_text("x")
    locked.chmod(0)
    policy = Policy.workspace_write(backend=backend)
    for command in (["cat"], ["head"], ["grep", "x"], ["cp", "--target-directory=."]):
        found = denials_of(world, policy, run(world, policy, [*command, str(locked)]))
        assert [(d.rule, d.grant) for d in found] == ([("capabilities", None)] if IS_ROOT else [])


@pytest.mark.parametrize(
    "command",
    [
        ["cat", "locked"],
        ["bash", "-c", "echo hi > locked"],
        ["bash", "-c", "echo hi > sub/locked"],
        ["touch", "closed/new"],
        ["rm", "closed/file"],
        ["mkdir", "closed/d"],
        ["cp", "mine", "closed/x"],
        ["mv", "mine", "closed/x"],
        ["./mine"],
        ["bash", "./locked"],
        [PYTHON, "-c", "open('locked')"],
        [PYTHON, "-c", "open('locked', 'w')"],
        [PYTHON, "-c", "open('closed/new', 'w')"],
        ["tar", "cf", "a.tar", "locked"],
        ["sed", "-i", "s/a/b/", "closed/file"],
    ],
    ids=" ".join,
)
def test_an_ordinary_permission_error_in_the_workspace_is_not_ours(
    world: World, backend: str, command: list[str]
) -> None:
    work = world.workspace
    for directory in ("sub", "closed"):
        (work / directory).mkdir()
    for name in ("locked", "sub/locked", "closed/file"):
        (work / name).write_text("x")
    for name in ("locked", "sub/locked", "closed"):
        (work / name).chmod(0 if name != "closed" else 0o500)
    policy = Policy.workspace_write(backend=backend)
    done = run(world, policy, ["bash", "-c", '"$@"', "bash", *command])
    assert "ermission denied" in done.stderr
    assert denials_of(world, policy, done) == ()


@pytest.mark.parametrize(
    "line",
    [
        "cat /nonexistent/x",
        "ls @H/.no-such-name",
        "cat @H/.pgpass",
        "@O/victim",
        "env @O/victim",
        "kill 1",
        "mount -t tmpfs none /mnt",
        "unshare --user true",
        "echo 'git@example.com: Permission denied (publickey).' >&2; false",
    ],
)
def test_other_failures_are_not_ours(world: World, backend: str, line: str) -> None:
    line = line.replace("@O", str(world.outside)).replace("@H", str(world.home))
    policy = Policy.workspace_write(backend=backend)
    done = run(world, policy, ["bash", "-c", line])
    assert done.exit_code != 0
    assert denials_of(world, policy, done) == ()


def test_without_a_jail_nothing_is_ours(world: World) -> None:
    policy = Policy.off()
    done = run(world, policy, ["cat", str(world.home / "missing")])
    assert done.exit_code != 0
    assert denials_of(world, policy, done) == ()


def test_a_locked_archive_in_the_workspace_is_not_ours_although_it_was_to_be_unpacked_outside(
    world: World, backend: str
) -> None:
    (world.workspace / "locked.tar").write_bytes(bytes(10240))
    (world.workspace / "locked.tar").chmod(0)
    policy = Policy.workspace_write(backend=backend)
    done = run(world, policy, ["tar", "-C", str(world.outside), "-xf", "locked.tar"])
    assert "locked.tar" in done.stderr
    assert denials_of(world, policy, done) == ()
