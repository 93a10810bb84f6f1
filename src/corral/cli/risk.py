"""`corral risk 'COMMAND LINE'`: a verdict, readable on a terminal, JSON otherwise. Runs nothing."""

from __future__ import annotations

import os
import sys

from corral.config import load_policy
from corral.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.approval import Approval
    from corral.risk.approval import Decision

USAGE = """usage: corral risk [OPTION …] 'COMMAND LINE'     advice, never the wall: the jail is the wall

  --json             JSON, on a terminal too
  --check            say whether your config would let it run; exit code 0 yes, 2 somebody would have
                     to approve it, 125 no
  --yes              with --check: as if a person approved whatever would be asked
  --profile NAME     use this profile of your config
  -C, --config FILE  read FILE instead of your corral.toml

Exit code 0 with any verdict; 2 the command line or the config is wrong; 125 the parser is missing."""
SWITCHES = ("--json", "--check", "--yes")
VALUED = {"--profile": "--profile", "--config": "--config", "-C": "--config"}


def main(subcommand: str, words: list[str]) -> int:
    options, rest = _parsed(words)
    if "--help" in options:
        print(USAGE)
        return 0
    if len(rest) != 1:
        import shlex

        meant = f"; did you mean: corral risk {shlex.quote(' '.join(rest))}" if rest else ""
        raise PolicyError(f"corral risk takes one command line, in a single argument{meant}")
    here = _here()
    approval = load_policy(options.get("--profile"), here, options.get("--config")).approval
    decision = _decision(rest[0], approval, here, options) if "--check" in options else None
    _report(rest[0], approval, decision, "--json" in options)
    return 0 if decision is None else decision.exit_code


def _parsed(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options up to the first word that is none, or up to ``--``."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            options["--help"] = ""
        elif word in SWITCHES:
            options[word] = ""
        elif name in VALUED:
            if not equals and not rest:
                raise PolicyError(f"{name} needs a value; try --help")
            options[VALUED[name]] = value if equals else rest.pop(0)
        else:
            raise _unknown(name)
    if "--yes" in options and "--check" not in options:
        raise PolicyError("--yes goes with --check")
    return options, rest


def _unknown(name: str) -> PolicyError:
    from corral.policy import nearest

    near = nearest(name, (*SWITCHES, *VALUED, "--help"))
    return PolicyError(f"unknown option {name}{near}; a command line that begins like that goes after --")


def _here() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def _decision(command: str, approval: Approval, here: str | None, options: dict[str, str]) -> Decision:
    from corral.risk.approval import Request, review

    approver = Request.allow if "--yes" in options else None
    return review(command, approval, approver, cwd=here or "")


def _report(command: str, approval: Approval, decision: Decision | None, as_json: bool) -> None:
    from corral.risk.judge import classify
    from corral.risk.report import to_json, to_text
    from corral.risk.user import rules_of

    verdict = decision.verdict if decision is not None else classify(command, rules_of(approval.rows))
    if as_json or not sys.stdout.isatty():
        print(to_json(verdict, decision))
        return
    print(to_text(verdict, colour="NO_COLOR" not in os.environ))
    if decision is not None:
        print("may run" if decision.allowed else f"{decision.error}\n{decision.suggestion}")
