"""`corral why PATH|HOST:PORT`: would it be refused, by which rule, what would allow it. Runs nothing.

Inside a jail the answer comes from the summary that ``$CORRAL`` names; outside from the policy, with the options of
`corral run`.
"""

from __future__ import annotations

import os
import re

from corral.cli.options import Parsed, help_text, parse
from corral.denials.denial import printable
from corral.denials.judge import judge_address, judge_path, located, rule_against
from corral.denials.rights import exists, may
from corral.denials.summary import VARIABLE, read_summary, summary_of
from corral.errors import PolicyError
from corral.jail.scene import TEMPORARY
from corral.jail.site import is_below
from corral.policy import HOME_MODES
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials.denial import Denial
    from corral.denials.summary import Summary

USAGE = "usage: corral why PATH|HOST:PORT [OPTION …]     exit code 0: allowed, 1: refused; the options are those of run"
_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.%\w]+)\]|(?P<host>[^\s/:\[\]]+)):(?P<port>\d{1,5})")
_SCHEMES = {"http": "80", "https": "443", "ssh": "22", "git": "9418", "ftp": "21"}
_OUTPUT = ("--json", "--help", "--quiet")


class Answer(Record):
    """What the policy says to one operation; ``note`` is about an allowed one."""

    operation: str
    denial: Denial | None
    note: str = ""


def main(subcommand: str, words: list[str]) -> int:
    parsed = _parse(words)
    if parsed.has("--help"):
        print(help_text(USAGE))
        return 0
    if len(parsed.words) != 1 or not parsed.words[0]:
        raise PolicyError("corral why takes one path or one HOST:PORT; try --help")
    summary, cwd, outside = _jail(parsed)
    target = parsed.words[0]
    address = address_of(target)
    if address is not None:
        what, answers = address, [Answer("connect", judge_address(summary, address))]
    else:
        what = os.path.join(cwd, os.path.expanduser(target))
        answers = [path_answer(summary, what, operation, outside=outside) for operation in ("read", "write")]
        what = located(summary, what, "write")
    print(as_json(summary, what, answers) if parsed.has("--json") else as_text(summary, what, answers))
    return 1 if any(answer.denial is not None for answer in answers) else 0


def _parse(words: list[str]) -> Parsed:
    """Options may stand before and after the one word."""
    first = parse(words)
    second = parse(first.words[1:])
    return Parsed((*first.options, *second.options), (*first.words[:1], *second.words))


def _jail(parsed: Parsed) -> tuple[Summary, str, bool]:
    """The jail that is asked about, where relative paths begin, and whether we stand outside it."""
    inside = os.environ.get(VARIABLE)
    if inside:
        policy_options = [name for name, _ in parsed.options if name not in _OUTPUT]
        if policy_options:
            raise PolicyError(f"inside a jail its policy is what it is; leave out {policy_options[0]}")
        return read_summary(inside), os.getcwd(), False
    from corral.cli.setup import prepare

    enclosure = prepare("why", parsed.replace(words=())).enclosure
    try:
        return summary_of(enclosure), enclosure.root.path, True
    finally:
        enclosure.close()


def address_of(target: str) -> str | None:
    """``host:port`` of an address or a URL; None for a path. A file of that name is a path."""
    scheme, is_url, rest = target.partition("://")
    if is_url and "/" not in scheme:
        place = rest.split("/")[0].rpartition("@")[2]
        port = _SCHEMES.get(scheme, "")
        target = place if not port or _ADDRESS.fullmatch(place) else f"{place}:{port}"
    elif "/" in target or os.path.lexists(target):
        return None
    found = _ADDRESS.fullmatch(target)
    if found is None:
        if is_url:
            raise PolicyError(f"no host and port in {target}; write it like example.com:443")
        return None
    if int(found["port"]) > 65535:
        raise PolicyError(f"no such port: {found['port']}; they go from 1 to 65535")
    return target


def path_answer(summary: Summary, path: str, operation: str, *, outside: bool) -> Answer:
    where = located(summary, path, operation)
    denial = judge_path(summary, where, operation, outside=outside)
    return Answer(operation, denial, "" if denial else _note(summary, where, operation, outside=outside))


def _note(summary: Summary, path: str, operation: str, *, outside: bool) -> str:
    """What else there is to know of something that the policy allows."""
    if operation == "write" and rule_against(summary, path, "read").startswith("private"):
        kept = summary.mode in HOME_MODES and not any(is_below(path, top) for top in TEMPORARY)
        return "it goes to a directory of the jail's own" + ("" if kept else ", and is gone with it")
    copies = [copy for copy in summary.copied if is_below(path, copy)]
    if operation == "write" and copies and not _is_real(summary, path, max(copies, key=len)):
        return "it goes to the jail's copy; `corral changes` shows and applies it"
    if not outside or not summary.is_jailed:
        return ""
    wanted = os.R_OK if operation == "read" else os.W_OK
    if exists(path) is None or (exists(path) and not may(path, wanted)):
        return "your own permissions do not allow it"
    return ""


def _is_real(summary: Summary, path: str, copy: str) -> bool:
    """Whether something that is granted as it is lies between the copy and the path."""
    return any(is_below(path, top) and len(top) > len(copy) for top in summary.writable)


# ---- telling ----


def as_json(summary: Summary, what: str, answers: list[Answer]) -> str:
    import json

    told = []
    for answer in answers:
        denial = answer.denial
        grant = denial.grant if denial is not None else None
        told.append(
            {
                "operation": answer.operation,
                "allowed": denial is None,
                "rule": denial.rule if denial is not None else None,
                "reason": denial.reason if denial is not None else None,
                "grant": {name: getattr(grant, name) for name in grant._fields}
                if grant is not None
                else None,
                "note": (denial.note if denial is not None else answer.note) or None,
            }
        )
    jail = {"mode": summary.mode, "backend": summary.backend, "network": summary.network}
    return json.dumps({"what": what, **jail, "answers": told}, indent=2)


def as_text(summary: Summary, what: str, answers: list[Answer]) -> str:
    held = f"held by {summary.backend}" if summary.is_jailed else "NOT JAILED"
    lines = [f"{what}   (mode {summary.mode}, {held})"]
    for answer in answers:
        denial = answer.denial
        if denial is None:
            note = f"; {answer.note}" if answer.note else ""
            lines.append(f"  {answer.operation:<8} allowed{note}")
            continue
        lines.append(f"  {answer.operation:<8} refused by rule `{denial.rule}`: {denial.reason}")
        lines += [f"           {denial.note}"] if denial.note else []
        if denial.grant is None:
            lines.append("           no grant allows it")
            continue
        forms = (("run", denial.grant.flag), ("config", denial.grant.config), ("Python", denial.grant.api))
        shown = [f"{name + ':':<8} {form}" for name, form in forms if form]
        lines += [f"  {'allow it' if not n else '':<8} {form}" for n, form in enumerate(shown)]
    return "\n".join(map(printable, lines))
