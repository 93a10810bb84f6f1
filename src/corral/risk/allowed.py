"""Commands that a user allows by how they begin: whole words, nothing around them, and never what is dangerous."""

from __future__ import annotations

from collections.abc import Sequence

from corral.approval import Approval
from corral.commands import allowed_words
from corral.risk import trust
from corral.risk.assess import Assessment
from corral.risk.levels import DANGEROUS, SAFE
from corral.risk.parse import parse
from corral.risk.script import Simple
from corral.risk.user import Rules, as_parsed
from corral.risk.words import UNKNOWN


def is_allowed(command: str, approval: Approval, rules: Rules) -> bool:
    """Whether every piece of the line begins with an entry, or is safe where what is safe runs.

    What is not sure to be read is not allowed.
    """
    if not approval.allow or trust.unreadable(command):
        return False
    script = parse(command)
    if (
        script.doubts
        or script.background
        or script.calculates
        or script.heredoc
        or script.self_feeding
        or script.too_deep
    ):
        return False
    beginnings = [tuple(map(as_parsed, allowed_words(entry))) for entry in approval.allow]
    pieces = script.commands
    return bool(pieces) and all(_fits(piece, beginnings, approval, rules) for piece in pieces)


def _fits(piece: Simple, beginnings: Sequence[tuple[str, ...]], approval: Approval, rules: Rules) -> bool:
    assessment = Assessment(rules)
    assessment.simple(piece)
    if piece.indirect or assessment.texts or any(f.forms or f.hardline for f in assessment.findings):
        return False
    level = max((finding.level for finding in assessment.findings), default=SAFE)
    if level is SAFE and approval.safe == "allow":
        return True
    if level is DANGEROUS or piece.assignments or any(map(UNKNOWN.search, piece.words)):
        return False
    around = Assessment(rules)
    for redirection in piece.redirections:
        around.redirect(redirection.operator, redirection.target)
    return not around.findings and any(
        tuple(piece.words[: len(beginning)]) == beginning for beginning in beginnings
    )
