"""A verdict for machines and for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corral.risk.levels import CAUTION, DANGEROUS, SAFE
from corral.risk.verdict import Verdict

if TYPE_CHECKING:
    from corral.risk.approval import Decision

_COLOURS = {SAFE: "\x1b[32m", CAUTION: "\x1b[33m", DANGEROUS: "\x1b[31m"}
_PLAIN = "\x1b[0m"
MAX_PARTS = 50


def to_json(verdict: Verdict, decision: Decision | None = None) -> str:
    """One line of JSON with every part, and what was decided if that was asked."""
    decided = {} if decision is None else {"decision": _decided(decision)}
    return (
        json.dumps(
            {
                **decided,
                "level": str(verdict.level),
                "hardline": verdict.hardline,
                "reasons": list(verdict.reasons),
                "forms": list(verdict.forms),
                "parts": [
                    {
                        "text": part.text,
                        "program": part.program,
                        "level": str(part.level),
                        "hardline": part.hardline,
                        "reasons": list(part.reasons),
                        "forms": list(part.forms),
                    }
                    for part in verdict.parts
                ],
            },
            ensure_ascii=False,
        )
        .encode("utf-8", "replace")
        .decode("utf-8")
    )


def _decided(decision: Decision) -> dict[str, object]:
    fields = ("allowed", "by", "error", "suggestion", "code", "digest")
    return {name: getattr(decision, name) for name in fields}


def to_text(verdict: Verdict, colour: bool = False) -> str:
    """The level, why, and the pieces, worst first. Control characters of the command are never sent to a terminal."""
    head = str(verdict.level) + (" (hardline: never run)" if verdict.hardline else "")
    lines = [
        _painted(head, _COLOURS[verdict.level], colour)
        + (f": {_visible(verdict.reason)}" if verdict.reasons else "")
    ]
    worst_first = sorted(verdict.parts, key=lambda part: -part.level)
    for part in worst_first[:MAX_PARTS]:
        level = _painted(f"{part.level!s:<9}", _COLOURS[part.level], colour)
        lines.append(f"  {level}  {_visible(part.text)}  ({_visible('; '.join(part.reasons))})")
    if len(worst_first) > MAX_PARTS:
        lines.append(f"  and {len(worst_first) - MAX_PARTS} more")
    return "\n".join(lines)


def _painted(text: str, code: str, colour: bool) -> str:
    return f"{code}{text}{_PLAIN}" if colour else text


def _visible(text: str) -> str:
    shown = text if len(text) <= 120 else text[:119] + "…"
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in shown)
