"""What happens at each level, and an answer that is bound to exactly what will run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.record import Record
from corral.risk.judge import ALLOW, ASK, REFUSE, Posture, classify, decided
from corral.risk.levels import Level
from corral.risk.user import Rules
from corral.risk.verdict import Verdict

ACTIONS = (ALLOW, ASK, REFUSE)
BLOCKED, UNAPPROVED, HARDLINE = "command_blocked", "approval_required", "command_hardline"

_SUGGESTION = "pass force:true in args to override, or use a less-destructive command"
_NO_FORCE = "use a less-destructive command, or have the person who runs this host allow it"
_HARDLINE = "no approval and no force lifts this; use a command that does less"


class Approval(Record):
    """A host's choice: ``allow``, ``ask`` or ``refuse`` at each level.

    `flag_forms` = ``ask`` also asks for the forms `decide` names (in-place edits where the jail is not proven, inline
    code, sending). `allow_force`: whether a caller's ``force: true`` counts. Nothing here lifts a hardline refusal.
    """

    safe: str = ALLOW
    caution: str = ALLOW
    dangerous: str = REFUSE
    flag_forms: str = ALLOW
    allow_force: bool = True

    def __post_init__(self) -> None:
        for name in ("safe", "caution", "dangerous", "flag_forms"):
            if getattr(self, name) not in ACTIONS:
                raise ValueError(
                    f"approval.{name} is {getattr(self, name)!r}; it must be allow, ask or refuse"
                )

    def at(self, level: Level) -> str:
        return {"safe": self.safe, "caution": self.caution, "dangerous": self.dangerous}[str(level)]


class Answer(Record):
    """What an approver says, for the digest it was asked about."""

    digest: str
    allowed: bool


class Request(Record):
    """What an approver is shown. It answers with `allow` or `deny` of the same request."""

    command: str
    cwd: str
    digest: str
    verdict: Verdict

    def allow(self) -> Answer:
        return Answer(self.digest, True)

    def deny(self) -> Answer:
        return Answer(self.digest, False)


Approver = Callable[[Request], Answer]


class Decision(Record):
    """Whether the command may run, why, and for exactly which command.

    `by` says who decided: ``level``, ``approver``, ``force``, ``headless`` or ``hardline``.
    """

    allowed: bool
    by: str
    digest: str
    verdict: Verdict
    forced: bool = False
    error: str = ""
    suggestion: str = ""
    code: str = ""

    def covers(self, digest: str) -> bool:
        """Whether this decision allows the command with that digest, and no other."""
        return self.allowed and digest == self.digest


def digest(command: str, cwd: str = "", extra: Mapping[str, str] | None = None) -> str:
    """A digest of exactly what will run: the text, where, and what else the host binds to it (mode, environment)."""
    import hashlib

    total = hashlib.sha256(b"corral-command-1")
    for field in (command, cwd, *(text for pair in sorted((extra or {}).items()) for text in pair)):
        raw = field.encode("utf-8", "surrogatepass")
        total.update(len(raw).to_bytes(8, "big"))
        total.update(raw)
    return total.hexdigest()


def review(
    command: str,
    approval: Approval,
    approver: Approver | None = None,
    force: bool = False,
    posture: Posture | None = None,
    *,
    cwd: str = "",
    extra: Mapping[str, str] | None = None,
    rules: Rules | None = None,
) -> Decision:
    """Classifies, applies the host's choice, asks if that is the choice. With nobody to ask, asking is refusing.

    What an approver raises is raised: nobody said yes, and nothing runs.
    """
    verdict = classify(command, rules if rules is not None else Rules())
    request = Request(command, cwd, digest(command, cwd, extra), verdict)
    if verdict.hardline:
        return _refused(
            request,
            "hardline",
            f"blocked by risk classifier: hardline — {verdict.reason}",
            _HARDLINE,
            HARDLINE,
        )
    action = _action(verdict, approval, posture)
    if action == ALLOW:
        return Decision(True, "level", request.digest, verdict)
    if action == ASK:
        return _asked(request, approver)
    if force and approval.allow_force:
        return Decision(True, "force", request.digest, verdict, forced=True)
    error = f"blocked by risk classifier: {verdict.level} — {verdict.reason}"
    return _refused(request, "level", error, _SUGGESTION if approval.allow_force else _NO_FORCE, BLOCKED)


def _action(verdict: Verdict, approval: Approval, posture: Posture | None) -> str:
    action = approval.at(verdict.level)
    if (
        action == ALLOW
        and approval.flag_forms != ALLOW
        and verdict.forms
        and decided(verdict, posture) != ALLOW
    ):
        return approval.flag_forms
    return action


def _asked(request: Request, approver: Approver | None) -> Decision:
    if approver is None:
        error = (
            f"blocked: this command needs approval and nobody is there to give it — {request.verdict.reason}"
        )
        return _refused(request, "headless", error, _NO_FORCE, UNAPPROVED)
    answer = approver(request)
    if answer == request.allow():
        return Decision(True, "approver", request.digest, request.verdict)
    return _refused(
        request,
        "approver",
        f"blocked: approval was not given — {request.verdict.reason}",
        _NO_FORCE,
        UNAPPROVED,
    )


def _refused(request: Request, by: str, error: str, suggestion: str, code: str) -> Decision:
    return Decision(False, by, request.digest, request.verdict, False, error, suggestion, code)
