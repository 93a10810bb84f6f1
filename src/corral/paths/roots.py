"""The roots of an environment, each held once."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.paths.beneath import Anchor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.paths.opening import Opener


def hold_roots(paths: Iterable[str], *, opener: Opener | None = None) -> tuple[Anchor, ...]:
    """In order, without those that are the same directory by another name. One that is missing, or no directory,
    is a PolicyError, and then none is held."""
    held: dict[tuple[int, int], Anchor] = {}
    try:
        for path in paths:
            anchor = _hold(path, opener)
            info = os.fstat(anchor.fd)
            if held.setdefault((info.st_dev, info.st_ino), anchor) is not anchor:
                anchor.close()
    except BaseException:
        for anchor in held.values():
            anchor.close()
        raise
    return tuple(held.values())


def _hold(path: str, opener: Opener | None) -> Anchor:
    try:
        return Anchor(os.path.expanduser(path), opener=opener)
    except OSError as error:
        raise PolicyError(f"root {path}: {error.strerror}", path=path, rule="roots") from None
    except ValueError:
        raise PolicyError("root with a NUL byte", path=path, rule="roots") from None
