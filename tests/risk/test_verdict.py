"""Parts, reports, and the cost of importing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest

from corral.risk import Level, classify
from corral.risk.marks import HOLE, SHUT, STAR, Doubt
from corral.risk.report import to_json, to_text
from corral.risk.words import resolve


def test_parts_name_every_simple_command_and_show_which_piece_raised_the_level() -> None:
    verdict = classify("cd src && grep -rn x . | head; rm -rf $(cat list) > log")
    assert [part.program for part in verdict.parts] == ["cd", "grep", "head", "rm", "cat"]
    assert [str(part.level) for part in verdict.parts] == ["safe", "safe", "safe", "dangerous", "safe"]
    assert verdict.parts[3].text == "rm -rf $(cat list) > log"
    assert all(part.reasons for part in verdict.parts)


def test_parts_keep_the_text_of_the_user() -> None:
    verdict = classify("echo 'grüße ☃' && ls äö")
    assert [part.text for part in verdict.parts] == ["echo 'grüße ☃'", "ls äö"]


def test_the_json_report_holds_every_part() -> None:
    loaded = json.loads(to_json(classify("ls; rm -rf /")))
    assert (loaded["level"], loaded["hardline"]) == ("dangerous", True)
    assert [part["program"] for part in loaded["parts"]] == ["ls", "rm"]
    assert loaded["parts"][1]["reasons"]


def test_the_text_report_puts_the_worst_first_and_sends_no_control_characters() -> None:
    text = to_text(classify("ls; rm $'\\e]0;x\\a' '\x1b[31m'"))
    assert text.splitlines()[1].lstrip().startswith("dangerous")
    assert "\x1b" not in text
    assert "\x1b[31m" in to_text(classify("rm x"), colour=True)
    assert "hardline" in to_text(classify("rm -rf /"))


def test_too_many_parts_are_counted_and_the_worst_one_is_kept() -> None:
    verdict = classify("ls;" * 12_000 + "rm x;" + "ls;" * 100)
    assert len(verdict.parts) < 11_000
    assert verdict.level is Level.DANGEROUS
    assert any(part.program == "rm" for part in verdict.parts)
    assert verdict.parts[-1].text.startswith("… ")


def test_importing_loads_neither_the_parser_nor_dataclasses() -> None:
    code = (
        "import sys; import corral.risk; "
        "assert not {'tree_sitter', 'dataclasses', 'asyncio', 'inspect'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_without_the_parser_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['tree_sitter'] = None\n"
        "from corral.risk import ParserMissing, classify\n"
        "try: classify('ls')\n"
        "except ParserMissing as missing: print(missing)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert "pip install 'corral[risk]'" in done.stdout


def test_threads_do_not_mix_their_texts_up() -> None:
    wrong: list[str] = []

    def work(command: str, expected: Level) -> None:
        for _ in range(300):
            if classify(command).level is not expected:
                wrong.append(command)

    rows = [("ls -la | head", Level.SAFE), ("rm -rf x; ls", Level.DANGEROUS), ("cp a b", Level.CAUTION)] * 2
    threads = [threading.Thread(target=work, args=row) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("plain", ["plain"]),
        ("'a b'", ["a b"]),
        ('"a\\$b\\c"', ["a$b\\c"]),
        ("a\\ b", ["a b"]),
        ("$'\\x41\\102\\u0043\\n'", ["ABC\n"]),
        ("a{b,c{d,e}}f", ["abf", "acdf", "acef"]),
        ("{a}", ["{a}"]),
        ("{}", ["{}"]),
        ("a{1..3}", ["a" + HOLE]),
        ("$x", [HOLE]),
        ('"$x"', [SHUT]),
        ("*.py", [STAR + ".py"]),
        ("'*'.py", ["*.py"]),
        ("a${IFS}b", ["a", "b"]),
        ("~/x", ["~/x"]),
        ("$HOME/x", ["~/x"]),
        ("$known", ["value"]),
        ("${known}s", ["values"]),
    ],
)
def test_words_are_resolved_as_bash_does_where_that_is_certain(source: str, words: list[str]) -> None:
    assert resolve(source, {"known": "value"}) == words


@pytest.mark.parametrize(
    "source", ["a b", "a;b", "'open", '"open', "${open", "`x`", "$(x)", "${x@P}", "${a[i]}", "${!x}"]
)
def test_words_that_are_not_certain_are_doubted(source: str) -> None:
    with pytest.raises(Doubt):
        resolve(source, {})
