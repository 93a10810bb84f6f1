"""What was found out about this host, kept between runs: in this process, and in a file of the state directory."""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 64
_known: dict[str, dict[Any, Any]] = {}


def recall(kind: str, key: Any, state: str | None) -> Any:
    """What is known under this key, or None."""
    known = _known.setdefault(kind, {})
    if key not in known and state is not None:
        for found, value in _load(os.path.join(state, kind)).items():
            known.setdefault(found, value)
    return known.get(key)


def remember(kind: str, key: Any, value: Any, state: str | None) -> None:
    """Plain data only. A state directory that is hidden or read-only (nested runs) just does not keep it."""
    _known.setdefault(kind, {})[key] = value
    if state is None:
        return
    path = os.path.join(state, kind)
    kept = {**_load(path), key: value}
    newest = dict(list(kept.items())[-LIMIT:])
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(marshal.dumps(newest))
        os.replace(beside, path)
    except OSError:
        return


def forget() -> None:
    """For this process: ask again, whatever was known."""
    _known.clear()


def _load(path: str) -> dict[Any, Any]:
    try:
        with open(path, "rb") as file:
            found = marshal.loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
