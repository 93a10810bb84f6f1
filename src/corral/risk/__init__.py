"""How dangerous is this command line? Advice for people and policies; never the wall. The jail is the wall."""

from __future__ import annotations

from corral.approval import Approval, RiskRow
from corral.risk.approval import Decision, Request, Reviewer, digest, review
from corral.risk.judge import classify, decide
from corral.risk.levels import Finding, Level
from corral.risk.loops import DoomLoop
from corral.risk.table import Base, Globals, Look, Sharp
from corral.risk.tree import ParserMissing
from corral.risk.user import BadRule, Exact, Raise, Rules
from corral.risk.verdict import Part, Verdict

__all__ = [
    "Approval",
    "BadRule",
    "Base",
    "Decision",
    "DoomLoop",
    "Exact",
    "Finding",
    "Globals",
    "Level",
    "Look",
    "ParserMissing",
    "Part",
    "Raise",
    "Request",
    "Reviewer",
    "RiskRow",
    "Rules",
    "Sharp",
    "Verdict",
    "classify",
    "decide",
    "digest",
    "review",
]
