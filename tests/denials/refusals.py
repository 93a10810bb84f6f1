"""Running something that is refused, asking what it was, and trying again with the grant that was named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from corral import CommandResult, Grant, LocalEnvironment, Policy
from corral.denials import Denial
from corral.denials.finding import denials_in
from corral.jail.enclosure import Enclosure
from jail.world import World

LOCALES = ("C", "C.UTF-8")


def furnish(world: World) -> None:
    for name in ("mine", "x.c"):
        (world.workspace / name).write_text("int main(void) { return 0; }\n")
    (world.workspace / "makefile").write_text(
        f"redirect:\n\techo hi > {world.outside}/x\ncopy:\n\tcp mine {world.outside}/x\nrelative:\n\ttouch relative\n"
        f"{world.outside}/stamp:\n\techo hi\n"
    )
    (world.workspace / "script.sh").write_text(f"\n\necho hi > {world.outside}/x\n")
    (world.outside / "empty").mkdir()
    (world.outside / "sub dir").mkdir()
    (world.outside / "sub dir/file").write_text("x")


def filled(world: World, template: str) -> str:
    """@O: the directory outside; @W: the workspace; @H: home."""
    for mark, path in (("@O", world.outside), ("@W", world.workspace), ("@H", world.home)):
        template = template.replace(mark, str(path))
    return template


def run(
    world: World, policy: Policy, argv: Sequence[str], *, locale: str = "C.UTF-8", **options: Any
) -> CommandResult:
    """Messages in a known language; the rest of the environment as a run has it."""
    with LocalEnvironment(world.workspace, policy) as environment:
        return environment.run(
            argv, timeout=30, extra_env={"LC_ALL": locale, "LANGUAGE": "", "HOME": str(world.home)}, **options
        )


def denials_of(
    world: World, policy: Policy, done: CommandResult, cwd: str | os.PathLike[str] | None = None
) -> tuple[Denial, ...]:
    enclosure = Enclosure(str(world.workspace), policy)
    try:
        where = os.fspath(cwd or world.workspace)
        return denials_in(
            done.stdout_bytes, done.stderr_bytes, enclosure, where, argv=done.argv, exit_code=done.exit_code
        )
    finally:
        enclosure.close()


def the_denial(world: World, policy: Policy, argv: Sequence[str], *, locale: str = "C.UTF-8") -> Denial:
    """The one denial of a command that fails."""
    done = run(world, policy, argv, locale=locale)
    assert done.exit_code != 0, f"nothing was refused: {done.stdout}"
    found = denials_of(world, policy, done)
    assert len(found) == 1, f"{[d.text() for d in found]} from: {done.stdout}{done.stderr}"
    return found[0]


def allowed(policy: Policy, denial: Denial) -> Policy:
    """The policy after the call that the denial names."""
    assert denial.grant is not None, denial.text()
    wider = eval(denial.grant.api, {"policy": policy, "Grant": Grant})
    assert isinstance(wider, Policy)
    return wider


def works(world: World, policy: Policy, argv: Sequence[str]) -> None:
    done = run(world, policy, argv)
    assert done.exit_code == 0, done.stdout + done.stderr
