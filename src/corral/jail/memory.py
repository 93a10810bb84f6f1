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
    """What is known under this key, a tuple of plain values, or None."""
    known = _known.setdefault(kind, {})
    if key not in known and state is not None:
        for seen, value in _load(os.path.join(state, kind)).items():
            known.setdefault(seen, value)
    found = known.get(key)
    return found if isinstance(found, tuple) else None


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
        _remove(beside)


def forget(state: str | None = None) -> None:
    """Ask again, whatever was known, here and in the state directory."""
    for kind in {*_known, "host", "proofs"} if state is not None else ():
        _remove(os.path.join(str(state), kind))
    _known.clear()


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # was not there, or is not ours to remove


def _load(path: str) -> dict[Any, Any]:
    try:
        with open(path, "rb") as file:
            found = marshal.loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
