"""The judge: what a jail says to one path or address. It asks the summary, never the text that complained."""

from __future__ import annotations

import os

from corral.denials.denial import Denial
from corral.denials.remedies import remedy
from corral.denials.summary import USABLE_DEVICES
from corral.jail.site import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials.summary import Summary

# Changes of a name, not of what it leads to: the last link of the path is not followed.
OF_THE_NAME = ("remove", "rename", "link", "replace")
# What people read for an operation that only our tables tell apart.
_SHOWN_AS = {"replace": "write"}


def located(summary: Summary, path: str, operation: str) -> str:
    """The canonical path as the jail sees it. In its own directories the host's links do not count."""
    plain = os.path.normpath(path)
    if _is_device(plain) or _own_directory(summary, plain):
        return plain
    if operation in OF_THE_NAME:
        parent, name = os.path.split(plain)
        return os.path.join(os.path.realpath(parent), name)
    return os.path.realpath(plain)


def judge_path(summary: Summary, path: str, operation: str, *, outside: bool = True) -> Denial | None:
    """The refusal of this operation on a located path, or None. ``outside``: this process sees what the host has, so
    grants can be checked against it."""
    rule = rule_against(summary, path, operation)
    return denial_by(summary, rule, path, operation, outside=outside) if rule else None


def denial_by(summary: Summary, rule: str, path: str, operation: str, *, outside: bool = True) -> Denial:
    grant, note = remedy(summary, rule, path, operation, outside=outside)
    return Denial(path, _SHOWN_AS.get(operation, operation), rule, summary.backend, grant, note)


def judge_address(summary: Summary, what: str) -> Denial | None:
    if not summary.is_jailed or summary.network != "off":
        return None
    grant, note = remedy(summary, "network off", what, "connect")
    return Denial(what, "connect", "network off", summary.backend, grant, note)


def rule_against(summary: Summary, path: str, operation: str) -> str:
    """The rule that refuses, or nothing."""
    if not summary.is_jailed or _is_device(path):
        return ""
    holder = (
        os.path.dirname(path) if operation in OF_THE_NAME else path
    )  # a name is its directory's to change
    writable, _ = _deepest(holder, tuple((top, "") for top in summary.writable))
    hidden, rule = _deepest(path, summary.hidden)
    if len(hidden) > len(writable):
        return rule if operation == "read" or hidden not in summary.anew else ""
    own = _own_directory(summary, path)
    if own and (operation == "read" or own not in summary.private):
        return "devices" if own == "/dev" else f"private {own}"
    if own or operation == "read":
        return ""
    narrowed, rule = _deepest(path, summary.read_only)
    if len(narrowed) > len(writable):
        return rule or _outside(summary, path)
    return "" if writable else _outside(summary, path)


def _outside(summary: Summary, path: str) -> str:
    if any(is_below(path, root) for root in summary.roots):
        if summary.mode == "read-only":
            return "mode read-only"
        if summary.globs is not None:
            return f"writable {', '.join(summary.globs)}"
    return "outside"


def _own_directory(summary: Summary, path: str) -> str:
    """The directory of the jail's own that this path lies in, unless something of the host is put back there."""
    own, _ = _deepest(path, tuple((top, "") for top in (*summary.private, *summary.emptied)))
    put_back = (*summary.writable, *(top for top, _ in summary.read_only), *summary.shown)
    back, _ = _deepest(path, tuple((top, "") for top in put_back))
    return own if len(own) > len(back) else ""


def _deepest(path: str, tops: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    found = [(top, rule) for top, rule in tops if is_below(path, top)]
    return max(found, key=lambda pair: len(pair[0]), default=("", ""))


def _is_device(path: str) -> bool:
    return any(is_below(path, device) for device in USABLE_DEVICES)
