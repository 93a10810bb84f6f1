"""`corral risk 'COMMAND LINE'`: a verdict, readable on a terminal, JSON otherwise. Runs nothing."""

from __future__ import annotations

import sys

from corral.errors import PolicyError


def main(subcommand: str, words: list[str]) -> int:
    if words and words[0] in ("-h", "--help"):
        print("usage: corral risk [--json] 'COMMAND LINE'     advice, never the wall: the jail is the wall")
        return 0
    as_json = "--json" in words[:1]
    words = words[1:] if as_json else words
    if len(words) != 1:
        raise PolicyError("corral risk takes one command line, in a single argument")
    from corral.risk import classify
    from corral.risk.report import to_json, to_text

    verdict = classify(words[0])
    terminal = sys.stdout.isatty()
    print(to_text(verdict, colour=terminal) if terminal and not as_json else to_json(verdict))
    return 0
