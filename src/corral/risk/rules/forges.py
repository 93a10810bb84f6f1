"""Forges, and version control that is not git."""

from __future__ import annotations

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE
from corral.risk.table import Base, Globals, Sharp

TABLE = (
    Globals("gh", "-R= --repo= --hostname=", depth=2),
    Base(
        "gh",
        SAFE,
        "reads from the forge",
        sub="pr|issue|run|release|repo|workflow|label|gist|project|cache|secret|variable|ruleset "
        "list|view|status|diff|checks",
    ),
    Base("gh", SAFE, "reads from the forge", sub="auth status"),
    Base("gh", SAFE, "reads from the forge", sub="search *"),
    Base("gh", SAFE, "reads from the forge", sub="status"),
    Base("gh", CAUTION, "changes something on the forge"),
    Sharp(
        "gh",
        DANGEROUS,
        "deletes on the forge",
        sub="repo|release|run|workflow|issue|gist|label|secret|variable|cache|project delete",
    ),
    Sharp("gh", DANGEROUS, "deletes on the forge", sub="api", args=r"(?i:delete|-x=?delete|--method=delete)"),
    Sharp("gh", DANGEROUS, "gives a token away", sub="auth token"),
    Sharp("gh", DANGEROUS, "runs a command", sub="alias set", forms=(EXEC,)),
    Sharp("gh", DANGEROUS, "installs foreign code", sub="extension install", forms=(EXEC,)),
    Base("glab hub svn hg jj fossil bzr", CAUTION, "changes a repository"),
)
