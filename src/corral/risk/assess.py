"""The level of one simple command: unwrap, look the program up, join what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corral.risk import interpreters, places, variables, wrappers
from corral.risk.levels import CAUTION, DANGEROUS, NETWORK, SAFE, Finding, Level
from corral.risk.marks import MAYBE
from corral.risk.rules import VERBS, Selection, Verb
from corral.risk.rules.wrapping import ARGS, Wrapper
from corral.risk.script import TERMINAL, Simple
from corral.risk.table import Call, base_fits, find_sub, has_option, sharp_fits, sub_fits
from corral.risk.user import Rules
from corral.risk.words import UNKNOWN, may_be_option, show

MAX_INNER = 12
"""Wrappers inside wrappers; deeper is hidden on purpose."""
MAX_RUNS = 200
"""Inner commands of one command: two ways to read each of twelve wrappers would be thousands."""

_SYSTEM_DIRECTORY = re.compile(
    r"(?:/proc/self/root)?/(?:usr/|usr/local/|opt/homebrew/|usr/games/)?s?bin/|/opt/local/bin/|/snap/bin/"
    r"|/run/current-system/sw/bin/"
)
_DASHLESS = frozenset({"tar", "bsdtar", "ps", "ar"})
"""Programs that take their first options without a dash."""
_BUNDLE = re.compile(r"[A-Za-z]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_NETWORK_FILE = re.compile(r"/dev/(?:tcp|udp)/")
_LOADER = re.compile(r"ld(?:-linux[\w.-]*|-musl[\w.-]*)?\.so(?:\.\d+)*")
_MKFS = re.compile(r"mkfs\.\w+|newfs_\w+")

_UNNAMED = Finding(DANGEROUS, "the program's name is not known before it runs", ("exec",))
_ELSEWHERE = Finding(CAUTION, "a program outside the system's directories")
_MAYBE_OPTION = Finding(CAUTION, "an argument that is not known before it runs may be an option")
_UNSEEN_OPTION = Finding(CAUTION, "an option that is not known stands before the sub-command")
_TOO_DEEP = Finding(DANGEROUS, "commands are nested too deeply to follow")
_HIDDEN_TEXT = Finding(DANGEROUS, "runs text that is not known before it runs", ("exec",))
_ABOUT_ITSELF = Finding(SAFE, "prints about itself")
_ABOUT = (["--help"], ["--version"])


class Assessment:
    """Collects findings of one command, and shell texts inside it that are to be classified as lines of their own."""

    __slots__ = ("findings", "program", "rules", "runs", "texts")

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.findings: list[Finding] = []
        self.texts: list[tuple[str, str]] = []
        self.program = ""
        self.runs = 0

    def simple(self, command: Simple) -> None:
        self.assign(command.assignments)
        for redirection in command.redirections:
            self.redirect(redirection.operator, redirection.target)
        if command.words:
            self.run(command.words, command.fed, 0)

    def assign(self, assignments: Sequence[tuple[str, str]]) -> None:
        for name, value in assignments:
            finding, text = variables.assigned(name, value)
            if finding is not None:
                self.findings.append(finding)
            if text:
                self._text(text, "")

    def redirect(self, operator: str, target: str) -> None:
        if _NETWORK_FILE.match(target):
            self.findings.append(Finding(DANGEROUS, "opens a network connection", (NETWORK,)))
        if ">" not in operator or operator in (">&-", "<&-"):
            return
        if operator in (">&", "<&") and (target.isdigit() or target.rstrip("-").isdigit() or target == "-"):
            return
        finding = places.target(target)
        if finding is not None:
            self.findings.append(finding)

    def run(self, words: Sequence[str], fed: str, depth: int) -> None:
        name = words[0]
        self.runs += 1
        if depth > MAX_INNER or self.runs > MAX_RUNS:
            self.findings.append(_TOO_DEEP)
            return
        if depth == 0 and any(MAYBE in word for word in words):
            self.run([word.replace(MAYBE, "") or "''" for word in words], fed, depth + 1)
        if len(words) > 1 and _ASSIGNMENT.fullmatch(name):
            # Behind a wrapper that takes none, this is the name of a program; do not rest on that.
            self.findings.append(_ELSEWHERE)
            variable, _, value = name.partition("=")
            self.assign([(variable, value)])
            self.run(words[1:], fed, depth + 1)
            return
        if UNKNOWN.search(name):
            self.findings.append(_UNNAMED)
            self.program = self.program or show(name)
            return
        verb = name
        if "/" in name:
            directory, _, verb = name.rpartition("/")
            if not _SYSTEM_DIRECTORY.fullmatch(directory + "/"):
                self.findings.append(_ELSEWHERE)
        self.program = self.program or verb
        arguments = list(words[1:])
        self.findings.extend(self.rules.raised(name, verb, arguments))
        self._program(verb, arguments, fed, depth)

    def _program(self, verb: str, arguments: list[str], fed: str, depth: int) -> None:
        if verb not in VERBS:
            verb = _family(verb)
        language = interpreters.interpreter(verb)
        rows = VERBS.get(verb)
        wrapped = wrappers.wrapper(verb, arguments)
        if language is not None:
            self._interpreter(language, verb, arguments, fed)
        elif rows is None and wrapped is None:
            self.findings.append(Finding(CAUTION, f"unknown program {show(verb)}"))
        elif arguments in _ABOUT:
            self.findings.append(_ABOUT_ITSELF)
        else:
            if wrapped is not None:
                self._wrapper(*wrapped, verb, fed, depth)
            if rows is not None and (wrapped is None or wrapped[0].sub or verb == "ssh"):
                self._table(rows, verb, arguments, fed, depth)

    def _interpreter(self, row: interpreters.Interpreter, verb: str, arguments: list[str], fed: str) -> None:
        reading = interpreters.read(row, verb, arguments, fed)
        self.findings.extend(reading.findings)
        for text in reading.shells:
            self._text(text, fed)

    def _wrapper(self, row: Wrapper, words: list[str], verb: str, fed: str, depth: int) -> None:
        inside = wrappers.look_inside(row, verb, words, sudo_password=self.rules.sudo_password)
        self.findings.extend(inside.findings)
        if not inside.known:
            self.findings.append(Finding(CAUTION, f"an option of {verb} that is not known"))
        self.assign(inside.assignments)
        for inner in inside.commands:
            feeds = "" if row.rest == ARGS else fed
            if row.sub and not fed and has_option(words, "-t --tty"):
                feeds = TERMINAL
            self.run(inner, feeds, depth + 1)
        for text in inside.texts:
            self._text(text, fed)
        if verb == "ssh" and fed and not inside.texts and not inside.commands:
            self.findings.append(
                Finding(DANGEROUS, f"a shell on another machine runs text from {fed}", ("exec",))
            )

    def _text(self, text: str, fed: str) -> None:
        if UNKNOWN.search(text):
            self.findings.append(_HIDDEN_TEXT)
            text = UNKNOWN.sub("x", text)
        self.texts.append((text, fed))

    def _table(self, rows: Verb, verb: str, arguments: list[str], fed: str, depth: int) -> None:
        if verb in _DASHLESS and arguments and _BUNDLE.fullmatch(arguments[0]):
            arguments = ["-" + arguments[0], *arguments[1:]]
        call = Call(verb, arguments, fed)
        if rows.options is not None:
            find_sub(call, rows.options)
        chosen = rows.select(call.sub[0] if call.sub else "")
        level = self._base(chosen, call)
        for sharp_pattern, sharp, finding in chosen.sharps:
            if (not sharp_pattern or sub_fits(sharp_pattern, call.sub)) and sharp_fits(sharp, call):
                self.findings.append(finding)
        for look_pattern, look in chosen.looks:
            if not look_pattern or sub_fits(look_pattern, call.sub):
                self.findings.extend(look.check(call))
        if call.uncertain:
            self.findings.append(_UNSEEN_OPTION)
        if level is SAFE and (chosen.sharps or chosen.looks) and _may_hide_option(arguments):
            self.findings.append(_MAYBE_OPTION)
        for inner in call.runs:
            if inner:
                self.run(inner, "", depth + 1)
        for text in call.shells:
            self._text(text, "")

    def _base(self, chosen: Selection, call: Call) -> Level:
        for pattern, row, finding in chosen.bases:
            if (not pattern or sub_fits(pattern, call.sub)) and base_fits(row, call, len(pattern)):
                self.findings.append(finding)
                return row.level
        self.findings.append(Finding(CAUTION, f"{call.verb} changes something"))
        return CAUTION


def _may_hide_option(words: list[str]) -> bool:
    for word in words:
        if word == "--":
            return False
        if may_be_option(word):
            return True
    return False


def _family(verb: str) -> str:
    """One name for many: ``python3.11``, ``mkfs.ext4``, the dynamic loader."""
    if _MKFS.fullmatch(verb):
        return "mkfs"
    if _LOADER.fullmatch(verb):
        return "ld.so"
    return interpreters.unversioned(verb)
