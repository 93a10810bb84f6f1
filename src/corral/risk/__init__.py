"""How dangerous is this command line? Advice for people and policies; never the wall. The jail is the wall."""

from __future__ import annotations

from corral.risk.approval import Approval, Decision, Request, digest, review
from corral.risk.judge import classify, decide
from corral.risk.levels import Finding, Level
from corral.risk.table import Base, Globals, Look, Sharp
from corral.risk.tree import ParserMissing
from corral.risk.user import BadRule, Lower, Raise, Rules
from corral.risk.verdict import Part, Verdict

__all__ = [
    "Approval",
    "BadRule",
    "Base",
    "Decision",
    "Finding",
    "Globals",
    "Level",
    "Look",
    "Lower",
    "ParserMissing",
    "Part",
    "Raise",
    "Request",
    "Rules",
    "Sharp",
    "Verdict",
    "classify",
    "decide",
    "digest",
    "review",
]
