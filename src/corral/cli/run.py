"""`corral run` and `corral sh`: build the plan, then become the launcher."""

from __future__ import annotations

import os
import sys

from corral.cli import harmless
from corral.cli.options import help_text, parse
from corral.cli.setup import prepare
from corral.variables import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from corral.cli.setup import Ready
    from corral.jail.enclosure import Enclosure
    from corral.variables import Scrubbed
else:
    import _signal  # without the enums that cost 6 ms

USAGE = {
    "run": "usage: corral run [OPTION …] [CMD ARGS …]     no CMD: your shell",
    "sh": "usage: corral sh [OPTION …] 'LINE'             one shell line, in a single argument",
}
STATUS_SLOT = 1022
TEMP_VARIABLES = ("TMPDIR", "TMP", "TEMP")


def main(subcommand: str, words: list[str]) -> int:
    parsed = parse(words)
    if parsed.has("--help"):
        print(help_text(USAGE[subcommand]))
        return 0
    import gc

    gc.disable()  # what it would find in the little that is made here costs more to look for than it weighs
    ready = prepare(subcommand, parsed)
    enclosure = ready.enclosure
    if enclosure.choice.backend == "none":
        scrubbed = scrub((), os.environ)
    else:
        scrubbed = scrub(enclosure.policy.environment, os.environ)
    if sys.stderr.isatty() and not parsed.has("--quiet"):
        print(harmless(first_line(ready, scrubbed)), file=sys.stderr)
        for notice in enclosure.notices:
            print(f"corral: {harmless(notice)}", file=sys.stderr)
    elif enclosure.choice.backend == "none" and enclosure.policy.mode != "off":
        print(harmless(first_line(ready, scrubbed)), file=sys.stderr)  # said loudly, whoever listens
    variables = dict(scrubbed.variables)
    variables["PWD"] = enclosure.root.path
    if ready.private and ready.settings.agent is not None:
        from corral.config.seeding import seed_private

        seed_private(ready.settings.agent, ready.private)
    if enclosure.choice.backend in ("namespaces", "systemd-run"):
        for name in TEMP_VARIABLES:
            variables.pop(name, None)
        add_summary(enclosure, variables)
        if enclosure.choice.backend == "systemd-run":
            from corral.cli.unit import run_in_unit

            return run_in_unit(ready, variables)
    watch = None
    if sys.stderr.isatty() and not parsed.has("--quiet") and enclosure.choice.backend != "none":
        from corral.cli.afterwards import Watch

        watch = Watch(enclosure)
    group = enclosure.new_group()
    if (
        enclosure.choice.backend == "namespaces"
        and enclosure.jail is None
        and watch is None
        and group is None
    ):
        record(ready)
        become_launcher(ready, variables)
    from corral.cli.stay import run_attached

    return run_attached(ready, variables, watch, group)


def record(ready: Ready, exit_code: int | None = None) -> None:
    """One line of the audit. Where this process becomes the command, its end is not known."""
    from corral.audit import Audit
    from corral.environment.base import posture_of

    enclosure = ready.enclosure
    posture = posture_of(enclosure.policy, enclosure.choice)
    Audit.here().record_run(ready.argv, posture, cwd=enclosure.root.path, exit_code=exit_code, front="run")


def add_summary(enclosure: Enclosure, variables: dict[str, str], beside: str | None = None) -> None:
    """`corral why` works inside too: from a file that ``$CORRAL`` names."""
    from corral.denials.summary import publish

    path = publish(enclosure, beside)
    if path is not None:
        variables["CORRAL"] = path


def become_launcher(ready: Ready, variables: dict[str, str]) -> None:
    """No interpreter stays behind: the launcher takes this process over, and with it our caller's view of us."""
    from corral.jail.host import launcher_path

    enclosure = ready.enclosure
    plan, words = enclosure.launchable(ready.argv)
    reset_signals()
    front = wall_clock(ready)
    for fd in plan.passed:
        os.set_inheritable(fd, True)
    fd = os.memfd_create("plan", 0)
    content = memoryview(front + words)
    while content:
        content = content[os.write(fd, content) :]
    path = launcher_path()
    os.execve(path, [path, "--plan-fd", str(fd)], variables)


def wall_clock(ready: Ready) -> bytes:
    wall = ready.enclosure.policy.limits.wall
    return b"" if wall is None else b"deadline\0%d\0" % max(1, round(wall * 1000))


def reset_signals() -> None:
    """Python ignores these two, and the command would inherit that."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)


def first_line(ready: Ready, scrubbed: Scrubbed) -> str:
    enclosure = ready.enclosure
    policy = enclosure.policy
    if enclosure.choice.backend == "none":
        why = f" ({'; '.join(enclosure.choice.passed_over)})" if enclosure.choice.passed_over else ""
        return f"corral: NOT JAILED{why}: this command can do all that you can"
    home = os.environ.get("HOME", "")
    places = [place.path for place in enclosure.writable]
    shown = ", ".join("~" + p[len(home) :] if home and p.startswith(home + "/") else p for p in places)
    parts = [
        f"{policy.mode} ({enclosure.choice.backend})" + (f", {ready.why_mode}" if ready.why_mode else ""),
        f"writable: {shown or 'nothing but a private /tmp'}",
        f"network {policy.network}",
        f"{enclosure.hidden_count()} paths hidden",
        f"{len(scrubbed.removed)} variables removed",
    ]
    if enclosure.choice.passed_over:
        parts.append("; ".join(enclosure.choice.passed_over))
    return "corral: " + " · ".join(parts)
