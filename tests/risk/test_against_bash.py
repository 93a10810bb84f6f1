"""Bash itself as the judge: what is called safe must not run a program that we did not see.

Each line holds the name ``zz``, which no table knows, so a line that runs it must not be safe. Lines that are called
safe are given to a real bash that finds no program at all and reports each name it looked for. The variables ``x``,
``y`` and ``i`` of its environment hold text that runs ``zz`` wherever bash calculates with them.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from corral.risk import Level, classify

SEEDS = [
    'echo "${x:-`zz`}"',
    "echo a; zz",
    "cat <<E\n$(zz)\nE\n",
    "echo $((1+$(zz)))",
    "case a in a) zz;; esac",
    "[[ $(zz) ]]",
    "echo 'zz' \"zz\" # zz",
    "f() { zz; }; f",
    "time { zz; }",
    "echo ${x:-$(zz)} ${x:+zz}",
    "x=(zz $(zz))",
    "echo \\\nzz",
    "((zz))",
    "echo `echo \\`zz\\``",
    "cat <<E <<F\nzz\nE\nzz\nF\n",
    "[ \n\tzz ] && true",
    "echo {zz,zz}",
    "{zz; }",
    "coproc N { zz; }",
    "echo ${a[$(zz)]}",
    "let 'a[$(zz)]=1'",
    "test -v 'a[$(zz)]'",
    "[[ -v 'a[$(zz)]' ]]",
    "declare -i z='a[$(zz)]'",
    "x='a[$(zz)]'; ((x))",
    "echo $((x)) zz",
    "echo $[x] zz",
    "[[ x -eq 1 ]] # zz",
    "echo ${y:x} zz",
    "echo ${y[x]} zz",
    "y[x]=1; echo zz",
    "echo ${!x} zz",
    "echo ${x@P} zz",
    'printf -v "$x" zz',
    'unset "$x" zz',
    'read "$x" zz <<< 1',
    "jobs -x zz",
    "hash -p zz ls; ls",
    "alias e=zz; e",
    "set -- zz; $1",
    "PS4='$(zz)'; set -x; echo",
    "mapfile -C zz -c 1 <<< x",
    "echo ${x/a$(zz)}",
    'echo ${x#a"}"}; zz #"',
    "echo<<< \\ \nzz",
    "echo ${x:-'}'} ; zz",
    "echo $'\\'' ; zz",
    'echo "$(echo ")"; zz)"',
    "for ((;x;)); do break; done; echo zz",
    "exec 3< <(zz)",
    ". /dev/stdin <<< zz",
]
PIECES = [
    *(
        "echo",
        "cat",
        "ls",
        "zz",
        "zz",
        "zz",
        "'",
        "'",
        '"',
        '"',
        "\\",
        "`",
        "$(",
        "(",
        ")",
        "${x:-",
        "${",
        "}",
        "{",
    ),
    *(
        "$((",
        "((",
        "))",
        ";",
        "|",
        "&&",
        "||",
        "#",
        "$x",
        "x=",
        "<<E",
        "[[",
        "]]",
        "[",
        "]",
        "-f",
        "-v",
        "==",
        "-eq",
    ),
    *(
        "=~",
        "if",
        "then",
        "else",
        "fi",
        "for",
        "i",
        "in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        ";;",
        "a)",
        "$'",
    ),
    *(
        "\\'",
        '$"',
        "!",
        "time",
        "<(",
        "<<<",
        "2>&1",
        "f()",
        "~",
        "*",
        "?",
        "${a[",
        "]}",
        "@",
        "%",
        "{a,b}",
        "a",
        "b",
    ),
    *("coproc", "let", "test", "true", ":", "$[", "+=", "${#", "${!", "//", "##"),
]
LINES = ["\n", "\\\n", "\t", " ", " ", " ", "E\n", "<<'E'\n"]


def runs_zz(line: str, directory: Path) -> bool:
    reader, writer = os.pipe()
    environment = {
        "PATH": "/nonexistent",
        "HOME": str(directory),
        "REPORT": str(writer),
        "BASH_FUNC_command_not_found_handle%%": '() {  echo "ran:$1" >&"$REPORT"\n}',
        **dict.fromkeys("xyi", "a[$(zz)]"),
    }
    with os.fdopen(reader) as report:
        try:
            subprocess.run(
                ["/bin/bash", "--norc", "--noprofile", "-c", line],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[writer],
                timeout=5,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pass
        finally:
            os.close(writer)
        return "ran:zz" in report.read()


def mutated(noise: random.Random) -> str:
    if noise.random() < 0.4:
        return "".join(
            noise.choice(PIECES) + noise.choice(["", " ", " "]) for _ in range(noise.randrange(2, 14))
        )
    letters = list(noise.choice(SEEDS))
    for _ in range(noise.randrange(1, 4)):
        place = noise.randrange(len(letters) + 1)
        if noise.random() < 0.6 or not letters:
            letters.insert(place, noise.choice(PIECES + LINES))
        else:
            letters.pop(min(place, len(letters) - 1))
    return "".join(letters)


def test_the_judge_sees_what_runs(tmp_path: Path) -> None:
    assert runs_zz("ls; zz", tmp_path)
    assert runs_zz("echo $((x))", tmp_path)
    assert not runs_zz("echo zz", tmp_path)


@pytest.mark.case("peers-C5")
@pytest.mark.parametrize("line", SEEDS)
def test_no_known_trick_makes_a_safe_line_run_something_else(line: str, tmp_path: Path) -> None:
    if classify(line).level is Level.SAFE:
        assert not runs_zz(line, tmp_path)


def test_no_mutation_of_them_does_either(tmp_path: Path) -> None:
    noise = random.Random(20)
    lines = [line for line in (mutated(noise) for _ in range(8_000)) if "zz" in line]
    safe = [line for line in lines if classify(line).level is Level.SAFE]
    assert len(safe) > 50
    assert not [line for line in safe if runs_zz(line, tmp_path)]
