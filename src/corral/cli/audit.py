"""`corral audit [show|verify]`: what was called and run, and whether the record of it is whole."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from corral.audit import DIRECTORY
from corral.audit.reading import Report, last_records, verify
from corral.cli import harmless
from corral.errors import PolicyError
from corral.state import state_directory

USAGE = """usage: corral audit [show] [-n N] [--json]          the last N calls and runs (default 20)
       corral audit verify [--expect HASH] [--json]  is the record whole?

  -n N            how many records
  --json          JSON lines, on a terminal too
  --expect HASH   a head that `verify` printed earlier must still be part of the record

Exit code of verify: 0 the record is whole, 1 it is not."""
VERBS = ("show", "verify")
VALUED = ("-n", "--expect")
COLUMNS = ("time", "kind", "tool", "decision", "risk", "code", "exit", "bytes", "posture")


def main(subcommand: str, words: list[str]) -> int:
    verb, options = _parsed(words)
    if "--help" in options:
        print(USAGE)
        return 0
    directory = os.path.join(state_directory(), DIRECTORY)
    as_json = "--json" in options or not sys.stdout.isatty()
    if verb == "verify":
        return _verify(verify(directory, options.get("--expect")), as_json)
    for record in last_records(directory, _count(options.get("-n", "20"))):
        print(json.dumps(record, separators=(",", ":")) if as_json else harmless(_row(record)))
    return 0


def _parsed(words: list[str]) -> tuple[str, dict[str, str]]:
    from corral.policy import nearest

    options: dict[str, str] = {}
    verbs: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-h", "--help", "--json"):
            options["--help" if word == "-h" else word] = ""
        elif name in VALUED:
            if not equals and not rest:
                raise PolicyError(f"{name} needs a value; try --help")
            options[name] = value if equals else rest.pop(0)
        elif word in VERBS and not verbs:
            verbs.append(word)
        else:
            known = (*VERBS, *VALUED, "--json", "--help")
            raise PolicyError(f"corral audit does not know {word!r}{nearest(word, known)}; try --help")
    return (verbs[0] if verbs else "show"), options


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise PolicyError(f"-n takes a number from 1 on, not {text!r}")
    return int(text)


def _row(record: dict[str, Any]) -> str:
    return "  ".join(str(record[name]) for name in COLUMNS if name in record)


def _verify(report: Report, as_json: bool) -> int:
    if as_json:
        fields = {name: getattr(report, name) for name in report._fields}
        print(json.dumps({"whole": report.whole, **fields}, separators=(",", ":")))
    else:
        for problem in report.problems:
            print(harmless(problem))
        what = (
            f"{report.records} records, {report.first} to {report.last}" if report.records else "no records"
        )
        print(f"{'whole' if report.whole else 'NOT WHOLE'}: {what}; head {report.head}")
    return 0 if report.whole else 1
