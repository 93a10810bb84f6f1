"""A complaint: what one line of a tool's output says was refused, before anybody has judged whether it was us."""

from __future__ import annotations

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    # "replace": a new file takes the place of the old one, so the directory must be writable. "": it does not say.
    Operation = Literal["", "write", "replace", "remove", "rename", "link", "read", "connect"]

# What the C library calls an error, and the symbol of it.
REASONS: dict[str, str] = {
    "Permission denied": "EACCES",
    "Operation not permitted": "EPERM",
    "Read-only file system": "EROFS",
    "Invalid cross-device link": "EXDEV",
    "No such file or directory": "ENOENT",
    "Network is unreachable": "ENETUNREACH",
    "Connection refused": "ECONNREFUSED",
    "Address family not supported by protocol": "EAFNOSUPPORT",
    "Temporary failure in name resolution": "EAI_AGAIN",
}
FILE_REASONS = ("EACCES", "EPERM", "EROFS", "EXDEV", "ENOENT")
_LOWER = {text.lower(): symbol for text, symbol in REASONS.items()}


class Complaint(Record):
    """``names`` as printed, relative ones included; or ``host`` and ``port``, empty where the line has none."""

    reason: str
    operation: Operation
    names: tuple[str, ...] = ()
    host: str = ""
    port: str = ""


def symbol_of(text: str) -> str:
    """The symbol of a reason in either spelling, and of a symbol itself."""
    return _LOWER.get(text.lower(), text)


def texts_of(symbols: tuple[str, ...]) -> str:
    """A regular expression for the texts of these reasons."""
    return "|".join(text for text, symbol in REASONS.items() if symbol in symbols)
