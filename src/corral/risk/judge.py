"""`classify` and `decide`: the whole way from a line to a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from corral.risk import trust
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, OPENS, SAFE, WRITE, Finding, Level
from corral.risk.parse import parse
from corral.risk.script import PIPE, Script
from corral.risk.user import Rules
from corral.risk.verdict import Part, Verdict
from corral.risk.words import show

if TYPE_CHECKING:
    from corral.risk.assess import Assessment

ALLOW, ASK, REFUSE = "allow", "ask", "refuse"
MAX_TEXTS = 8
"""Shell text inside shell text; deeper is hidden on purpose."""
MAX_ROUGH = 2
MAX_PARTS = 10_000
MAX_REASONS = 20
MAX_SHOWN = 500

_NO_RULES = Rules()
_DEEP = Finding(DANGEROUS, "nested too deeply to follow")
_BOMB = Finding(DANGEROUS, "a fork bomb", (), hardline=True)
_BACKGROUND = Finding(CAUTION, "leaves something running in the background")
_HEREDOC = Finding(CAUTION, "holds a here-document")
_CALCULATES = Finding(CAUTION, "calculates with a variable, which may run what it holds")
_ONLY_ASSIGNS = Finding(CAUTION, "only sets variables")
_DECLARES = frozenset({"export", "declare", "typeset", "readonly", "local"})
_INDIRECT = Finding(CAUTION, "the program's name is not written out")


class Posture(Protocol):
    """What `decide` needs to know of the jail: proven or not."""

    @property
    def enforcing(self) -> bool: ...


def classify(command: str, rules: Rules = _NO_RULES, *, shfmt: str | None = None) -> Verdict:
    """How dangerous is this command line? Runs nothing of it, reads nothing but the text.

    `shfmt`: a program to ask for a second opinion (`corral.risk.second.find_shfmt`); it can only raise the level.
    """
    if not command.strip():
        return Verdict(CAUTION, ("empty command",), ())
    line = _Line(rules)
    line.read(command, "", 0)
    if shfmt is not None:
        line.ask(shfmt, command)
    verdict = line.verdict()
    own = rules.level_of(command)
    return verdict if own is None or verdict.hardline else _owned(command, verdict, own)


def _owned(command: str, verdict: Verdict, own: Finding) -> Verdict:
    """The user has said what exactly this line is."""
    program = verdict.parts[0].program if verdict.parts else ""
    part = Part(command[:MAX_SHOWN], program, own.level, (own.reason,))
    return Verdict(own.level, (own.reason,), (part,))


def decide(command: str, posture: Posture | None = None, rules: Rules = _NO_RULES) -> str:
    """``allow``, ``ask`` or ``refuse``. A posture that is present but not enforcing counts as none."""
    return decided(classify(command, rules), posture)


def decided(verdict: Verdict, posture: Posture | None = None) -> str:
    if verdict.hardline:
        return REFUSE
    if verdict.level is DANGEROUS:
        return ASK
    asking = {EXEC, NETWORK, OPENS}
    if posture is None or posture.enforcing is not True:
        asking.add(WRITE)
    return ASK if asking.intersection(verdict.forms) else ALLOW


class _Line:
    """One command line and the lines inside it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.parts: list[Part] = []
        self.whole: list[Finding] = []
        self.worst: Level = SAFE
        self.hardline = False
        self.forms: set[str] = set()
        self.left_out = 0
        self.seen: set[tuple[str, str]] = set()

    def read(self, command: str, fed: str, depth: int) -> None:
        if depth > MAX_TEXTS:
            self.whole.append(_DEEP)
            return
        if why := trust.unreadable(command):
            self.whole.append(Finding(DANGEROUS, why))
            return
        script = parse(command)
        self._whole(script)
        inner = self._commands(script, fed)
        if script.doubts:
            texts = self._roughly(script.text)
            # Each level would double the work; what is hidden deeper than this is in doubt already.
            inner += texts if depth < MAX_ROUGH else []
        for text, feeding in inner:
            if (text, feeding) not in self.seen:
                self.seen.add((text, feeding))
                self.read(_utf8(text), feeding, depth + 1)

    def ask(self, shfmt: str, command: str) -> None:
        """Adds what a second parser saw, where it is worse."""
        from corral.risk.assess import Assessment
        from corral.risk.second import commands_seen

        seen = commands_seen(shfmt, command)
        if seen is None:
            self.whole.append(Finding(CAUTION, "shfmt cannot read it"))
        for words in seen or ():
            assessment = Assessment(self.rules)
            if words:
                assessment.run(words, "", 0)
            part = _joined(" ".join(words)[:MAX_SHOWN], assessment.program, assessment.findings)
            if part.level > self.worst or part.hardline > self.hardline:
                self._keep(part)

    def _commands(self, script: Script, fed: str) -> list[tuple[str, str]]:
        from corral.risk.assess import Assessment

        inner: list[tuple[str, str]] = []
        only_assigns = bool(script.commands)
        # Taken from the list one by one, so that a line of a million commands is not kept twice.
        script.commands.reverse()
        while script.commands:
            command = script.commands.pop()
            assessment = Assessment(self.rules)
            command.fed = command.fed or fed
            assessment.simple(command)
            if command.indirect:
                assessment.findings.append(_INDIRECT)
            if command.redirections or (
                command.words and not (command.assignments and command.words[0] in _DECLARES)
            ):
                only_assigns = False
            start, end = command.span
            self._part(script.text[start : min(end, start + MAX_SHOWN)], assessment)
            inner.extend(assessment.texts)
        if only_assigns:
            self.whole.append(_ONLY_ASSIGNS)
        return inner

    def _part(self, latin: str, assessment: Assessment) -> None:
        self._keep(_joined(_utf8(latin), _utf8(assessment.program), assessment.findings))

    def _keep(self, part: Part) -> None:
        """Every part up to a number nobody reads; from there on only what is worse, and a count of the rest."""
        if len(self.parts) < MAX_PARTS or part.level > self.worst or part.hardline > self.hardline:
            self.parts.append(part)
        else:
            self.left_out += 1
            self.forms.update(part.forms)
        self.worst = max(self.worst, part.level)
        self.hardline = self.hardline or part.hardline

    def _whole(self, script: Script) -> None:
        whole = self.whole
        if script.too_deep:
            whole.append(_DEEP)
        if script.self_feeding:
            whole.append(_BOMB)
        if script.background:
            whole.append(_BACKGROUND)
        if script.heredoc:
            whole.append(_HEREDOC)
        if script.calculates:
            whole.append(_CALCULATES)
        whole.extend(
            Finding(CAUTION, f"not sure to be read as bash reads it: {why}") for why in script.doubts
        )
        if not script.commands and not script.doubts and script.text.strip()[:1] != "#":
            whole.append(Finding(CAUTION, "no command found"))

    def _roughly(self, text: str) -> list[tuple[str, str]]:
        """The crude reading adds only dangerous commands that are not known already."""
        from corral.risk import rough
        from corral.risk.assess import Assessment

        inner: list[tuple[str, str]] = []
        known = {(part.program, part.hardline) for part in self.parts if part.level is DANGEROUS}
        for words, piped, targets in rough.commands(text):
            assessment = Assessment(self.rules)
            for target in targets:
                assessment.redirect(">", target)
            if words:
                assessment.run(words, PIPE if piped else "", 0)
            part = _joined(show(" ".join(words)[:MAX_SHOWN]), show(assessment.program), assessment.findings)
            if part.level is DANGEROUS and (part.program, part.hardline) not in known:
                self._keep(part)
            inner.extend(assessment.texts)
        return inner

    def verdict(self) -> Verdict:
        level = max([self.worst, *(finding.level for finding in self.whole)])
        if self.left_out:
            self.parts.append(Part(f"… {self.left_out} more commands", "", SAFE, ("none is worse",)))
        reasons: dict[str, None] = {}
        for part in self.parts:
            if part.level is level and len(reasons) < MAX_REASONS:
                reasons.update(dict.fromkeys(part.reasons))
        for finding in self.whole:
            if finding.level is level and len(reasons) < MAX_REASONS:
                reasons[finding.reason] = None
        forms = sorted(self.forms.union(*(part.forms for part in self.parts)))
        hardline = self.hardline or any(finding.hardline for finding in self.whole)
        return Verdict(level, tuple(reasons), tuple(self.parts), hardline, tuple(forms))


def _utf8(latin: str) -> str:
    """Text of the parser, one character a byte, as the text it was; what a ``$'\\u…'`` made stays."""
    if latin.isascii():
        return latin
    try:
        return latin.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return latin


def _joined(text: str, program: str, findings: list[Finding]) -> Part:
    if len(findings) == 1:
        only = findings[0]
        return Part(text, program, only.level, (only.reason,), only.forms, only.hardline)
    level: Level = SAFE
    hardline = False
    forms: set[str] = set()
    for finding in findings:
        if finding.level > level:
            level = finding.level
        hardline = hardline or finding.hardline
        if finding.forms:
            forms.update(finding.forms)
    reasons = dict.fromkeys(finding.reason for finding in findings if finding.level is level)
    return Part(text, program, level, tuple(reasons)[:MAX_REASONS], tuple(sorted(forms)), hardline)
