"""Users raise by verb and lower by exact command."""

from __future__ import annotations

import pytest

from corral.risk import BadRule, Level, Rules, classify


def test_a_row_raises_every_use_of_a_verb_however_it_is_wrapped() -> None:
    rules = Rules.from_rows([{"verb": "frob", "level": "dangerous", "reason": "talks to production"}])
    for command in (
        "frob",
        "/usr/bin/frob x",
        "ls && frob",
        "env frob",
        "bash -c 'frob x'",
        "xargs frob",
        "$(frob)",
    ):
        verdict = classify(command, rules)
        assert verdict.level is Level.DANGEROUS
    assert "talks to production" in classify("frob", rules).reason


def test_a_row_can_look_at_options_and_arguments() -> None:
    rules = Rules.from_rows(
        [
            {"verb": "cp", "options": "-f --force", "level": "dangerous", "reason": "overwrites"},
            {"verb": "cat", "args": "*.env", "level": "dangerous", "reason": "secrets"},
        ]
    )
    assert classify("cp a b", rules).level is Level.CAUTION
    assert classify("cp -rf a b", rules).level is Level.DANGEROUS
    assert classify("cp --forc a b", rules).level is Level.DANGEROUS
    assert classify("cat a", rules).level is Level.SAFE
    assert classify("cat x/.env", rules).level is Level.DANGEROUS


def test_a_raising_row_never_lowers() -> None:
    rules = Rules.from_rows([{"verb": "rm", "level": "caution", "reason": "fine here"}])
    assert classify("rm x", rules).level is Level.DANGEROUS


@pytest.mark.parametrize(
    "command",
    [
        "make deploy now",
        "make deploy; rm x",
        "make deploy > /etc/x",
        "LD_PRELOAD=./x make deploy",
        "sudo make deploy",
        "./make deploy",
        "make $x",
        "make deplo?",
        "cd / && make deploy",
        "(cd /; make deploy)",
        "for HOME in /; do make deploy; done",
        "make() { rm x; }; make deploy",
        "env -C / make deploy",
        "ssh host make deploy",
        "bash -c 'make deploy'",
        "make deploy # now",
    ],
)
def test_an_exact_row_lowers_its_own_command_and_nothing_around_it(command: str) -> None:
    rules = Rules.from_rows([{"exact": "make deploy", "level": "safe", "reason": "mine"}])
    assert classify("make deploy", rules).level is Level.SAFE
    assert classify("make 'deploy'", rules).level is Level.SAFE
    assert classify(command, rules).level >= classify(command).level


@pytest.mark.parametrize("command", ["cd / && rm -rf ~/build", "HOME=/; rm -rf ~/build", "rm -rf '~/build'"])
def test_an_exact_row_never_reaches_another_directory(command: str) -> None:
    rules = Rules.from_rows([{"exact": "rm -rf ~/build", "level": "caution"}])
    assert classify("rm -rf ~/build", rules).level is Level.CAUTION
    assert classify("rm  -rf   ~/build", rules).level is Level.CAUTION
    assert classify(command, rules).level is Level.DANGEROUS


def test_an_exact_row_that_raises_does_so_wherever_its_command_stands() -> None:
    rules = Rules.from_rows([{"exact": "make deploy", "level": "dangerous", "reason": "to production"}])
    for command in ("make deploy", "cd x && make deploy", "env make deploy", "bash -c 'make deploy'"):
        assert classify(command, rules).level is Level.DANGEROUS
    assert classify("make test", rules).level is Level.CAUTION


def test_rows_know_names_that_are_not_ascii() -> None:
    rules = Rules.from_rows(
        [
            {"verb": "größe", "args": "*ß", "level": "dangerous", "reason": "grüße"},
            {"exact": "cp a ☃", "level": "safe"},
        ]
    )
    assert classify("größe naß", rules).reason == "grüße"
    assert classify("größe x", rules).level is Level.CAUTION
    assert classify("cp a ☃", rules).level is Level.SAFE


@pytest.mark.parametrize("command", ["cat $x", "cat $(ls)", "cat *", "cat " + "x" * 5000])
def test_an_argument_that_is_not_known_may_be_the_one_a_row_is_about(command: str) -> None:
    rules = Rules.from_rows([{"verb": "cat", "args": "*.env", "reason": "secrets"}])
    assert classify("cat x", rules).level is Level.SAFE
    assert classify(command, rules).level is Level.CAUTION


def test_nothing_lowers_a_hardline_command() -> None:
    rules = Rules.from_rows([{"exact": "rm -rf /", "level": "safe", "reason": "no"}])
    assert classify("rm -rf /", rules).hardline


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"verb": "x", "level": "safe", "reason": "y"}, "can only raise"),
        ({"verb": "x", "level": "bad", "reason": "y"}, "is no level"),
        ({"verb": "x", "levle": "caution", "reason": "y"}, "'levle' is no key"),
        ({"verb": "x", "reason": "y", "options": "force"}, "names like -f"),
        ({"verb": "/bin/x", "reason": "y"}, "bare name"),
        ({"verb": "x y", "reason": "y"}, "bare name"),
        ({"verb": "x", "reason": "a\nb"}, "one line"),
        ({"verb": "x", "reason": "y", "refuse": True, "level": "caution"}, "above every level"),
        ({"verb": "x", "exact": "x y", "level": "safe", "reason": "y"}, "not both"),
        ({"reason": "y"}, "needs verb or exact"),
        ({"exact": "a b"}, "needs a level"),
        ({"exact": "a b", "level": "safe", "args": "*"}, "goes with verb"),
        ({"exact": "a '~/b'", "level": "safe"}, "one plain command"),
        ({"verb": "x", "reason": "y", "refuse": "yes"}, "true or false"),
        ({"verb": "x"}, "needs a reason"),
        ({"verb": 1, "reason": "y"}, "verb must be a text"),
        ({"exact": "a; b", "level": "safe"}, "one plain command"),
        ({"exact": "a $x", "level": "safe"}, "one plain command"),
        ({"exact": "a *", "level": "safe"}, "one plain command"),
        ({"exact": "a > b", "level": "safe"}, "one plain command"),
        ({"exact": "x=1 a", "level": "safe"}, "one plain command"),
        ({"exact": "a 'b", "level": "safe"}, "one plain command"),
    ],
)
def test_a_wrong_row_is_refused_by_number_and_cause(row: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadRule, match=f"risk rule 2: .*{complaint}"):
        Rules.from_rows([{"verb": "ok", "reason": "fine"}, row])
