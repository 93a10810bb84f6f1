"""run_shell: one bash line in the jail of the environment, after a look at how dangerous it is. The look is advice; the
jail is the wall."""

from __future__ import annotations

from corral.tools.arguments import Arguments, arg
from corral.tools.failures import Failure
from corral.tools.limits import (
    SHELL_COMMAND_CHARACTERS,
    SHELL_MEMORY_BYTES,
    SHELL_MOST_SECONDS,
    SHELL_OUTPUT_BYTES,
    SHELL_SECONDS,
)
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.environment.base import CommandResult
    from corral.environment.process import Process
    from corral.risk import Decision
    from corral.tools.call import Call
    from corral.tools.failures import Code
    from corral.tools.outcomes import Outcome
    from corral.tools.shell_output import Collector, Shown
    from corral.variables import EnvRule

# What a command gets of our environment; the policy's own `keep` and `set` come on top.
VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "TMPDIR", "TZ", "SHELL")
OWN_VARIABLES = ("CORRAL",)  # where `corral why` finds its summary inside
MOST_DENIALS = 5
SIGKILL = 9
HINT_CHARACTERS = 4096  # of the end of the output


class RunShell(Arguments):
    command: str = arg("a bash command line", least=1, most=SHELL_COMMAND_CHARACTERS)
    timeout: int = arg(f"seconds, at most {SHELL_MOST_SECONDS}", SHELL_SECONDS)
    dry_run: bool = arg("say what would run and how dangerous it is; run nothing", False)
    force: bool = arg("run it although it is dangerous; only where the host allows that", False)


def run(call: Call, args: RunShell) -> Reply:
    if not args.command.strip():
        raise Failure("command must not be blank", "invalid_args", risk="caution")
    if "\0" in args.command:
        raise Failure("command has a NUL character in it", "invalid_args", risk="caution")
    seconds = min(args.timeout, SHELL_MOST_SECONDS) if args.timeout > 0 else SHELL_SECONDS
    decision = _reviewed(call, args)
    risk = str(decision.verdict.level)
    meta: dict[str, Any] = {"risk": _risk(decision), "timeout": seconds}
    if args.dry_run:
        would = "run" if decision.allowed else "be refused"
        return Reply(
            f"[dry-run] would {would}: {args.command}",
            meta=meta,
            risk=risk,
            classification="success",
            as_is=True,
        )
    if not decision.allowed:
        code: Code = decision.code  # type: ignore[assignment] # every code of a decision is in the table
        raise Failure(decision.error, code, decision.suggestion, meta=meta, risk=risk)
    return _carried_out(call, args.command, seconds, decision, meta)


def _reviewed(call: Call, args: RunShell) -> Decision:
    from corral.risk import ParserMissing, classify, review

    environment = call.environment
    try:
        return review(
            args.command,
            call.policy.approval,
            call.engine.approver,
            args.force,
            environment.posture,
            cwd=call.workspace,
            extra={"mode": call.policy.mode, "network": str(call.policy.network)},
        )
    except ParserMissing as missing:
        # Nobody has looked at the command, so it counts as the worst.
        raise Failure(str(missing), "not_enforceable", str(missing.grant), risk="dangerous") from None
    except Exception as error:
        # The approver of the host may fail in any way; then nobody said yes.
        level = str(classify(args.command).level)
        raise Failure(f"blocked: nobody could be asked — {error}", "approval_required", risk=level) from error


def _risk(decision: Decision) -> dict[str, Any]:
    verdict = decision.verdict
    found: dict[str, Any] = {"level": str(verdict.level), "reasons": list(verdict.reasons), "by": decision.by}
    if verdict.hardline:
        found["hardline"] = True
    if decision.forced:
        found["forced"] = True
    if decision.warning:
        found["warning"] = decision.warning
    return found


# ---- running it ----


def _carried_out(call: Call, command: str, seconds: int, decision: Decision, meta: dict[str, Any]) -> Reply:
    from corral.tools.outcomes import TIMEOUT, classify
    from corral.tools.shell_output import Collector

    risk = str(decision.verdict.level)
    collector = Collector(call.spills)
    try:
        process = call.environment.start(
            ["bash", "-c", command],
            env=variables(call),
            timeout=seconds,
            output_limit=SHELL_MEMORY_BYTES,
            stderr="merged",
        )
        with process, call.cancel.calling(lambda: process.signal(SIGKILL)):
            flooded = _listen(call, process, collector)
            result = process.wait()
        shown = collector.shown(result.stdout_bytes)
    except Failure:
        raise
    except Exception as error:
        from corral.tools.failures import told

        failure = told(error)
        failure.risk = failure.risk or risk
        raise failure from error
    finally:
        collector.discard()
    outcome = classify(
        _last_program(decision), result.exit_code, timed_out=result.timed_out, signal=result.signal
    )
    exit_code = 124 if outcome.kind == TIMEOUT else result.exit_code
    meta |= _facts(result, shown, exit_code)
    if call.cancel.is_set():
        raise Failure(
            "canceled", "canceled", meta=meta, risk=risk, classification="signal", result=shown.text
        )
    if flooded:
        limit = SHELL_OUTPUT_BYTES >> 20
        raise Failure(
            f"the command printed more than {limit} MB and was ended",
            "resource_limit",
            "redirect the output into a file, or print less",
            meta=meta,
            risk=risk,
            classification="signal",
            result=shown.text,
        )
    text = _text(result, shown, outcome, exit_code, decision)
    return Reply(text, meta=meta, risk=risk, classification=outcome.kind, as_is=True)


def _listen(call: Call, process: Process, collector: Collector) -> bool:
    """All that it prints; whether that was too much."""
    reported = 0
    for output in process:
        collector.add(output.data)
        if collector.bytes > SHELL_OUTPUT_BYTES:
            process.signal(SIGKILL)
            return True
        if collector.bytes - reported > SHELL_MEMORY_BYTES or not reported:
            reported = collector.bytes
            call.report(collector.lines, None, "lines of output")
    return False


def variables(call: Call) -> dict[str, str]:
    """Ten names of our environment, then what the policy keeps and sets, in the order of its rules."""
    rules = call.policy.environment
    offered = call.environment.variables()
    kept = {name: value for name, value in offered.items() if _keeps(rules, name)}
    for number, rule in enumerate(rules):
        if rule.verb == "set" and _last_verb(rules[number:], rule.name) == "set":
            kept[rule.name] = rule.value
    return kept


def _keeps(rules: tuple[EnvRule, ...], name: str) -> bool:
    verb = _last_verb(rules, name)
    return verb == "keep" if verb else name in VARIABLES or name in OWN_VARIABLES


def _last_verb(rules: tuple[EnvRule, ...], name: str) -> str:
    from corral.variables import name_matches

    return next((rule.verb for rule in reversed(rules) if name_matches(rule.name, name)), "")


# ---- telling it ----


def _last_program(decision: Decision) -> tuple[str, ...]:
    """The program that set the exit status, if that is certain enough: everything before it only reads."""
    parts = [part for part in decision.verdict.parts if part.program]
    if not parts or any(part.level for part in parts[:-1]):
        return ()
    return (parts[-1].program,)


def _facts(result: CommandResult, shown: Shown, exit_code: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "exit_code": exit_code,
        "duration_ms": round(result.duration * 1000),
        "output": {"lines": shown.lines, "bytes": shown.bytes, "shown_lines": shown.shown_lines},
        "sandbox": result.posture.status_summary,
    }
    if result.signal is not None:
        facts["signal"] = result.signal
    if result.over and result.over != "deadline":
        facts["over"] = result.over
    if shown.spill:
        facts["output"]["spill"] = shown.spill
    if shown.rewritten:
        facts["rewritten"] = list(shown.rewritten)
    if result.not_covered:
        facts["not_covered"] = list(result.not_covered)
    if result.denials:
        facts["denials"] = [
            {"what": one.what, "operation": one.operation, "rule": one.rule}
            for one in result.denials[:MOST_DENIALS]
        ]
    return facts


def _text(result: CommandResult, shown: Shown, outcome: Outcome, exit_code: int, decision: Decision) -> str:
    from corral.tools.outcomes import ERROR, hint_for

    lines = [f"[exit: {exit_code}]"]
    if shown.text:
        lines.append(shown.text)
    lines.append(f"[classification: {outcome.kind} — {outcome.reason}]")
    for denial in result.denials[:MOST_DENIALS]:
        lines.append(denial.model_text())
    hint = hint_for(result.stdout[-HINT_CHARACTERS:]) if outcome.kind == ERROR and not result.denials else ""
    if hint:
        lines.append(f"[hint: {hint}]")
    if decision.warning:
        lines.append(f"[warning: {decision.warning}]")
    return "\n".join(lines)


TOOL = Tool(
    "run_shell",
    "Run a bash command in the sandbox of this workspace. Dangerous commands are refused.",
    RunShell,
    run,
    destructive=True,
    open_world=True,
)
