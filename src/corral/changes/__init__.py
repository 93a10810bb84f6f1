"""What a jail changed and the host has not seen yet: list, diff, apply, discard.

An overlay keeps its changes in a directory of ours, the upper one. Everything here compares that with the real
directory below it; nothing here knows of jails.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.changes.applying import Applied, apply
    from corral.changes.change import Change, Flag, Node
    from corral.changes.discarding import discard
    from corral.changes.layers import Layers, jail_layers, review_layers
    from corral.changes.marker import begin, end_untouched
    from corral.changes.patch import diff
    from corral.changes.sealing import list_changes, seal, survey

__all__ = [
    "Applied",
    "Change",
    "Flag",
    "Layers",
    "Node",
    "apply",
    "begin",
    "diff",
    "discard",
    "end_untouched",
    "jail_layers",
    "list_changes",
    "review_layers",
    "seal",
    "survey",
]

# Where each name lives. `corral run` needs only the first few, and must not wait for the rest.
_HOMES = {
    "Layers": "layers",
    "jail_layers": "layers",
    "review_layers": "layers",
    "begin": "marker",
    "end_untouched": "marker",
    "seal": "sealing",
    "survey": "sealing",
    "list_changes": "sealing",
    "Change": "change",
    "Flag": "change",
    "Node": "change",
    "diff": "patch",
    "apply": "applying",
    "Applied": "applying",
    "discard": "discarding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(__import__(f"{__name__}.{_HOMES[name]}", fromlist=[name]), name)
