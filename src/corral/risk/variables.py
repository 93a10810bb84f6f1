"""Variables that change what a later program is: the loader's, the shell's, pagers and editors, search paths."""

from __future__ import annotations

import re

from corral.record import Record
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, Finding, Level


class Variable(Record):
    """A row: names that match. `runs`: the value is a command line and has its own level. `unless`: harmless values."""

    pattern: str
    level: Level
    reason: str
    runs: bool = False
    when: str = ""


VARIABLES = (
    Variable(
        r"LD_(?:PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|GCONV_PATH",
        DANGEROUS,
        "loads foreign code into the program",
    ),
    Variable(
        r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PROMPT_COMMAND|PS4",
        DANGEROUS,
        "is run by the shell itself",
    ),
    Variable(
        r"(?:GIT_|MAN|SYSTEMD_|GH_|DELTA_|BAT_|AWS_|PSQL_)?PAGER|GIT_(?:SEQUENCE_)?EDITOR|EDITOR|VISUAL"
        r"|FCEDIT|"
        r"GIT_EXTERNAL_DIFF|GIT_SSH_COMMAND|GIT_SSH|GIT_PROXY_COMMAND|GIT_ASKPASS|SSH_ASKPASS|SUDO_ASKPASS"
        r"|RSYNC_RSH|KUBECTL_EXTERNAL_DIFF|"
        r"CVS_RSH|BROWSER|LESSOPEN|LESSCLOSE|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER|RUSTC|CC|CXX|LD|AR|SHELL"
        r"|MAKE|PROXYCOMMAND",
        CAUTION,
        "names a program that is run",
        runs=True,
    ),
    Variable(
        r"GIT_CONFIG\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|GIT_DIR|GIT_COMMON_DIR",
        DANGEROUS,
        "changes which programs git runs",
    ),
    Variable(
        r"PATH",
        DANGEROUS,
        "finds programs in a directory anyone may fill",
        when=r"(?:.*:)?(?![/~$\ue000\ue001\ue004])[^:]*(?::.*)?",
    ),
    Variable(
        r"PATH",
        DANGEROUS,
        "finds programs in a directory anyone may fill",
        when=r"(?:.*:)?(?:/tmp|/var/tmp|/dev/shm)\b.*",
    ),
    Variable(r"PATH", CAUTION, "changes where programs are found"),
    Variable(
        r"NODE_OPTIONS",
        DANGEROUS,
        "loads code into node",
        when=r".*(?:--require|-r\b|--import|--loader|--eval).*",
    ),
    Variable(r"GOFLAGS", DANGEROUS, "runs a program in every build step", when=r".*-(?:toolexec|exec).*"),
    Variable(
        r"(?:PERL5OPT|RUBYOPT|PYTHONSTARTUP|PYTHONHOME|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)",
        DANGEROUS,
        "loads code into the interpreter",
    ),
    Variable(
        r"TAR_OPTIONS|RIPGREP_CONFIG_PATH|GREP_OPTIONS|RSYNC_OPTIONS|LESS|LESSKEY\w*|GZIP|XZ_OPT|MAKEFLAGS",
        CAUTION,
        "adds options to the program",
    ),
    Variable(
        r"(?:PYTHONPATH|NODE_PATH|PERL5LIB|RUBYLIB|CLASSPATH|NODE_OPTIONS|GOFLAGS|LUA_PATH|IFS)",
        CAUTION,
        "changes what the program loads or reads",
    ),
)
_ROWS = [
    (re.compile(row.pattern), re.compile(row.when, re.DOTALL) if row.when else None, row) for row in VARIABLES
]
_FIRST = frozenset("LDGBESPMAVFCRIN_TXJHKL")


def assigned(name: str, value: str) -> tuple[Finding | None, str]:
    """What this assignment does, and the command line that its value is ('' if it is none)."""
    if name[:1] not in _FIRST:
        return None, ""
    name = name.rstrip("+")
    for pattern, when, row in _ROWS:
        if pattern.fullmatch(name) and (when is None or when.fullmatch(value)):
            if row.runs:
                return None, value
            return Finding(row.level, f"{name} {row.reason}", (EXEC,) if row.level is DANGEROUS else ()), ""
    return None, ""
