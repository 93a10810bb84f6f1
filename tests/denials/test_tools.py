"""Every tool in the table is run, refused, understood, and works with the grant that was named. In both tiers, and in
the C and a UTF-8 locale."""

from __future__ import annotations

import pytest

from corral import Policy
from denials.refusals import LOCALES, allowed, denials_of, filled, run, the_denial, works
from denials.tools import FILES, IN_A_REPOSITORY, Row
from hostfacts import skip_unless_host
from jail.world import World

pytestmark = pytest.mark.jail

ROWS = [(tier, row) for row in FILES for tier in row.tiers]
REPOSITORY_ROWS = [(tier, row) for row in IN_A_REPOSITORY for tier in row.tiers]


def check(world: World, tier: str, row: Row) -> None:
    policy = Policy.workspace_write(backend=tier)
    argv = [filled(world, word) for word in row.command]
    what, is_random = filled(world, row.what.removesuffix("*")), row.what.endswith("*")
    for denial in [the_denial(world, policy, argv, locale=locale) for locale in LOCALES]:
        assert denial.what.startswith(what) if is_random else denial.what == what
        assert (denial.operation, denial.tier) == (row.operation, tier)
        if row.rw is None:
            assert denial.grant is None
            assert "copy it instead" in denial.text()
        else:
            assert denial.grant is not None
            assert denial.grant.api == f"policy.allow(Grant.rw({filled(world, row.rw)!r}))"
    if row.rw is not None:
        works(world, allowed(policy, the_denial(world, policy, argv)), argv)


@pytest.mark.parametrize(("tier", "row"), ROWS, ids=str)
def test_a_refused_tool_is_understood_and_works_with_the_grant(world: World, tier: str, row: Row) -> None:
    if row.needs:
        skip_unless_host(f"no-{row.needs}")
    check(world, tier, row)


@pytest.mark.parametrize(("tier", "row"), REPOSITORY_ROWS, ids=str)
def test_git_in_a_repository_outside_is_understood(repository: World, tier: str, row: Row) -> None:
    check(repository, tier, row)


def test_a_tree_is_removed_grant_by_grant(world: World, backend: str) -> None:
    """What is in it is refused first, then the directory itself; each denial names the next grant."""
    policy = Policy.workspace_write(backend=backend)
    argv = ["rm", "-r", f"{world.outside}/sub dir"]
    for place in (world.outside / "sub dir", world.outside):
        denial = the_denial(world, policy, argv)
        assert denial.operation == "remove"
        assert denial.grant is not None
        assert denial.grant.api == f"policy.allow(Grant.rw({str(place)!r}))"
        policy = allowed(policy, denial)
        (place / "file").write_text("x")
    works(world, policy, argv)


def test_many_files_in_one_directory_are_one_denial(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    files = [str(world.outside / f"f{n}") for n in range(200)]
    denial = the_denial(world, policy, ["touch", *files])
    works(world, allowed(policy, denial), ["touch", *files])


def test_two_directories_are_two_denials_and_both_grants_together_work(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    argv = ["touch", f"{world.outside}/x", f"{world.granted}/x"]
    found = denials_of(world, policy, run(world, policy, argv))
    assert [d.what for d in found] == argv[1:]
    for denial in found:
        policy = allowed(policy, denial)
    works(world, policy, argv)


def test_a_link_in_the_workspace_is_followed_to_what_was_refused(world: World, backend: str) -> None:
    (world.workspace / "link").symlink_to(world.outside / "victim")
    policy = Policy.workspace_write(backend=backend)
    argv = ["bash", "-c", "echo hi > link"]
    denial = the_denial(world, policy, argv)
    assert denial.what == str(world.outside / "victim")
    works(world, allowed(policy, denial), argv)


def test_output_that_went_to_stdout_is_read_too(world: World, backend: str) -> None:
    policy = Policy.workspace_write(backend=backend)
    assert the_denial(world, policy, ["bash", "-c", f"touch {world.outside}/x 2>&1"]).operation == "write"


def test_removing_by_a_language_that_does_not_say_so_names_the_directory_in_a_note(
    world: World, backend: str
) -> None:
    policy = Policy.workspace_write(backend=backend)
    source = f"import os; os.remove('{world.outside}/victim')"
    denial = the_denial(world, policy, ["/usr/bin/python3", "-c", source])
    assert (denial.what, denial.operation) == (str(world.outside / "victim"), "write")
    assert "its directory must be granted" in denial.note
