"""git arguments that a row cannot judge: settings that name programs, refspecs, output files."""

from __future__ import annotations

from collections.abc import Iterator

from corral.risk import places
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, WRITE, Finding
from corral.risk.table import Call
from corral.risk.words import may_be_option

_RUNS = frozenset(
    {
        "diff.external",
        "core.pager",
        "core.sshcommand",
        "core.fsmonitor",
        "core.hookspath",
        "core.editor",
        "core.gitproxy",
        "core.askpass",
        "sequence.editor",
        "gpg.program",
        "gpg.ssh.program",
        "uploadpack.packobjectshook",
        "credential.helper",
        "init.templatedir",
        "interactive.difffilter",
        "core.alternaterefscommand",
        "core.attributesfile",
        "include.path",
    }
)
_RUNS_ENDING = (
    ".textconv",
    ".clean",
    ".smudge",
    ".process",
    ".command",
    ".cmd",
    ".driver",
    ".path",
    ".helper",
    ".sshcommand",
    ".program",
    ".proxy",
)


def setting(text: str) -> Finding | None:
    """What ``-c name=value`` does: some settings are programs."""
    name, _, value = text.partition("=")
    name = name.lower()
    if name.startswith("alias.") and value.startswith("!"):
        return Finding(DANGEROUS, "an alias that runs a command", (EXEC,))
    if (
        name in _RUNS
        or name.endswith(_RUNS_ENDING)
        or name.startswith(("pager.", "filter.", "alias.", "includeif."))
    ):
        if value in ("cat", "false", "true", "less", "") and name.endswith("pager"):
            return None
        return Finding(DANGEROUS, f"a setting that names a program: {name}", (EXEC,))
    return Finding(CAUTION, "changes a setting") if may_be_option(text) else None


def settings(call: Call) -> Iterator[Finding]:
    for at, word in enumerate(call.words):
        value = call.words[at + 1] if at + 1 < len(call.words) else ""
        if word == "-c" or word == "--config":
            if "." in value and (found := setting(value)):
                _follow_alias(call, value)
                yield found
        elif word.startswith(("--config-env", "--config=")):
            yield setting(word.partition("=")[2]) or Finding(CAUTION, "changes a setting")
        elif word.startswith("--exec-path="):
            yield Finding(DANGEROUS, "runs git's own programs from elsewhere", (EXEC,))


def _follow_alias(call: Call, text: str) -> None:
    name, _, value = text.partition("=")
    if name.lower().startswith("alias.") and value.startswith("!"):
        call.shells.append(value[1:])
    elif name.lower().startswith("alias."):
        call.runs.append(["git", *value.split()])


def configured(call: Call) -> Iterator[Finding]:
    """``git config name value`` writes what a later git runs."""
    operands = call.operands()
    if len(operands) > 1 and (found := setting("=".join(operands[:2]))):
        yield found


def pushed(call: Call) -> Iterator[Finding]:
    for word in call.operands()[1:]:
        if word.startswith(("+", ":")):
            yield Finding(DANGEROUS, "rewrites or deletes what others have", (NETWORK,))


def output(call: Call) -> Iterator[Finding]:
    for path in call.values("--output"):
        yield places.target(path) or Finding(CAUTION, "writes a file", (WRITE,))


def checked_out(call: Call) -> Iterator[Finding]:
    words = list(call.rest)
    if "--" in words or any(word in (".", "./", "*", ":/") for word in words):
        yield Finding(DANGEROUS, "throws away changes that are not committed")
