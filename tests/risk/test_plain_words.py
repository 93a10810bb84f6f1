"""Commands as a config writes them are read exactly as bash reads them, or not at all."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.commands import NEVER_ALLOWED, plain_words
from corral.risk.interpreters import INTERPRETERS
from corral.risk.parse import parse
from corral.risk.rules.wrapping import WRAPPERS
from corral.risk.user import as_parsed

TEXT = st.text("ab=~/ '\"\\$`*?[]{}()<>|&;#!\n\t-ü", max_size=12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rm -rf build", ("rm", "-rf", "build")),
        ("  a\tb ", ("a", "b")),
        ('a \'b c\' "d\\"\\x" e\\ f', ("a", "b c", 'd"\\x', "e f")),
        ("a '' ~/x ~ x=1 'ü'ü", ("a", "", "~/x", "~", "x=1", "üü")),
        ("'if' a", ("if", "a")),
        ("find . -exec ls \\;", ("find", ".", "-exec", "ls", ";")),
    ],
)
def test_plain_commands(text: str, words: tuple[str, ...]) -> None:
    assert plain_words(text) == words


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "a $x",
            'a "$x"',
            "a `b`",
            'a "`b`"',
            "a*",
            "a ?",
            "a [b]",
            "a {b,c}",
            "a; b",
            "a\nb",
            "a | b",
        ),
        *(
            "a > b",
            "a &",
            "x=1 a",
            "x=1",
            "a #b",
            "a 'b",
            'a "b',
            "a\\",
            "a \\\n b",
            "a '~/b'",
            "a \\~",
            "a ~b",
        ),
        *('""\\;', "a\\;", "a b\\|c"),
        *("a b~", "if a", "time a", "! a", "'' a", "a!", "a\rb", "a" * 10_001),
    ],
)
def test_everything_else_is_none(text: str) -> None:
    assert plain_words(text) is None


@settings(database=None, deadline=None, max_examples=300)
@given(TEXT)
def test_what_is_plain_means_the_same_to_the_parser(text: str) -> None:
    words = plain_words(text)
    if words is None:
        return
    script = parse(text)
    (command,) = script.commands
    assert not script.doubts
    assert not command.redirections
    assert not command.assignments
    assert command.words == [as_parsed(word) for word in words]


@settings(database=None, deadline=None, max_examples=60)
@given(st.lists(TEXT, min_size=20, max_size=40))
def test_what_is_plain_means_the_same_to_bash(texts: list[str]) -> None:
    plain = [(text, words) for text in texts if (words := plain_words(f"show {text}")) is not None]
    script = 'show() { printf \'%s\\0\' "$#" "$@"; }\n' + "".join(f"show {text}\n" for text, _ in plain)
    done = subprocess.run(
        ["bash", "--norc"], input=script.encode(), capture_output=True, check=True, env={"HOME": "~"}
    )
    expected = [part for _, words in plain for part in (str(len(words) - 1), *words[1:])]
    assert done.stdout.decode().split("\0")[:-1] == expected


def test_no_program_that_runs_its_arguments_can_be_allowed_by_its_name() -> None:
    interpreters = {verb for row in INTERPRETERS for verb in row.verbs.split()}
    wrappers = {verb for row in WRAPPERS if not row.sub for verb in row.verb.split()}
    keywords = {"!", "do", "elif", "else", "if", "then", "until", "while"}
    assert interpreters | wrappers <= NEVER_ALLOWED | keywords
    assert all(plain_words(f"{word} a") is None for word in keywords)
