"""One command against a host's `Approval`, and an answer that is bound to exactly what will run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.approval import Approval
from corral.record import Record
from corral.risk.judge import ALLOW, ASK, REFUSE, Posture, classify, decided
from corral.risk.levels import DANGEROUS
from corral.risk.loops import DoomLoop
from corral.risk.user import Rules, rules_of
from corral.risk.verdict import Verdict

BLOCKED, UNAPPROVED, HARDLINE = "command_blocked", "approval_required", "command_hardline"
DENIED, REPEATED = "command_denied", "command_repeated"

_SUGGESTION = "pass force:true in args to override, or use a less-destructive command"
_NO_FORCE = "use a less-destructive command, or have the person who runs this host allow it"
_HARDLINE = "no approval and no force lifts this; use a command that does less"
_DENIED = "no approval and no force lifts this; it is a rule of the person who runs this host"
_REPEATED = "the same call was made again and again; change something first"

EXIT_REFUSED, EXIT_UNAPPROVED = 125, 2


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

    `by` says who decided: ``level``, ``allowed`` (by how it begins), ``approver``, ``force``, ``headless``,
    ``permission_rule`` (a refusing row of the user), ``doom_loop`` or ``hardline``. `warning`: it may run, and
    something is odd.
    """

    allowed: bool
    by: str
    digest: str
    verdict: Verdict
    forced: bool = False
    error: str = ""
    suggestion: str = ""
    code: str = ""
    warning: str = ""

    def covers(self, digest: str) -> bool:
        """Whether this decision allows the command with that digest, and no other."""
        return self.allowed and digest == self.digest

    @property
    def exit_code(self) -> int:
        """For a command line: 0 may run; 2 somebody would have to say yes; 125 refused."""
        if self.allowed:
            return 0
        return EXIT_UNAPPROVED if self.by == "headless" else EXIT_REFUSED


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
    repeated: DoomLoop | None = None,
) -> Decision:
    """Classifies, applies the host's choice, asks if that is the choice. With nobody to ask, asking is refusing.

    `rules`: in place of the rows of the approval. `repeated`: a loop that has noted this call already. What an approver
    raises is raised: nobody said yes, and nothing runs.
    """
    rules = rules if rules is not None else rules_of(approval.rows)
    verdict = classify(command, rules)
    request = Request(command, cwd, digest(command, cwd, extra), verdict)
    if verdict.hardline:
        return _never(request, rules)
    loops = repeated is not None and repeated.count > repeated.limit
    if loops and repeated is not None and repeated.stops:
        error = f"blocked: the same call {repeated.count} times in a row"
        return _refused(request, "doom_loop", error, _REPEATED, REPEATED)
    decision = _settled(request, approval, approver, force, posture, rules)
    return decision.replace(warning=_REPEATED) if loops else decision


def _never(request: Request, rules: Rules) -> Decision:
    """The floor, or a row of the user: nothing lifts either, but they are told apart."""
    reason = request.verdict.reason
    if any(row.refuse for row in rules.raises) and not classify(request.command).hardline:
        return _refused(
            request, "permission_rule", f"blocked by a rule of the user — {reason}", _DENIED, DENIED
        )
    error = f"blocked by risk classifier: hardline — {reason}"
    return _refused(request, "hardline", error, _HARDLINE, HARDLINE)


def _settled(
    request: Request,
    approval: Approval,
    approver: Approver | None,
    force: bool,
    posture: Posture | None,
    rules: Rules,
) -> Decision:
    verdict = request.verdict
    answers = _answers(verdict, approval, posture)
    if answers == {ALLOW}:
        return Decision(True, "level", request.digest, verdict)
    if verdict.level is not DANGEROUS and approval.allow:
        from corral.risk.allowed import is_allowed

        if is_allowed(request.command, approval, rules):
            return Decision(True, "allowed", request.digest, verdict)
    if REFUSE not in answers:
        return _asked(request, approver)
    # Force lifts a refusal; where a person should also be asked, it does not stand in for that person.
    liftable = approval.allow_force and ASK not in answers
    if force and liftable:
        return Decision(True, "force", request.digest, verdict, forced=True)
    error = f"blocked by risk classifier: {verdict.level} — {verdict.reason}"
    return _refused(request, "level", error, _SUGGESTION if liftable else _NO_FORCE, BLOCKED)


def _answers(verdict: Verdict, approval: Approval, posture: Posture | None) -> set[str]:
    answers = set(approval.answers(verdict.level))
    if verdict.forms and decided(verdict, posture) != ALLOW:
        answers.add(approval.flag_forms)
    return answers if len(answers) == 1 else answers - {ALLOW}


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


class Reviewer:
    """`review` for a session: one approval, one approver, and what was refused last.

    `last_refusal` is `Decision.by` of the last refusal, and empty again after the next command that may run.
    """

    def __init__(
        self,
        approval: Approval,
        approver: Approver | None = None,
        *,
        posture: Posture | None = None,
        rules: Rules | None = None,
        repeated: DoomLoop | None = None,
    ) -> None:
        self.approval = approval
        self.approver = approver
        self.posture = posture
        self.rules = rules
        self.repeated = repeated
        self.last_refusal = ""

    def review(
        self, command: str, *, force: bool = False, cwd: str = "", extra: Mapping[str, str] | None = None
    ) -> Decision:
        decision = review(
            command,
            self.approval,
            self.approver,
            force,
            self.posture,
            cwd=cwd,
            extra=extra,
            rules=self.rules,
            repeated=self.repeated,
        )
        self.last_refusal = "" if decision.allowed else decision.by
        return decision
