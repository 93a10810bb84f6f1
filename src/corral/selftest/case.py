"""What a case is. Imported outside to list the cases, and inside to run them; standard library only."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Given = dict[str, Any]
    Action = Callable[[Given], object]


class Case:
    """``claim``: the one of corral.claims that promises it; empty: every jail promises it. ``must``: "fail" or "work".
    The action raises if it is refused."""

    def __init__(self, action: Action, claim: str, must: str, tried: str) -> None:
        self.name = action.__name__.replace("_", "-")
        self.action = action
        self.claim = claim
        self.must = must
        self.tried = tried


def must_fail(claim: str, tried: str) -> Callable[[Action], Case]:
    return lambda action: Case(action, claim, "fail", tried)


def must_work(tried: str) -> Callable[[Action], Case]:
    return lambda action: Case(action, "", "work", tried)


def cases_of(module: object) -> list[Case]:
    return [value for value in vars(module).values() if isinstance(value, Case)]


# ---- for the cases ----

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """Of a call through libc: its errno as an OSError."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def outside(given: Given, *parts: str) -> str:
    return os.path.join(given["outside"], *parts)


def inside(given: Given, *parts: str) -> str:
    return os.path.join(given["inside"], *parts)


def write(path: str, flags: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL) -> None:
    fd = os.open(path, flags, 0o600)
    os.write(fd, b"x")
    os.close(fd)


def read(path: str) -> None:
    with open(path, "rb") as file:
        if not file.read():
            raise OSError("there is nothing in it")
