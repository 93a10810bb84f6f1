"""Quoting, splitting, wrapping, joining, substituting or here-doc'ing a command never lowers its level."""

from __future__ import annotations

import shlex
import string
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.risk import Level, classify
from risk.everyday import everyday

PLAIN = [
    "ls -la",
    "cat f",
    "git status",
    "git log --oneline",
    "cp a b",
    "foobar --x",
    "sed -i s/x/y/ f",
    "git push",
    "sort -o f g",
    "curl u -o f",
    "rm f",
    "rm -rf build",
    "rm -rf /",
    "sudo ls",
    "kill -9 1234",
    "git push --force",
    "git reset --hard",
    "find . -delete",
    "dd if=a of=b",
    "chmod -R 777 /",
    "python3 -c x",
    "docker system prune",
    "kubectl delete pod x",
    "psql -c 'drop table x'",
    "tar xf a --to-command=x",
    "shutdown now",
]
LITERAL = [command for command in PLAIN if "'" not in command]

thorough = settings(max_examples=150, deadline=None, derandomize=True)


def rank(command: str) -> tuple[int, bool]:
    verdict = classify(command)
    return int(verdict.level), verdict.hardline


def ansi(word: str) -> str:
    return "$'" + "".join(f"\\x{ord(char):02x}" for char in word) + "'"


def octal(word: str) -> str:
    return "$'" + "".join(f"\\{ord(char):03o}" for char in word) + "'"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "single": lambda word: "'" + word + "'",
    "double": lambda word: '"' + word + '"',
    "backslash": lambda word: "".join("\\" + char for char in word),
    "empty quotes": lambda word: word[:1] + "''" + word[1:],
    "half": lambda word: word[:1] + '"' + word[1:] + '"',
    "ansi": ansi,
    "octal": octal,
    "locale": lambda word: '$"' + word + '"',
    "continued": lambda word: word[:1] + "\\\n" + word[1:],
    "default": lambda word: "${unset:-" + word + "}",
}

WRAPPINGS = {
    "env": "env {}",
    "env assignment": "env A=1 B=2 {}",
    "timeout": "timeout -k 5 10s {}",
    "nice": "nice -n 5 {}",
    "nohup": "nohup {}",
    "setsid": "setsid {}",
    "stdbuf": "stdbuf -oL {}",
    "time": "time {}",
    "command": "command {}",
    "exec": "exec -a x {}",
    "sudo": "sudo -u me {}",
    "xargs": "xargs -n 1 {}",
    "find": "find . -exec {} \\;",
    "docker": "docker run --rm -it image {}",
    "busybox path": "/usr/bin/env {}",
    "assignment": "A=b {}",
    "not": "! {}",
}

JOININGS = {
    "before": "{}; ls",
    "after": "ls; {}",
    "and": "ls && {}",
    "or": "ls || {}",
    "newline": "ls\n{}",
    "background": "ls & {}",
    "pipe": "ls | {}",
    "into": "{} | cat",
    "group": "{{ {}; }}",
    "subshell": "( {} )",
    "function": "f() {{ {}; }}; f",
    "if": "if true; then {}; fi",
    "else": "if true; then ls; else {}; fi",
    "for": "for i in 1 2; do {}; done",
    "while": "while {}; do ls; done",
    "case": "case x in y) {};; esac",
    "substitution": "echo $({})",
    "quoted substitution": 'echo "$({})"',
    "assignment": "x=$({})",
    "process": "cat <({})",
    "default": 'echo "${{x:-$({})}}"',
    "arithmetic": "echo $((1 + $({})))",
    "test": "[[ -n $({}) ]]",
    "array": "a=($({}))",
    "here-document": "cat <<END\n$({})\nEND",
    "here-string": "cat <<< $({})",
    "redirection": "ls > $({})",
    "comment": "{} # harmless",
    "deep": "( ( {{ ( {} ); }} ) )",
}


def texts(command: str) -> dict[str, str]:
    """Ways to hand a whole command over as text to something that runs it."""
    quoted = shlex.quote(command)
    return {
        "bash -c": f"bash -c {quoted}",
        "sh -ec": f"sh -ec {quoted}",
        "eval": f"eval {quoted}",
        "trap": f"trap {quoted} EXIT",
        "watch": f"watch {quoted}",
        "flock": f"flock f -c {quoted}",
        "script": f"script -qc {quoted} f",
        "ssh": f"ssh host {quoted}",
        "env -S": f"env -S {quoted}",
        "alias": f"alias x={quoted}",
        "here-document": f"bash <<'END'\n{command}\nEND",
        "here-string": f"bash <<< {quoted}",
        "echo": f"echo {quoted} | sh",
        "twice": f"bash -c {shlex.quote('bash -c ' + quoted)}",
    }


@thorough
@given(command=st.sampled_from(LITERAL), spelling=st.sampled_from(sorted(SPELLINGS)), data=st.data())
def test_spelling_a_word_differently_never_lowers_the_level(
    command: str, spelling: str, data: st.DataObject
) -> None:
    words = command.split()
    place = data.draw(st.integers(0, len(words) - 1))
    words[place] = SPELLINGS[spelling](words[place])
    assert rank(" ".join(words))[0] >= rank(command)[0]


@thorough
@given(
    command=st.sampled_from(PLAIN), path=st.lists(st.sampled_from(sorted(WRAPPINGS)), min_size=1, max_size=4)
)
def test_wrapping_never_lowers_the_level(command: str, path: list[str]) -> None:
    wrapped = command
    for name in path:
        wrapped = WRAPPINGS[name].replace("{}", wrapped)
    assert rank(wrapped)[0] >= rank(command)[0]


@thorough
@given(
    command=st.sampled_from(PLAIN), path=st.lists(st.sampled_from(sorted(JOININGS)), min_size=1, max_size=3)
)
def test_joining_and_nesting_never_lowers_the_level(command: str, path: list[str]) -> None:
    joined = command
    for name in path:
        joined = JOININGS[name].replace("{{", "{").replace("}}", "}").replace("{}", joined, 1)
    assert rank(joined) >= rank(command)


@thorough
@given(command=st.sampled_from(PLAIN), way=st.sampled_from(sorted(texts("x"))))
def test_handing_a_command_over_as_text_never_lowers_the_level(command: str, way: str) -> None:
    assert rank(texts(command)[way])[0] >= rank(command)[0]


@pytest.mark.parametrize("name", sorted(JOININGS))
def test_every_way_to_join_keeps_the_floor(name: str) -> None:
    line = JOININGS[name].replace("{{", "{").replace("}}", "}").replace("{}", "rm -rf /", 1)
    assert classify(line).hardline


@thorough
@given(
    first=st.sampled_from([row[2] for row in everyday() if "<<" not in row[2] and "&" not in row[2][-1]]),
    second=st.sampled_from(PLAIN),
    between=st.sampled_from([" ; ", " && ", " || ", "\n", " | "]),
)
def test_the_level_of_a_chain_is_at_least_that_of_both(first: str, second: str, between: str) -> None:
    joined = classify(first + between + second).level
    assert joined >= max(classify(first).level, classify(second).level)


@thorough
@given(text=st.text(alphabet=string.ascii_letters + " ;|&<>(){}$'\"\\`\n=#[]*!-/~", max_size=40))
def test_adding_a_dangerous_command_on_its_own_line_is_never_missed(text: str) -> None:
    """Whatever stands before: either bash never reaches the second line, or we saw it."""
    verdict = classify("rm -rf /\n" + text)
    assert verdict.level is Level.DANGEROUS
