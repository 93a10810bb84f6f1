"""Denials: what a failed command was refused, by which rule, and the grant that would allow it."""

from __future__ import annotations

from corral.denials.denial import WRITE_JAIL_HINT, Denial, Remedy
from corral.denials.finding import attribute, find_denials
from corral.denials.summary import Summary, summary_json, summary_of

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
