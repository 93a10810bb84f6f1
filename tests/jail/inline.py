"""Commands started through the launcher's own arguments, as a program that is not Corral would start them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corral import Plan, Policy
from corral.jail.enclosure import Enclosure
from corral.jail.host import launcher_path
from jail.world import ENVIRONMENT

REFUSED = 125


@contextlib.contextmanager
def inline_plan(root: os.PathLike[str], argv: Sequence[str], **fields: Any) -> Iterator[Plan]:
    enclosure = Enclosure(os.fspath(root), Policy.workspace_write(**fields))
    try:
        yield enclosure.plan(argv, inline=True)
    finally:
        enclosure.close()


def words(plan: Plan) -> list[str]:
    return [launcher_path(), *plan.inline()]


def run_inline(
    plan: Plan, *, weaken: Callable[[Plan], Plan] = lambda plan: plan, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(weaken(plan)),
        **{"stdin": subprocess.DEVNULL, "env": ENVIRONMENT, "timeout": 20, **options},
        capture_output=True,
        text=True,
    )
