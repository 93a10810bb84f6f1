"""Shell words, resolved the way bash does where that is certain.

A resolved word is a plain string in which the characters of `corral.risk.marks` stand for what is not known before the
command runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from corral.risk.braces import expand
from corral.risk.marks import CLOSE, COMMA, DESCRIPTOR, GAP, HOLE, MAYBE, OPEN, SHUT, STAR, Doubt

UNKNOWN = re.compile(f"[{HOLE}{SHUT}{STAR}{MAYBE}]")
LEADING_UNKNOWN = (HOLE, SHUT, STAR, MAYBE)
_SHOWN = str.maketrans({HOLE: "$…", SHUT: "$…", STAR: "*", GAP: " ", MAYBE: ""})

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^!#\]\x80-\xff-]+")
_SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+:,./^-][A-Za-z0-9_@%+=:,./^-]*\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_DEFAULTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*])(:?[-=])(.*)\Z", re.DOTALL)
_ACTIVE = re.compile(r"[$`'\"\\]")
_BLANKS = re.compile(r"[\s;|&<>()]")
_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_CALCULATED = re.compile(
    r"\A[#!]?\w+(?:\[(?![@*]\]|-?\d+\])|:\s*(?![-=+?\d\s]))|\A\w+:\s*\d+\s*:\s*(?![-\d\s])"
)
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_ONE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_SUBSCRIPT_CODE = re.compile(r"\[[^\]\[]*(?:\$\(|`)")
MAX_DEPTH = 8

Spans = Sequence[tuple[int, int]]


def show(word: str) -> str:
    """A resolved word for people."""
    return word.translate(_SHOWN)


def may_be_option(word: str) -> bool:
    """Whether an unknown beginning could turn this operand into an option or into several words."""
    return word.startswith(LEADING_UNKNOWN)


def resolve(text: str, variables: Mapping[str, str], opaque: Spans = (), depth: int = 0) -> list[str]:
    """The words this one source word becomes. `opaque` are the spans of substitutions inside it."""
    if _SAFE_WORD.match(text):
        return [text]
    if depth > MAX_DEPTH:
        raise Doubt("expansions are nested too deeply to follow")
    marked = _Reader(text, variables, opaque, depth).read()
    if _SUBSCRIPT_CODE.search(marked):
        raise Doubt("an array subscript may run a command")
    words = expand(marked) if OPEN in marked or CLOSE in marked else [marked]
    if GAP in marked:
        words = [piece for word in words for piece in word.split(GAP) if piece]
    return words


class _Reader:
    """Reads one source word from left to right into marked text."""

    def __init__(self, text: str, variables: Mapping[str, str], opaque: Spans, depth: int) -> None:
        self.text = text
        self.variables = variables
        self.ends = dict(opaque)
        self.depth = depth
        self.out: list[str] = []

    def read(self) -> str:
        text, out, at, braces = self.text, self.out, 0, 0
        if text[:1] == "~" and (len(text) == 1 or text[1] == "/"):
            out.append("~")
            at = 1
        while at < len(text):
            if at in self.ends:
                out.append(DESCRIPTOR if text[at] in "<>" else HOLE)
                at = self.ends[at]
                continue
            char = text[at]
            if char == "," and braces:
                out.append(COMMA)
                at += 1
            elif plain := _PLAIN.match(text, at):
                run = plain.group()
                if braces and "," in run:
                    run = run.replace(",", COMMA)
                out.append(run)
                at = plain.end()
            elif char == "'":
                end = text.find("'", at + 1)
                if end < 0:
                    raise Doubt("a quote is not closed")
                out.append(text[at + 1 : end])
                at = end + 1
            elif char == '"':
                at = self._double(at + 1)
            elif char == "\\":
                if at + 1 < len(text) and text[at + 1] != "\n":
                    out.append(text[at + 1])
                at += 2
            elif char == "$":
                at = self._dollar(at, HOLE)
            elif char in "*?[":
                out.append(STAR)
                at += 1
            elif char == "{":
                braces += 1
                out.append(OPEN)
                at += 1
            elif char == "}":
                braces = max(0, braces - 1)
                out.append(CLOSE)
                at += 1
            elif char == "~":
                out.append(char)
                at += 1
            else:
                raise Doubt("a word holds an operator or blank that the parser did not see")
        return "".join(out)

    def _double(self, at: int) -> int:
        text, out = self.text, self.out
        while at < len(text):
            if at in self.ends:
                out.append(SHUT)
                at = self.ends[at]
                continue
            char = text[at]
            if char == '"':
                return at + 1
            if run := _IN_DOUBLE.match(text, at):
                out.append(run.group())
                at = run.end()
            elif char == "\\":
                following = text[at + 1 : at + 2]
                if following != "\n":
                    out.append(following if following in '$`"\\' else "\\" + following)
                at += 2
            elif char == "$":
                at = self._dollar(at, SHUT)
            else:
                raise Doubt("a backtick is not where the parser saw one")
        raise Doubt("a quote is not closed")

    def _dollar(self, at: int, hole: str) -> int:
        text, out = self.text, self.out
        following = text[at + 1 : at + 2]
        if following == "'" and hole is HOLE:
            return self._ansi(at + 2)
        if following == '"' and hole is HOLE:
            return self._double(at + 2)
        if following == "{":
            end = self._closing_brace(at + 2, hole)
            out.append(self._parameter(text[at + 2 : end], at + 2, hole))
            return end + 1
        if following in "([":
            raise Doubt("a substitution is not where the parser saw one")
        if name := _NAME.match(text, at + 1):
            out.append(self._value(name.group(), hole))
            return name.end()
        out.append("$")
        return at + 1

    def _ansi(self, at: int) -> int:
        text, end = self.text, at
        while end < len(text) and text[end] != "'":
            end += 2 if text[end] == "\\" else 1
        if end >= len(text):
            raise Doubt("a quote is not closed")
        self.out.append(_ANSI.sub(_ansi_character, text[at:end]))
        return end + 1

    def _closing_brace(self, at: int, hole: str) -> int:
        text, quoted = self.text, False
        outer: list[bool] = []
        while at < len(text):
            if at in self.ends:
                at = self.ends[at]
                continue
            char = text[at]
            if char == "\\":
                at += 1
            elif char == '"':
                quoted = not quoted
            elif char == "'" and not quoted:
                if hole is SHUT:
                    raise Doubt("a single quote inside an expansion inside double quotes")
                at = text.find("'", at + 1)
                if at < 0:
                    break
            elif char == "`":
                raise Doubt("a backtick inside an expansion is not always seen by the parser")
            elif text.startswith("$(", at):
                raise Doubt("a substitution inside an expansion that the parser did not see")
            elif text.startswith("${", at):
                outer.append(quoted)
                quoted = False
                at += 1
            elif char == "}" and not quoted:
                if not outer:
                    return at
                quoted = outer.pop()
            at += 1
        raise Doubt("an expansion is not closed")

    def _parameter(self, inside: str, offset: int, hole: str) -> str:
        if _NAME.fullmatch(inside):
            return self._value(inside, hole)
        if inside.startswith("!") and not inside.endswith(("*", "@")):
            raise Doubt("an indirect expansion may run what the variable holds")
        if inside.endswith("@P"):
            raise Doubt("${…@P} runs what the variable holds")
        if _CALCULATED.search(inside):
            raise Doubt("a subscript or an offset that is not known may run a command")
        if match := _DEFAULTED.match(inside):
            name, _, default = match.groups()
            if name in self.variables:
                return self._value(name, hole)
            begin = offset + match.start(3)
            spans = [(start - begin, end - begin) for start, end in self.ends.items() if start >= begin]
            if name == "IFS":
                return self._value(name, hole)
            if _BLANKS.search(default):
                if _ACTIVE.search(default):
                    return hole
                return MAYBE + (default if hole is SHUT else GAP.join(default.split()))
            value = "".join(resolve(default, self.variables, spans, self.depth + 1)) if default else ""
            return MAYBE + value if value else hole
        return hole

    def _value(self, name: str, hole: str) -> str:
        if name == "IFS":
            return GAP if hole is HOLE else " "
        if name == "HOME":
            return "~"
        known = self.variables.get(name)
        if known is None:
            return hole
        if hole is HOLE and (" " in known or "\t" in known or "\n" in known):
            return GAP.join(known.split()) if not UNKNOWN.search(known) else hole
        return known


def _ansi_character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "xuU" and len(code) > 1:
        value = int(code[1:], 16)
    elif code[0] in "01234567":
        value = int(code, 8) & 0xFF
    elif code[0] == "c" and len(code) == 2:
        value = ord(code[1]) & 0x1F
    else:
        return _ANSI_ONE.get(code, code)
    # Above are surrogates and the private marks themselves.
    return chr(value) if 0 < value < 0xD800 else SHUT
