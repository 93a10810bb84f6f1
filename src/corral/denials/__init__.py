"""Denials: what a failed command was refused, by which rule, and the grant that would allow it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials.denial import WRITE_JAIL_HINT, Denial, Remedy
    from corral.denials.finding import attribute, find_denials
    from corral.denials.summary import Summary, summary_json, summary_of

# Imported when first asked for: `corral run` writes a summary, and must not pay for reading messages.
_HOMES = {
    **dict.fromkeys(("WRITE_JAIL_HINT", "Denial", "Remedy"), "corral.denials.denial"),
    **dict.fromkeys(("attribute", "find_denials"), "corral.denials.finding"),
    **dict.fromkeys(("Summary", "summary_json", "summary_of"), "corral.denials.summary"),
}

__all__ = [
    "WRITE_JAIL_HINT",
    "Denial",
    "Remedy",
    "Summary",
    "attribute",
    "find_denials",
    "summary_json",
    "summary_of",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral.denials' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
