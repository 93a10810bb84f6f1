"""Programs whose argument or input is itself a program: shells and languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corral.record import Record
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE, WRITE, Finding
from corral.risk.marks import HOLE, MAYBE, SHUT
from corral.risk.programs import is_perl_filter
from corral.risk.script import TERMINAL
from corral.risk.table import grammar
from corral.risk.words import UNKNOWN, may_be_option


class Interpreter(Record):
    """A row. `code`: options whose value is program text. `shell`: that text is a command line and has its own level.

    `flags` and `values` are the other options (`values` take one); `loads` run a file before anything else; `looks`
    only print something.
    """

    verbs: str
    code: str
    flags: str = ""
    values: str = ""
    loads: str = ""
    looks: str = ""
    shell: bool = False
    reads_stdin: bool = False


INTERPRETERS = (
    Interpreter(
        "sh bash zsh dash ksh mksh ash fish csh tcsh rbash yash",
        "-c --command",
        flags="-e -u -x -l -i -n -v -f -a -h -m -p -r -t -B -C -E -H -P -T -D --login --norc --noprofile "
        "--posix --restricted --verbose",
        values="-o -O",
        loads="--rcfile --init-file --init-command",
        shell=True,
        reads_stdin=True,
    ),
    Interpreter(
        "python pypy ipython",
        "-c",
        flags="-u -B -E -I -O -OO -s -S -v -q -x -b -d -i -P",
        values="-W -X --check-hash-based-pycs",
        looks="-V -VV",
    ),
    Interpreter(
        "node nodejs",
        "-e --eval -p --print -pe",
        values="--input-type --max-old-space-size --stack-size --env-file",
        loads="-r --require --import --loader --experimental-loader",
        looks="-v -h",
    ),
    Interpreter(
        "perl",
        "-e -E",
        flags="-p -n -w -W -T -t -s -a -l -u -U -S",
        values="",
        loads="-I -M -m -x",
        looks="-v -V",
    ),
    Interpreter("ruby jruby", "-e", flags="-w -W -n -p -a -l -s -S", loads="-r -I --require", looks="-v"),
    Interpreter(
        "php", "-r -B -R -E", flags="-a -n -q", values="-c -S -t", loads="-d -z", looks="-v -m -i -l -w"
    ),
    Interpreter("lua luajit", "-e", flags="-i -E -W", loads="-l", looks="-v"),
    Interpreter("Rscript R", "-e --expression", flags="--vanilla --no-save --slave --quiet"),
    Interpreter("julia", "-e --eval -E --print", loads="-L --load", looks="-v"),
    Interpreter("osascript", "-e", values="-l -s"),
    Interpreter(
        "pwsh powershell cmd",
        "-c -Command -command -EncodedCommand -enc /c /k",
        flags="-NoProfile -NonInteractive",
        values="-ExecutionPolicy",
        reads_stdin=True,
    ),
    Interpreter(
        "tclsh wish expect guile scheme racket sbcl clisp ghci runghc runhaskell scala jshell groovy swipl",
        "-e --eval -ex -c --expression --command -E",
    ),
    Interpreter("bc dc", "", flags="-l -q -w -s -i"),
)
_BY_VERB = {verb: row for row in INTERPRETERS for verb in row.verbs.split()}
_VERSIONED = re.compile(
    r"(python|pypy|ruby|perl|php|lua|luajit|node|nodejs|pip|bash|ksh|tclsh|gcc|g\+\+|clang"
    r"|clang\+\+)-?[0-9][0-9.]*"
)
_STDIN = frozenset({"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"})
_DESCRIPTOR = re.compile(rf"/dev/fd/(?:\d+|{SHUT})|/proc/self/fd/\d+")
_KNOWN_FILTERS = frozenset({"bc", "dc"})


def unversioned(verb: str) -> str:
    match = _VERSIONED.fullmatch(verb)
    return match.group(1) if match else verb


def interpreter(verb: str) -> Interpreter | None:
    return _BY_VERB.get(verb)


class Reading:
    """What an interpreter call comes to: findings, and shell text that has its own level."""

    __slots__ = ("findings", "shells")

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.shells: list[str] = []

    def add(self, finding: Finding) -> Reading:
        self.findings.append(finding)
        return self


_INLINE = Finding(DANGEROUS, "runs program text given in its arguments", (EXEC,))
_HIDDEN = Finding(DANGEROUS, "runs program text that is not known before it runs", (EXEC,))
_LOADS = Finding(DANGEROUS, "loads code given in an option", (EXEC,))
_FILTER_CLUSTER = re.compile(r"-[lwna0]*[pn][lwna0]*e|-[lwn]*[pn][lwn]*ie|-e")
_FILTER_OPTION = re.compile(r"-[lwpn0]+|-i(?:\.\w+)?")
_IN_PLACE = re.compile(r"-\w*i")
_EDITOR = Finding(CAUTION, "edits files in place", (WRITE,))
_FILTER = Finding(CAUTION, "runs a one-line text filter")
_PRINTS = Finding(SAFE, "prints about itself")
_INTERACTIVE = Finding(CAUTION, "starts an interpreter")
_SCRIPT = Finding(CAUTION, "runs a script")
_UNSURE = Finding(CAUTION, "runs a script whose name is not known before it runs")


def read(row: Interpreter, verb: str, words: Sequence[str], fed: str) -> Reading:
    """Goes through the options of one call up to the script."""
    reading = Reading()
    codes, loads, looks = row.code.split(), row.loads.split(), row.looks.split()
    rules = grammar(row.flags + " " + " ".join(value + "=" for value in row.values.split()))
    at = 0
    while at < len(words):
        word = words[at]
        if word in _STDIN or _DESCRIPTOR.fullmatch(word):
            return reading.add(_from(fed))
        if may_be_option(word):
            return reading.add(_HIDDEN if word[0] in (HOLE, MAYBE) else _UNSURE)
        if word in looks and len(words) == 1:
            return reading.add(_PRINTS)
        if word in ("--help", "--version") and at == 0:
            return reading.add(_PRINTS)
        if (word[0:1] not in ("-", "+") or word == "--") and word not in codes:
            operand = words[at + 1] if word == "--" and at + 1 < len(words) else word
            return reading.add(_script(verb, operand, fed))
        if code := _code_in(word, codes):
            return _inline(row, verb, code, word, words, at, reading)
        if word == "-m" and verb in ("python", "pypy"):
            return reading.add(Finding(CAUTION, "runs a module"))
        if word.partition("=")[0] in loads or (len(word) > 2 and word[:2] in loads and word[1] != "-"):
            if not (verb == "perl" and word[:2] in ("-I", "-M", "-m")) and not (
                verb == "php" and word[:2] == "-d"
            ):
                reading.add(_LOADS)
            at += 1 if len(word) > 2 else 2
            continue
        if row.shell and "s" in word[1:] and not word.startswith("--"):
            return reading.add(_from(fed))
        at += rules.width(word) or 1
    if verb in _KNOWN_FILTERS:
        return reading.add(Finding(SAFE, "calculates"))
    if fed or row.reads_stdin:
        return reading.add(_from(fed))
    return reading.add(_INTERACTIVE)


def _from(fed: str) -> Finding:
    if fed is TERMINAL:
        return _INTERACTIVE
    return Finding(DANGEROUS, f"runs program text from {fed or 'its standard input'}", (EXEC,))


def _script(verb: str, operand: str, fed: str) -> Finding:
    if verb in ("bc", "dc"):
        return Finding(SAFE, "calculates")
    return _SCRIPT


def _code_in(word: str, codes: list[str]) -> str:
    """Which code option this word holds: whole, with a value attached, or in a cluster such as ``-lc`` or ``-pe``."""
    for code in codes:
        if word == code or (code.startswith("--") and word.startswith(code + "=")):
            return code
    if word.startswith("--"):
        return ""
    for code in codes:
        if len(code) == 2 and code[1] in word[1:]:
            return code
    return ""


def _inline(
    row: Interpreter, verb: str, code: str, word: str, words: Sequence[str], at: int, reading: Reading
) -> Reading:
    following = list(words[at + 1 :])
    if "=" in word and word.startswith("--"):
        following.insert(0, word.partition("=")[2])
    elif not row.shell and len(code) == 2 and word[0] == "-":
        attached = word[word.index(code[1], 1) + 1 :]
        if attached:
            following.insert(0, attached)
    if row.shell:
        # bash takes the first word that is no option as the text: `bash -c -e 'text'`.
        while len(following) > 1 and following[0][:1] in ("-", "+") and len(following[0]) > 1:
            following.pop(0)
        text = following[0] if following else ""
        if UNKNOWN.search(text) or not text:
            return reading.add(_HIDDEN)
        reading.shells.append(text)
        return reading.add(Finding(SAFE, "runs a command line given in its arguments", (EXEC,)))
    if verb == "perl" and _is_filter(word, words[:at], following):
        in_place = any(_IN_PLACE.match(other) for other in (word, *words[:at]))
        return reading.add(_EDITOR if in_place else _FILTER)
    return reading.add(_INLINE)


def _is_filter(word: str, before: Sequence[str], following: list[str]) -> bool:
    """``perl -pe 's/a/b/' files``: one substitution, no module, no further option."""
    if not following or not _FILTER_CLUSTER.fullmatch(word) or not is_perl_filter(following[0]):
        return False
    plain = all(_FILTER_OPTION.fullmatch(other) for other in before)
    return plain and not any(other.startswith("-") or may_be_option(other) for other in following[1:])
