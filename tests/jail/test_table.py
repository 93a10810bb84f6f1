"""The table of files: one row a policy and a place in it, one column an operation, the answer in every cell.

`+` is done; `-` is refused; `m` is refused where the tier claims `metadata`, and `r` where it claims
`read-only-inside`: elsewhere it is done, and then the claim stands in `not_covered`.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral import Grant, NotEnforceable
from jail import probe
from jail.world import World, fingerprint, python

pytestmark = pytest.mark.jail

COLUMNS = (
    *("read", "create", "overwrite", "append", "truncate", "mkdir", "unlink", "rename", "across"),
    *("rename-in", "rename-out", "link", "link-in", "link-out", "symlink", "through", "fifo", "device"),
    *("chmod", "chown", "utime", "setxattr"),
)

POLICIES: dict[str, dict[str, Any]] = {
    "read-only": {"mode": "read-only"},
    "workspace-write": {},
    "writable glob": {"writable": ("out/**",)},
    "read-only grant inside": {"grants": (Grant.ro("vendor"),), "require": False},
    "writable grant outside": {"grants": (Grant.rw("../granted"),)},
    "network open": {"network": "open"},
}

TABLE = """
policy                 place     rea cre ovr app tru mkd unl ren acr rin rou lin lii lio sym thr fif dev chm cho uti xat
read-only              workspace  +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
read-only              outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
workspace-write        workspace  +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
workspace-write        out        +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
workspace-write        outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
writable glob          workspace  +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
writable glob          out        +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
writable glob          outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
read-only grant inside workspace  +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
read-only grant inside vendor     +   r   r   r   r   r   r   r   r   -   -   r   -   -   r   -   r   -   r   r   r   r
read-only grant inside outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
writable grant outside workspace  +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
writable grant outside granted    +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
writable grant outside outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
network open           workspace  +   +   +   +   +   +   +   +   +   -   -   +   -   -   +   -   +   -   +   +   +   +
network open           outside    +   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   -   m   m   m   m
"""

WIDTH = TABLE.index("place") - 1  # of the first column
CLAIM_OF = {"m": "metadata", "r": "read-only-inside"}
# A refusal by the fence. ENOENT is none of them: an attack on what is not there proves nothing.
REFUSALS = {"EACCES", "EPERM", "EROFS", "EXDEV"}


def rows_of(policy: str) -> dict[str, dict[str, str]]:
    """By place, the expected cell of every column."""
    rows = {}
    for line in TABLE.strip().splitlines()[1:]:
        if line[:WIDTH].strip() == policy:
            place, *cells = line[WIDTH:].split()
            rows[place] = dict(zip(COLUMNS, cells, strict=True))
    return rows


def place_of(world: World, name: str) -> Path:
    inside = {"workspace": ".", "out": "out", "vendor": "vendor"}
    return world.workspace / inside[name] if name in inside else world.base / "home" / name


def furnish(place: Path, outside: Path) -> None:
    """Something to attack, a file for each operation."""
    for directory in (place, place / "a", place / "b"):
        directory.mkdir(exist_ok=True)
    own = ("read", "overwrite", "append", "truncate", "unlink", "rename", "rename-out", "link-out")
    for name in (*own, "chmod", "chown", "utime", "setxattr", "a/across", "a/link"):
        (place / name).write_text("before")
        (place / name).chmod(0o644)
    tag = str(place).replace("/", "_")
    for name in ("rename-in", "link-in"):
        (outside / f"{name}{tag}").write_text("before")
    (place / "through").symlink_to(outside / f"through{tag}")


def is_changed(before: dict[str, tuple[object, ...]], path: Path) -> bool:
    return before[str(path)] != fingerprint(path)


# By column, whether it can be seen on the host that the operation was done.
EFFECTS: dict[str, Callable[[Path, Path, str, dict[str, tuple[object, ...]]], bool]] = {
    "create": lambda p, o, tag, was: (p / "create").exists(),
    "mkdir": lambda p, o, tag, was: (p / "mkdir").is_dir(),
    "unlink": lambda p, o, tag, was: not (p / "unlink").exists(),
    "rename": lambda p, o, tag, was: (p / "renamed").exists() or not (p / "rename").exists(),
    "across": lambda p, o, tag, was: (p / "b/across").exists() or not (p / "a/across").exists(),
    "rename-in": lambda p, o, tag, was: (p / "renamed-in").exists() or not (o / f"rename-in{tag}").exists(),
    "rename-out": lambda p, o, tag, was: (
        (o / f"renamed-out{tag}").exists() or not (p / "rename-out").exists()
    ),
    "link": lambda p, o, tag, was: (p / "b/link").exists(),
    "link-in": lambda p, o, tag, was: (p / "linked-in").exists() or (o / f"link-in{tag}").stat().st_nlink > 1,
    "link-out": lambda p, o, tag, was: (o / f"linked-out{tag}").exists(),
    "symlink": lambda p, o, tag, was: (p / "symlink").is_symlink(),
    "through": lambda p, o, tag, was: (o / f"through{tag}").exists(),
    "fifo": lambda p, o, tag, was: (p / "fifo").exists() and stat.S_ISFIFO((p / "fifo").stat().st_mode),
    "device": lambda p, o, tag, was: (p / "device").exists(),
    **{
        name: lambda p, o, tag, was, name=name: is_changed(was, p / name)  # type: ignore[misc]
        for name in ("overwrite", "append", "truncate", "chmod", "chown", "utime", "setxattr")
    },
}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_operation_on_files_gets_the_answer_of_the_table(
    policy: str, backend: str, world: World
) -> None:
    rows = rows_of(policy)
    places = {name: place_of(world, name) for name in rows}
    for directory in places.values():
        furnish(directory, world.outside)
    watched = {str(p / n): fingerprint(p / n) for p in places.values() for n in os.listdir(p) if n in EFFECTS}

    with world.environment(backend, **POLICIES[policy]) as environment:
        done = environment.run(python(probe.FILES, world.outside, *places.values()), timeout=20)
    assert done.exit_code == 0, done.stderr
    got = json.loads(done.stdout)

    wrong = []
    for place, cells in rows.items():
        path = places[place]
        tag = str(path).replace("/", "_")
        for column, cell in cells.items():
            answer = got[str(path)][column]
            claim = CLAIM_OF.get(cell)
            allowed = cell == "+" or (claim is not None and claim in done.not_covered)
            effect = column in EFFECTS and EFFECTS[column](path, world.outside, tag, watched)
            right = answer == "ok" if allowed else answer in REFUSALS
            if not right or effect != (allowed and column in EFFECTS):
                wrong.append(
                    f"{place}: {column} should be {'ok' if allowed else 'refused'}, was {answer}, {effect=}"
                )
    assert wrong == []
    for cell in {cell for cells in rows.values() for cell in cells.values()} & set(CLAIM_OF):
        covered = CLAIM_OF[cell] in done.posture.covered
        assert covered == (CLAIM_OF[cell] not in done.not_covered) == (backend == "namespaces")


def test_the_landlock_tier_refuses_a_read_only_grant_inside_a_writable_place_unless_told_otherwise(
    world: World,
) -> None:
    (world.workspace / "vendor").mkdir()
    with pytest.raises(NotEnforceable, match="read-only-inside"):
        world.environment("landlock", grants=(Grant.ro("vendor"),))
    with world.environment("namespaces", grants=(Grant.ro("vendor"),)) as environment:
        assert environment.run(["touch", "vendor/x"]).exit_code != 0
        assert environment.run(["touch", "x"]).exit_code == 0
