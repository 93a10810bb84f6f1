"""Plans with one fence taken down: how tests show that each of them matters.

A step that used what the missing one filled goes with it; the launcher would refuse the plan otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from corral import Plan
from corral.jail.plan import Step
from corral.jail.site import is_below

FILLS = {"open", "fd", "mount", "overlay", "tree", "make"}
# Where an operation names slots that earlier steps filled.
USES = {
    "open": (2,),
    "tree": (2,),
    "make": (2,),
    "overlay": (2, 3),
    "attach": (1, 2),
    **dict.fromkeys(("whiteout", "chdir", "keep", "allow", "status", "life"), (1,)),
}

Weaken = Callable[[Plan], Plan]


def without(*operations: str) -> Weaken:
    return lambda plan: _leave_out(plan, lambda _, words: words[0] in operations)


def not_mounted(path: str) -> Weaken:
    """Nothing of ours is put on this path, on its parents (root's /dev), or below either: the host's shows."""

    def weaken(plan: Plan) -> Plan:
        points = dict(mount_points(plan))
        tops = {point for point in points.values() if is_below(path, point)}
        gone = {index for index, point in points.items() if any(is_below(point, top) for top in tops)}
        return _leave_out(plan, lambda index, _: index in gone)

    return weaken


def without_file_system(kind: str) -> Weaken:
    """Never made, so nowhere mounted."""
    return lambda plan: _leave_out(plan, lambda _, words: words[0] == "mount" and words[2] == kind)


def without_namespace(flag: int) -> Weaken:
    return lambda plan: _replace(plan, "namespaces", lambda words: (words[0], str(int(words[1]) & ~flag)))


def with_operands(operation: str, *operands: str) -> Weaken:
    return lambda plan: _replace(plan, operation, lambda words: (words[0], *operands))


def with_home_as_it_is() -> Weaken:
    """A clone of the real home where the layer of hidden names would lie over it."""
    return lambda plan: _replace(plan, "overlay", lambda words: ("tree", words[1], words[3], words[4]))


def all_of(*steps: Weaken) -> Weaken:
    def weaken(plan: Plan) -> Plan:
        for step in steps:
            plan = step(plan)
        return plan

    return weaken


def mount_points(plan: Plan) -> Iterator[tuple[int, str]]:
    """Index and target path of each `attach`."""
    paths: dict[str, str] = {}
    for index, (words, _) in enumerate(plan.steps):
        if words[0] == "open":
            paths[words[1]] = words[3]
        elif words[0] == "make":
            paths[words[1]] = f"{paths.get(words[2], '?')}/{words[3]}"
        elif words[0] == "attach":
            paths[words[1]] = paths.get(words[2], "?")
            yield index, paths[words[1]]


def _leave_out(plan: Plan, is_gone: Callable[[int, tuple[str, ...]], bool]) -> Plan:
    kept: list[Step] = []
    empty: set[str] = set()
    for index, (words, why) in enumerate(plan.steps):
        if is_gone(index, words) or any(words[n] in empty for n in USES.get(words[0], ())):
            empty.update(words[1:2] if words[0] in FILLS else ())
        else:
            kept.append((words, why))
    return plan.replace(steps=tuple(kept))


def _replace(plan: Plan, operation: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Plan:
    assert operation in plan.operations()
    return plan.replace(
        steps=tuple((change(words) if words[0] == operation else words, why) for words, why in plan.steps)
    )
