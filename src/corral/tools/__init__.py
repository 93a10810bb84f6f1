"""The engine agents talk to: a request comes in, a response goes out, and files and commands obey one policy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.tools.engine import Engine as Engine
    from corral.tools.envelope import encode as encode

# Imported when first asked for: a tool's own module must not pay for the engine, nor the other way round.
_HOMES = {"Engine": "corral.tools.engine", "encode": "corral.tools.envelope"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral.tools' has no attribute {name!r}")
    return getattr(__import__(_HOMES[name], fromlist=[name]), name)
