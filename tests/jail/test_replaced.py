"""A place that the policy names is replaced between the plan and the launch."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corral import Grant, LaunchRefused
from hostfacts import skip_unless_host
from jail.inline import REFUSED, inline_plan, run_inline
from jail.world import World, launch

pytestmark = pytest.mark.jail

Replace = Callable[[Path, Path], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def by_a_symlink(place: Path, elsewhere: Path) -> Iterator[None]:
    place.rename(place.with_name("moved"))
    place.symlink_to(elsewhere)
    yield


@contextlib.contextmanager
def by_another_directory(place: Path, elsewhere: Path) -> Iterator[None]:
    place.rename(place.with_name("moved"))
    elsewhere.rename(place)
    try:
        yield
    finally:
        place.rename(elsewhere)


@contextlib.contextmanager
def by_a_mount(place: Path, elsewhere: Path) -> Iterator[None]:
    skip_unless_host("root-attacks")
    subprocess.run(["mount", "--bind", elsewhere, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


REPLACEMENTS: dict[str, Replace] = {
    "a symlink": by_a_symlink,
    "another directory": by_another_directory,
    "a mount": by_a_mount,
}


@pytest.fixture(params=REPLACEMENTS)
def replaced(request: pytest.FixtureRequest) -> Replace:
    return REPLACEMENTS[request.param]


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_an_inline_plan_is_refused_when_its_grant_was_replaced(
    backend: str, world: World, replaced: Replace
) -> None:
    argv = ["sh", "-c", 'touch ran; echo x > "$0/escaped"', str(world.granted)]
    grants = (Grant.rw(str(world.granted)),)
    with inline_plan(world.workspace, argv, backend=backend, grants=grants) as plan:
        with replaced(world.granted, world.outside):
            done = run_inline(plan)
        assert done.returncode == REFUSED
        assert done.stderr.startswith("corral: refused: step ")
    assert names_in(world.outside) == ["victim"]
    assert names_in(world.workspace) == []


def test_an_inline_plan_runs_while_its_grant_is_what_it_was(backend: str, world: World) -> None:
    argv = ["sh", "-c", 'echo x > "$0/landed"', str(world.granted)]
    grants = (Grant.rw(str(world.granted)),)
    with inline_plan(world.workspace, argv, backend=backend, grants=grants) as plan:
        assert run_inline(plan).returncode == 0
    assert (world.granted / "landed").read_text() == "x\n"


def test_an_inline_plan_is_refused_when_the_workspace_was_replaced(
    backend: str, world: World, replaced: Replace
) -> None:
    with inline_plan(world.workspace, ["touch", "escaped"], backend=backend) as plan:
        with replaced(world.workspace, world.outside):
            done = run_inline(plan)
        assert done.returncode == REFUSED
    assert names_in(world.outside) == ["victim"]


def test_a_grant_held_by_descriptor_gives_no_right_to_what_replaced_it(
    backend: str, world: World, replaced: Replace
) -> None:
    argv = ["sh", "-c", 'echo x > "$0/escaped"', str(world.granted)]
    with world.environment(backend, grants=(Grant.rw(str(world.granted)),)) as environment:
        plan = environment.plan(argv)
        with replaced(world.granted, world.outside), contextlib.suppress(LaunchRefused):
            assert launch(plan).wait_status != 0
        assert names_in(world.outside) == ["victim"]
        if world.granted.is_symlink():
            world.granted.unlink()
        if (moved := world.granted.with_name("moved")).exists():
            moved.rename(world.granted)
        assert launch(plan).wait_status == 0
        assert names_in(world.granted) == ["escaped"]


def test_a_run_after_the_replacement_gets_no_right_to_it_either(
    backend: str, world: World, replaced: Replace
) -> None:
    """The environment keeps what it compiled; the same must hold when it compiles anew."""
    with world.environment(backend, grants=(Grant.rw(str(world.granted)),)) as environment:
        touch = ["touch", f"{world.granted}/x"]
        assert environment.run(touch).exit_code == 0
        (world.granted / "x").unlink()
        with replaced(world.granted, world.outside), contextlib.suppress(LaunchRefused):
            assert environment.run(touch).exit_code != 0
        assert names_in(world.outside) == ["victim"]


def test_a_directory_swapped_while_commands_run_never_lets_a_write_out(backend: str, world: World) -> None:
    """The directory of a writable glob flips to a symlink and back by rename, from outside, between launches."""
    out, spare = world.workspace / "out", world.workspace / "spare"
    landed = 0
    with world.environment(backend, writable=("out/**",)) as environment:
        for turn in range(20):
            if turn % 2:
                out.rename(spare)
                out.symlink_to(world.outside)
            with contextlib.suppress(LaunchRefused):
                landed += environment.run(["touch", "out/x"]).exit_code == 0
            if turn % 2:
                out.unlink()
                spare.rename(out)
    assert landed == 10
    assert names_in(world.outside) == ["victim"]
