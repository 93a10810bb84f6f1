"""The second opinion raises and never lowers. The real shfmt is used where it is installed, else a stand-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.risk import Level, classify
from corral.risk.second import commands_seen, find_shfmt


def speaking(directory: Path, text: str, code: int = 0) -> str:
    program = directory / "shfmt"
    program.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return str(program)


def call(*words: str) -> str:
    parts = [{"Parts": [{"Type": "Lit", "Value": word}]} for word in words]
    return json.dumps({"Type": "File", "Stmts": [{"Cmd": {"Type": "CallExpr", "Args": parts}}]})


def test_what_only_the_second_parser_sees_raises_the_level(tmp_path: Path) -> None:
    verdict = classify("ls", shfmt=speaking(tmp_path, call("rm", "-rf", "/")))
    assert verdict.level is Level.DANGEROUS
    assert verdict.hardline


def test_it_never_lowers_the_level(tmp_path: Path) -> None:
    assert classify("rm x", shfmt=speaking(tmp_path, call("ls"))).level is Level.DANGEROUS


@pytest.mark.parametrize(("text", "code"), [("", 1), ("no json", 0), ("{}", 1)])
def test_a_line_it_cannot_read_is_not_safe(tmp_path: Path, text: str, code: int) -> None:
    assert classify("ls", shfmt=speaking(tmp_path, text, code)).level is Level.CAUTION


def test_a_program_that_is_gone_counts_as_not_understood(tmp_path: Path) -> None:
    assert classify("ls", shfmt=str(tmp_path / "missing")).level is Level.CAUTION


def test_the_real_one_agrees_on_plain_lines() -> None:
    shfmt = find_shfmt()
    if shfmt is None:
        return
    assert commands_seen(shfmt, "ls -l 'a b' | grep \"x\"; f $y z") == [
        ["f"],
        ["grep", "x"],
        ["ls", "-l", "a b"],
    ]
    assert classify("ls | head", shfmt=shfmt).level is Level.SAFE
    assert classify("coproc N { rm x; }", shfmt=shfmt).level is Level.DANGEROUS
