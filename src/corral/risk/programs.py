"""Little languages inside arguments: sed scripts, awk programs, Perl one-liners, SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.risk import places
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, WRITE, Finding
from corral.risk.table import Call
from corral.risk.words import UNKNOWN

_SED_ADDRESS = re.compile(
    r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/[IM]*)(?:\s*,\s*(?:[+~]?\d+|\$|/(?:[^/\\\n]"
    r"|\\.)*/[IM]*))?\s*!?\s*"
)
_SED_PLAIN = re.compile(r"[pdDgGhHxnNPzl=]|[qQlL]\s*\d*|[btT]\s*\w*|:\s*\w+|[{}]|#[^\n]*")
_SED_TEXT = re.compile(r"[aic](?:\\\n|\s*)[^\n]*|[rR]\s+[^\n]*")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")
_SED_GAP = re.compile(r"[\s;]*")


def sed_scripts(call: Call) -> list[str]:
    given = call.values("-e --expression")
    if given or call.has("-f --file"):
        return given
    widths = call.values("-l --line-length")
    return [word for word in call.operands() if word not in widths][:1]


def sed_script(call: Call) -> Iterator[Finding]:
    for script in sed_scripts(call):
        yield from _sed_commands(script)


def _sed_commands(script: str) -> Iterator[Finding]:
    at = 0
    while True:
        at = _SED_GAP.match(script, at).end()  # type: ignore[union-attr]
        if at >= len(script):
            return
        if address := _SED_ADDRESS.match(script, at):
            at = address.end()
        verb = script[at : at + 1]
        if verb == "s" or verb == "y":
            at = _sed_delimited(script, at + 1)
            flags = _SED_FLAGS.match(script, at) if at > 0 else None
            if flags is None:
                yield Finding(CAUTION, "a sed script that is not understood")
                return
            at = flags.end()
            verb = script[at : at + 1]
            if verb not in ("e", "w"):
                if verb and verb not in "\n;} \t#":
                    yield Finding(CAUTION, "a sed script that is not understood")
                    return
                continue
        if verb == "e":
            yield Finding(DANGEROUS, "sed runs a command", (EXEC,))
            return
        if verb == "w" or verb == "W":
            end = script.find("\n", at)
            end = len(script) if end < 0 else end
            yield places.target(script[at + 1 : end].strip()) or Finding(CAUTION, "sed writes a file")
            yield Finding(CAUTION, "sed writes a file", (WRITE,))
            at = end
            continue
        plain = _SED_PLAIN.match(script, at) or _SED_TEXT.match(script, at)
        if plain is None:
            yield Finding(CAUTION, "a sed script that is not understood")
            return
        at = plain.end()


def _sed_delimited(script: str, at: int) -> int:
    """The place after the third delimiter of ``s/…/…/`` or -1."""
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\\\n":
        return -1
    seen, at, inside = 1, at + 1, False
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 1
        elif char == "[" and seen == 1 and not inside:
            inside = delimiter != "["
        elif char == "]" and inside:
            inside = False
        elif char == delimiter:
            # Whether a delimiter inside brackets ends the expression differs between seds: not understood.
            if inside:
                return -1
            seen += 1
            if seen == 3:
                return at + 1
        at += 1
    return -1


_AWK_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"?|/(?:\\.|[^/\\\n])*/?|#[^\n]*|[\s]+|[^"/#\s]', re.DOTALL)
_AWK_BEFORE_REGEX = frozenset("(,~!{};&|=:?\n")
_AWK_RUNS = re.compile(r"\bsystem\b|(?<!\|)\|(?!\|)|@load\b")
_AWK_STATEMENT = re.compile(r"[;}\n]")


def _awk_code(program: str) -> str:
    """The program without its strings and regular expressions."""
    kept: list[str] = []
    previous, at = "{", 0
    while match := _AWK_TOKEN.match(program, at):
        token = match.group()
        if token[0] == "/" and previous not in _AWK_BEFORE_REGEX:
            token = "/"
        elif token[0] in '"/#':
            kept.append(token[0] * 2 if token[0] != "#" else "")
            previous, at = token[0], at + len(token)
            continue
        if "\n" in token or token.strip():
            previous = token.strip() or "\n"
        kept.append(token)
        at += len(token)
    return "".join(kept)


def awk_program(call: Call) -> Iterator[Finding]:
    given = call.values("-e --source")
    taken = call.values("-F -v -f -i --field-separator --assign --file")
    operands = [word for word in call.operands() if word not in taken]
    for program in given or operands[:1]:
        code = _awk_code(program)
        if _AWK_RUNS.search(code):
            yield Finding(DANGEROUS, "awk runs a command", (EXEC,))
        elif any(">" in part.partition("print")[2] for part in _AWK_STATEMENT.split(code)):
            yield Finding(CAUTION, "awk writes a file", (WRITE,))
    if call.has("-l -i --load --include"):
        yield Finding(DANGEROUS, "awk loads foreign code", (EXEC,))


_PERL_FILTER = re.compile(
    r"\s*(?:(?:s|tr|y)(?P<d>[/|#!,])(?:\\.|(?!(?P=d))[^\\$@])*(?P=d)(?:\\.|\$\d"
    r"|(?!(?P=d))[^\\$@])*(?P=d)[gimsxcdr]*"
    r"|print(?:\s+if\s+/(?:\\.|[^\\/$@])*/[i]?)?)\s*;?\s*"
)


def is_perl_filter(program: str) -> bool:
    """A single substitution such as ``s/a/b/g``: text in, text out. ``(?{…})`` and the ``e`` flag are code."""
    return not UNKNOWN.search(program) and "?{" not in program and _PERL_FILTER.fullmatch(program) is not None


_SQL_DESTROYS = re.compile(
    r"(?i)(?:^|[;(]|\b(?:begin|as|then|explain|analyze)\b)\s*(?:drop|truncate|delete)\b"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema|view|index|user|role|column|keyspace|collection|type"
    r"|function|sequence)\b"
    r"|\bdelete\s+from\b|\.(?:drop|dropDatabase|deleteMany|remove)\s*\(|\b(?:flushall|flushdb)\b"
)
_SQL_RUNS = re.compile(
    r"(?im)\\!|^[ \t]*\.(?:shell|system|load|sh)\b|\bload_extension[ \t]*\(|\b(?:to|from)[ "
    r"\t]+program\b|\\[ogw][ \t]*\|"
    r"|^[ \t]*\.(?:output|once|import|excel|open)[ \t]+['\"]?\||^[ \t]*system[ \t]|\\system"
    r"|\binto[ \t]+(?:out|dump)file\b|\bsys_exec\b|\bxp_cmdshell\b"
)
_SQL_ALTER = re.compile(r"(?i)\balter\b")
_SQL_DROP = re.compile(r"(?i)\bdrop\b")


def _without_comments(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (start := text.find("/*", at)) >= 0:
        kept.append(text[at:start])
        end = text.find("*/", start + 2)
        if end < 0:
            break
        at = end + 2
    kept.append(text[at:])
    return " ".join(kept)


def sql_text(text: str) -> Iterator[Finding]:
    bare = _without_comments(text) if "/*" in text else text
    if _SQL_RUNS.search(text):
        yield Finding(DANGEROUS, "the database client runs a command", (EXEC,))
    if _SQL_DESTROYS.search(bare) or (_SQL_ALTER.search(bare) and _SQL_DROP.search(bare)):
        yield Finding(DANGEROUS, "destroys data")


def sql_statements(call: Call) -> Iterator[Finding]:
    for text in call.values("-c -e -Q -q --command --execute --eval --query -cmd --cmd"):
        yield from sql_text(text)
    if call.verb in ("sqlite3", "sqlite", "duckdb", "redis-cli", "mongo", "mongosh"):
        operands = call.operands()
        for text in operands if call.verb == "redis-cli" else operands[1:]:
            yield from sql_text(text)
