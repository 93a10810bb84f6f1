"""No false alarm on what people type all day."""

from __future__ import annotations

import re

import pytest

from corral.risk import Level, classify
from corral.risk.rules import ALL
from corral.risk.table import Globals, Look, Sharp
from risk.everyday import everyday

ROWS = everyday()


def test_the_corpus_is_large_and_broad() -> None:
    assert len({command for _, _, command in ROWS}) >= 400
    assert len({kind for kind, _, _ in ROWS}) >= 10


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in ROWS}))
def test_nothing_of_an_everyday_project_is_dangerous_and_reading_is_safe(kind: str) -> None:
    alarms = []
    for other, mark, command in ROWS:
        verdict = classify(command)
        if other == kind and (
            verdict.level is Level.DANGEROUS or (mark == "reading") != (verdict.level is Level.SAFE)
        ):
            alarms.append((command, str(verdict.level), verdict.reason))
    assert not alarms


def test_no_rule_is_made_for_one_line_of_the_corpus() -> None:
    """Rows speak of verbs, sub-commands and options; none spells out a line with its operands."""
    lines = {command for _, _, command in ROWS if len(command.split()) > 3}
    for row in ALL:
        if isinstance(row, Globals | Look):
            continue
        for verb in row.verb.split():
            assert not {f"{verb} {path.strip()}" for path in row.sub.split(",")} & lines
        if isinstance(row, Sharp) and row.args:
            assert row.args not in lines | {re.escape(line) for line in lines}
