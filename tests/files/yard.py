"""The yard that file tests play in: a root, a place outside with other bytes, and a file half for any policy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.environment.files import FileHalf
from corral.paths.beneath import Anchor
from corral.paths.opening import best_opener, descend
from corral.policy import Policy

if TYPE_CHECKING:
    from corral.paths.opening import Opener

# Both ways to open a path below a directory; every test of the layer runs on each.
OPENERS: dict[str, Callable[[], Opener]] = {"openat2": best_opener, "descent": lambda: descend}

INSIDE, OUTSIDE = b"inside", b"outside"


@dataclass
class Yard:
    root: Path
    outside: Path
    opener: Opener
    anchors: list[Anchor] = field(default_factory=list)

    def anchor(self, path: Path | None = None) -> Anchor:
        self.anchors.append(Anchor(str(path or self.root), opener=self.opener))
        return self.anchors[-1]

    def files(self, *more_roots: Path, policy: Policy | None = None, **options: Any) -> FileHalf:
        anchors = [self.anchor(), *map(self.anchor, more_roots)]
        return FileHalf(anchors, policy or Policy.off(), **options)

    def jailed(self, *globs: str) -> FileHalf:
        return self.files(policy=Policy.workspace_write(writable=list(globs)))

    def file(self, path: str, content: bytes = INSIDE) -> Path:
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content)
        return made

    def link(self, path: str, target: str | os.PathLike[str]) -> Path:
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.symlink_to(target)
        return made

    def below_outside(self) -> list[str]:
        return sorted(str(path.relative_to(self.outside)) for path in self.outside.rglob("*"))


def names_below(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


NOBODY = 65534


def class_raised_by_nobody(action: Callable[[], object]) -> str:
    """The class of what the action raises, or ``""``, done by a user without privileges: ourselves, or, if we are
    root, a child that became nobody. Descriptors that are held stay good in it."""
    if os.geteuid() != 0:
        return _class_raised(action)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.write(writing, _class_raised(action).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


def _class_raised(action: Callable[[], object]) -> str:
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - which one it is, is what the test asks
        return type(error).__name__
    return ""


def give_to_nobody(*paths: Path) -> None:
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, NOBODY, NOBODY)
