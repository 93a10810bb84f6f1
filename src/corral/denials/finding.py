"""From the output of a command that failed to what it was refused."""

from __future__ import annotations

import os
import re

from corral.denials.complaint import REASONS
from corral.denials.files import read_file_complaint
from corral.denials.judge import denial_by, judge_address, judge_path, located, rule_against
from corral.denials.remedies import IN_ITS_DIRECTORY
from corral.denials.rights import exists, may
from corral.denials.sockets import (
    listens_here,
    loopback_addresses,
    read_socket_complaint,
    refused_python_socket,
)
from corral.denials.summary import Summary, summary_of
from corral.jail.site import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corral.denials.complaint import Complaint
    from corral.denials.denial import Denial
    from corral.jail.enclosure import Enclosure
    from corral.policy import Policy

# Of a flood of output the end is looked at; of a flood of refusals the first are kept.
LOOKED_AT = 256 * 1024
LONGEST_LINE = 4096
MOST = 16
NOT_EXECUTABLE = 126

THE_NETWORK = "the network"
_WORTH_READING = tuple(
    text.lower()
    for text in (*REASONS, *REASONS.values(), "resolve host", "failed to connect", "connect to host")
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
_ENTERED = re.compile(r"^make(?:\[\d+\])?: Entering directory '(.+)'$", re.MULTILINE)
_CHANGES_TO = re.compile(
    r"(?:(?:^|[;&|(\s])cd\s+|(?:^|\s)(?:-C\s*|--directory[= ]))('[^']+'|\"[^\"]+\"|[^\s;&|()]+)"
)


def find_denials(
    stdout: str | bytes,
    stderr: str | bytes,
    jail: Enclosure | Summary,
    cwd: str,
    argv: Sequence[str] = (),
    exit_code: int | None = None,
) -> tuple[Denial, ...]:
    """What a command that failed was refused. ``cwd``: where it ran. ``argv`` helps with names that are relative to
    a directory it changed to (`tar -C`, `make -C`, `cd`), ``exit_code`` to tell a program that cannot be run (126)
    from a file that cannot be written. Never raises."""
    try:
        return denials_in(stdout, stderr, jail, cwd, argv, exit_code)
    except Exception:  # noqa: BLE001 - a hint that cannot be given must not cost the output it was for
        return ()


def denials_in(
    stdout: str | bytes,
    stderr: str | bytes,
    jail: Enclosure | Summary,
    cwd: str,
    argv: Sequence[str] = (),
    exit_code: int | None = None,
) -> tuple[Denial, ...]:
    texts = [_text(stderr), _text(stdout)]
    complaints = [c for text in texts for c in _complaints(text)]
    sockets = any(map(refused_python_socket, texts))
    if not complaints and not sockets:
        return ()
    summary = jail if isinstance(jail, Summary) else summary_of(jail)
    if not summary.is_jailed:
        return ()
    bases = [cwd, *_directories(argv, texts)]
    files = [c for c in complaints if c.operation != "connect"]
    if exit_code == NOT_EXECUTABLE:
        files = [c for c in files if c.operation or c.reason != "EACCES"]
    found = [d for c in files for d in _file_denials(summary, c, bases)]
    spoken = [c for c in complaints if c.operation == "connect"]
    found += _socket_denials(summary, spoken, sockets, "\n".join((*texts, *argv)))
    return _without_repeats(found)


def attribute(
    text: str | bytes | None, policy: Policy, cwd: str | None = None, *, root: str | None = None
) -> Denial | None:
    """The first denial in output from anywhere, or None: nothing in it, not enforced, or none of our doing. ``root``:
    the workspace, where that is not ``cwd``. Never raises."""
    if not text or policy.mode == "off":
        return None
    from corral.jail.enclosure import Enclosure

    where = os.path.abspath(cwd or root or ".")
    try:
        enclosure = Enclosure(root or where, policy)
        try:
            if not enclosure.choice.enforcing:
                return None
            return next(iter(find_denials(b"", text, enclosure, where)), None)
        finally:
            enclosure.close()
    except Exception:  # noqa: BLE001 - as above
        return None


# ---- reading ----


def _text(output: str | bytes) -> str:
    if isinstance(output, str):
        return output[-LOOKED_AT:]
    return bytes(output[-LOOKED_AT:]).decode("utf-8", "surrogateescape")


def _is_worth_reading(text: str) -> bool:
    lower = text.lower()
    return any(words in lower for words in _WORTH_READING)


def _complaints(text: str) -> list[Complaint]:
    if not _is_worth_reading(text):
        return []
    found = []
    for line in text.split("\n"):
        if len(line) <= LONGEST_LINE and _is_worth_reading(line):
            plain = _COLOUR.sub("", line).strip()
            complaint = read_socket_complaint(plain) or read_file_complaint(plain)
            if complaint is not None and complaint not in found:
                found.append(complaint)
    return found


def _directories(argv: Iterable[str], texts: list[str]) -> list[str]:
    """Where else a relative name may begin."""
    line = " ".join(argv)
    named = [match.strip("'\"") for match in _CHANGES_TO.findall(line)]
    return list(dict.fromkeys([*named, *(found for text in texts for found in _ENTERED.findall(text))]))


# ---- files ----


def _file_denials(summary: Summary, complaint: Complaint, bases: list[str]) -> list[Denial]:
    found = []
    for name in (name for name in complaint.names if "\0" not in name):
        denial = _file_denial(summary, complaint, os.path.join(bases[0], os.path.expanduser(name)))
        if denial is None and not os.path.isabs(name) and complaint.reason != "ENOENT":
            denial = _elsewhere(summary, complaint, name, bases)
        if denial is not None:
            found.append(denial)
    return found


def _elsewhere(summary: Summary, complaint: Complaint, name: str, bases: list[str]) -> Denial | None:
    """The same relative name, in a directory that the command changed to; not if it is explained where it is."""
    here = os.path.join(bases[0], name)
    if exists(here) and not may(here, os.R_OK | os.W_OK):
        return None
    for base in bases[1:]:
        where = os.path.join(bases[0], os.path.expanduser(base))
        if os.path.isdir(where):
            denial = _file_denial(summary, complaint, os.path.join(where, name))
            if denial is not None:
                return denial
    return None


def _file_denial(summary: Summary, complaint: Complaint, path: str) -> Denial | None:
    reason, operation = complaint.reason, str(complaint.operation)
    path = located(summary, path, operation)
    if reason == "ENOENT":
        return _unseen(summary, path, operation or "read")
    if reason in ("EROFS", "EXDEV"):
        return _unwritten(summary, path, operation, reason)
    if operation == "read":
        return _unread(summary, path)
    return (
        _unwritten(summary, path, operation, reason)
        if operation or _meant_to_write(summary, path, reason)
        else None
    )


def _unseen(summary: Summary, path: str, operation: str) -> Denial | None:
    """ "No such file" is ours where the host has one and the jail does not show it."""
    there = path if operation == "read" else os.path.dirname(path)
    if not os.path.lexists(there) or judge_path(summary, there, "read") is None:
        return None
    return judge_path(summary, path, operation)


def _unread(summary: Summary, path: str) -> Denial | None:
    """Owner and mode refuse a read before we do; it is ours only if they would not."""
    if may(path, os.R_OK):
        return judge_path(summary, path, "read")
    inside = any(is_below(path, top) for top in (*summary.roots, *summary.writable))
    if not inside and os.access(path, os.R_OK):
        return denial_by(summary, "capabilities", path, "read")
    return None


def _unwritten(summary: Summary, path: str, operation: str, reason: str) -> Denial | None:
    denial = judge_path(summary, path, operation or "write")
    if denial is None:
        is_copied = any(is_below(path, top) for top in summary.copied)
        if reason == "EXDEV" and is_copied and os.path.isdir(path):
            return denial_by(summary, "copied", path, "rename")
        return None
    if summary.has_own_view and (reason == "EXDEV" or operation == "link"):
        return denial_by(summary, "crossing", path, operation or "rename")
    if not operation and denial.grant is not None and os.path.isfile(path) and not denial.note:
        return denial.replace(note=IN_ITS_DIRECTORY)
    return denial


def _meant_to_write(summary: Summary, path: str, reason: str) -> bool:
    """For a line that does not say what was tried: only what is missing, or what this user may write outside, can have
    been refused by us. Everything else is refused by owner and mode, or was a read or an exec."""
    if reason == "EPERM" and exists(path) is not True:
        return False
    there = exists(path)
    if summary.has_own_view and there and not rule_against(summary, path, "read"):
        return False  # what is there and shown is on a read-only mount: our answer to a write is EROFS
    return there is not None and (not there or may(path, os.W_OK))


# ---- the network ----


def _socket_denials(
    summary: Summary, complaints: list[Complaint], python_socket: bool, text: str
) -> list[Denial]:
    addressed = [c for c in complaints if c.host and _is_ours(summary, c.reason, c.host, c.port)]
    whats = [_address(c.host, c.port) for c in addressed]
    if not whats:
        whats = _unnamed(summary, [c.reason for c in complaints if not c.host], python_socket, text)
    with_port = {what.rpartition(":")[0] for what in whats if ":" in what}
    found = [judge_address(summary, what) for what in dict.fromkeys(whats) if what not in with_port]
    return [denial for denial in found if denial is not None]


def _unnamed(summary: Summary, reasons: list[str], python_socket: bool, text: str) -> list[str]:
    if python_socket or any(reason != "ECONNREFUSED" for reason in reasons):
        return [THE_NETWORK]
    if not reasons:
        return []
    aimed = loopback_addresses(text)
    return [_address(h, p) for h, p in aimed if _is_ours(summary, "ECONNREFUSED", h, p)][:1]


def _is_ours(summary: Summary, reason: str, host: str, port: str) -> bool:
    """In a network of its own a jail reaches itself. What it is refused there is ours only if the host listens."""
    is_loopback = host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")
    if summary.has_own_view and (is_loopback or reason == "ECONNREFUSED"):
        return is_loopback and port.isdigit() and listens_here(port)
    return reason != "ECONNREFUSED"


def _address(host: str, port: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown


# ---- one of each ----


def _without_repeats(found: list[Denial]) -> tuple[Denial, ...]:
    """One denial for each grant that is missing; thousands of files in one directory are one."""
    kept: dict[tuple[str, str, str], Denial] = {}
    for denial in found:
        is_file = denial.operation != "connect"
        same = denial.grant.api if is_file and denial.grant is not None else denial.what
        kept.setdefault((denial.rule, denial.operation if not is_file else "", same), denial)
    return tuple(kept.values())[:MOST]
