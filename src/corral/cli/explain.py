"""`corral explain`: the plan in words or as JSON. Runs nothing."""

from __future__ import annotations

import os

from corral.claims import CLAIMS
from corral.cli import harmless
from corral.cli.options import help_text, parse
from corral.cli.setup import prepare
from corral.jail.plan import describe
from corral.policy import LIMITS
from corral.variables import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.cli.setup import Ready
    from corral.jail.delegation import Outlook
    from corral.jail.plan import Plan


def main(subcommand: str, words: list[str]) -> int:
    parsed = parse(words)
    if parsed.has("--help"):
        print(help_text("usage: corral explain [OPTION …] [CMD ARGS …]     the plan; runs nothing"))
        return 0
    ready = prepare("explain", parsed)
    outlook = memory_outlook(ready)
    plan = ready.enclosure.plan(ready.argv, group=outlook.group if outlook else "")
    text = as_json(ready, plan) if parsed.has("--json") else as_text(ready, plan)
    print("\n".join(harmless(line) for line in text.split("\n")))
    return 0


def memory_outlook(ready: Ready) -> Outlook | None:
    """How the limit on memory is held, where there is one and the host decides it."""
    if not ready.enclosure.wants_group():
        return None
    from corral.jail.delegation import outlook

    return outlook()


def summary(ready: Ready) -> dict[str, object]:
    enclosure = ready.enclosure
    policy = enclosure.policy
    jailed = enclosure.choice.backend != "none"
    limits = {name: getattr(policy.limits, name.replace("-", "_")) for name in LIMITS}
    outlook = memory_outlook(ready)
    return {
        "mode": policy.mode,
        "backend": enclosure.choice.backend,
        "passed_over": list(enclosure.choice.passed_over),
        "workspace": enclosure.root.path,
        "home": home_of(ready),
        "writable": [place.path for place in enclosure.writable],
        "writable_globs": enclosure.bounds,
        "read_only": [place.path for place in enclosure.read_only],
        "hidden": enclosure.hidden_paths(),
        "network": policy.network,
        "notes": list(ready.notes),
        "variables_removed": list(scrub(policy.environment, os.environ).removed) if jailed else [],
        "limits": {name: value for name, value in limits.items() if value is not None},
        "limits_held_by": outlook.words if outlook else "",
        "demanded": list(policy.demanded),
        "covered": list(enclosure.choice.covered),
        "not_covered": list(enclosure.choice.not_covered),
    }


def home_of(ready: Ready) -> dict[str, str]:
    """What the command has for a home, where what it writes there is kept, and who it is in it."""
    enclosure = ready.enclosure
    home, jail = enclosure.home, enclosure.jail
    if home is None or jail is None:
        return {"kind": "real"}
    kept = jail.part("changes" if home.copied else "home")
    kind = "copy" if home.copied else "private"
    return {"kind": kind, "path": home.place.path, "jail": jail.name, "kept": kept, "uid": str(home.uid)}


def _home_lines(ready: Ready) -> list[str]:
    facts = home_of(ready)
    if facts["kind"] == "real":
        return []
    what = (
        "a copy: what is written there stays in the jail"
        if facts["kind"] == "copy"
        else "empty at first, and kept"
    )
    lines = [f"{facts['path']}, {what}", f"jail {facts['jail']}, kept in {facts['kept']}"]
    if facts["uid"] != str(os.getuid()):
        lines.append(f"the command is user {facts['uid']} inside, and you on disk")
    return lines


def as_json(ready: Ready, plan: Plan) -> str:
    import json

    steps = [{"step": list(words), "why": why} for words, why in plan.steps]
    return json.dumps({**summary(ready), "argv": list(plan.argv), "steps": steps}, indent=2)


def as_text(ready: Ready, plan: Plan) -> str:
    facts = summary(ready)
    lines = [f"mode         {facts['mode']}", f"held by      {facts['backend']}"]
    lines += [f"             passed over: {reason}" for reason in ready.enclosure.choice.passed_over]
    lines.append(f"workspace    {facts['workspace']}")
    lines += _column("home", _home_lines(ready))
    if ready.enclosure.choice.backend == "none":
        return "\n".join([*lines, "NOT JAILED   the command can do all that you can", describe(plan)])
    writable = [place.path for place in ready.enclosure.writable] or ["nothing but what follows"]
    lines += _column("writable", [*writable, "a private temp directory, harmless devices"])
    lines += _column("globs", [f"{glob} → {bound}" for glob, bound in ready.enclosure.bounds.items()])
    lines += _column("read-only", [place.path for place in ready.enclosure.read_only])
    lines.append(f"network      {facts['network']}")
    lines += _column("notes", list(ready.notes))
    lines += _column("hidden", [f"{path}  ({how})" for path, how in ready.enclosure.hidden_paths().items()])
    removed = scrub(ready.enclosure.policy.environment, os.environ).removed
    lines.append(f"variables    {len(removed)} removed{': ' if removed else ''}{' '.join(removed)}")
    limits = facts["limits"]
    assert isinstance(limits, dict)
    lines.append(f"limits       {', '.join(f'{name} {value}' for name, value in limits.items()) or 'none'}")
    if facts["limits_held_by"]:
        lines.append(f"             held by {facts['limits_held_by']}")
    lines += _column("not covered", [f"{CLAIMS[claim]} ({claim})" for claim in plan.not_covered])
    return "\n".join([*lines, "", describe(plan)])


def _column(title: str, rows: list[str]) -> list[str]:
    return [f"{title if not n else '':<12} {row}" for n, row in enumerate(rows)]
