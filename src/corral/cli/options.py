"""The options of `run`, `sh` and `explain`: one table, read by the parser and by the help text.

Not argparse: importing it takes as long as the jail itself, and here options end at the first word that is not one.
"""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.policy import BACKENDS, LIMITS, MODES, Grant, Limits, Policy, nearest
from corral.record import Record
from corral.variables import EnvRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.config.settings import RunSettings

# names (the first is the canonical one), operand shown in help (empty: a switch), what it does
OPTIONS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("--mode", "-m"), "MODE", f"one of {', '.join(MODES)}"),
    (("--rw", "-d", "--dir"), "DIR", "DIR is writable too"),
    (("--ro", "-r"), "DIR", "DIR is visible, and read-only even inside a writable place"),
    (("--rw-create",), "DIR", "as --rw; made if it is missing"),
    (("--ro-optional",), "DIR", "as --ro; ignored if it is missing"),
    (("--no-grant", "-x"), "DIR", "take back an earlier grant of DIR"),
    (("--no-cwd", "-D"), "", "the working directory is not writable"),
    (("--hide", "--mask"), "PATH", "hide PATH, below home (./PATH: below the working directory)"),
    (("--unhide", "--unmask"), "NAME", "show what the default list or your config hides"),
    (("--desktop",), "", "open the screen and the session bus: the command can then act in your name"),
    (("--writable",), "GLOB", "only this below the working directory is writable (may repeat)"),
    (("--setenv",), "V[=X]", "pass variable V, or set it to X; or lift one pattern of the default list"),
    (("--unsetenv",), "PATTERN", "drop the variables that match"),
    (("--clean-env",), "", "drop every variable but the most basic"),
    (("--cd",), "DIR", "work in DIR instead of here"),
    (("--workspace",), "NAME", "work in this workspace (see corral workspace), on its own branch"),
    (("--network",), "off|open", "read-only and workspace-write: off unless said otherwise"),
    (("--timeout",), "SECONDS", "end the run after that (exit code 124)"),
    (("--limit",), "NAME=N", f"lower a limit: {', '.join(LIMITS)}; sizes take K, M, G"),
    (("--keep-fd",), "N", "leave descriptor N open for the command"),
    (("--backend",), "B", f"one of {', '.join(BACKENDS)}"),
    (("--degraded",), "", "accept the best tier this host has, and say what it does not hold"),
    (("--jail", "-j"), "NAME", "the jail whose home it is; otherwise one named after the project"),
    (("--storage",), "DIR", "keep jails in DIR"),
    (("--review",), "", "what is written to the workspace waits until you apply it"),
    (("--script",), "FILE", "bash code that is read before the command, which may be a function of it"),
    (("--initjail",), "PROGRAM", "run outside, once, in a jail's home when that was made"),
    (("--command",), "CODE", 'bash code that runs the command, which it finds in "$0" "$@"'),
    (("--config", "-C"), "FILE", "read FILE instead of your corral.toml and your file for the command"),
    (("--config-optional",), "FILE", "as --config, if it is there"),
    (("--profile",), "NAME", "use this profile of your config"),
    (("--no-profile",), "", "do without the built-in profile that goes by the command's name"),
    (("--quiet", "-q"), "", "do not print the first line"),
    (("--json",), "", "explain: print JSON"),
    (("--help", "-h"), "", "this text"),
)
CANONICAL = {name: (names[0], operand) for names, operand, _ in OPTIONS for name in names}
BASIC_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "LANG",
    "LC_*",
    "TZ",
    "PWD",
)


class Parsed(Record):
    """Options in the order they were given, and the words after them."""

    options: tuple[tuple[str, str], ...]
    words: tuple[str, ...]

    def has(self, name: str) -> bool:
        return any(option == name for option, _ in self.options)

    def all(self, name: str) -> list[str]:
        return [value for option, value in self.options if option == name]

    def last(self, name: str) -> str | None:
        values = self.all(name)
        return values[-1] if values else None


def parse(words: Sequence[str]) -> Parsed:
    """Options end at the first word that is not one, or after ``--``. Short ones may be bundled (``-Dd DIR``)."""
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            option, operand = _known(name)
            if operand and not has_value:
                value = _operand(name, rest)
            elif has_value and not operand:
                raise PolicyError(f"option {name} takes no value; try --help")
            found.append((option, value))
            continue
        letters = word[1:]
        while letters:
            name, letters = f"-{letters[0]}", letters[1:]
            option, operand = _known(name)
            value = ""
            if operand:
                value, letters = (letters, "") if letters else (_operand(name, rest), "")
            found.append((option, value))
    return Parsed(tuple(found), tuple(rest))


def _known(name: str) -> tuple[str, str]:
    if name not in CANONICAL:
        raise PolicyError(f"unknown option {name}{nearest(name, CANONICAL)}; try --help")
    return CANONICAL[name]


def _operand(name: str, rest: list[str]) -> str:
    if not rest:
        raise PolicyError(f"option {name} needs a value; try --help")
    return rest.pop(0)


def help_text(usage: str) -> str:
    lines = [usage, ""]
    for names, operand, text in OPTIONS:
        shown = ", ".join(sorted(names, key=len)) + (f" {operand}" if operand else "")
        lines.append(f"  {shown:<28} {text}")
    return "\n".join(lines)


# ---- from options to a policy ----


def apply(parsed: Parsed, policy: Policy, home: str) -> Policy:
    """The policy with the command line on top. Only a person types this line; it may widen."""
    mode = parsed.last("--mode")
    if mode is not None:
        policy = policy.replace(mode=mode, network=None)
    if parsed.has("--no-cwd"):
        policy = policy.replace(grant_root=False)
        if policy.mode == "workspace-write":
            policy = policy.replace(mode="read-only", writable=None, network=policy.network)
    grants = list(policy.grants)
    rules = list(policy.environment)
    unhide = list(policy.unhide)
    for name, value in parsed.options:
        if name in GRANTS:
            access, missing = GRANTS[name]
            grants.append(Grant(value, access, missing))  # type: ignore[arg-type]
        elif name == "--hide":
            from corral.cli.masks import hide

            grants += hide(value, home)
        elif name == "--unhide":
            from corral.cli.masks import unhide as show

            show(value, grants, unhide, home)
        elif name == "--clean-env":
            rules += [EnvRule("drop", "*"), *(EnvRule("keep", basic) for basic in BASIC_VARIABLES)]
        elif name == "--unsetenv":
            rules.append(EnvRule("drop", value))
        elif name == "--setenv":
            rules.append(passed(value, rules))
    changes: dict[str, object] = {
        "grants": tuple(grants),
        "environment": tuple(rules),
        "unhide": tuple(unhide),
    }
    if parsed.has("--writable"):
        changes["writable"] = tuple(parsed.all("--writable"))
    for option, field in (("--network", "network"), ("--backend", "backend"), ("--jail", "jail")):
        if parsed.has(option):
            changes[field] = parsed.last(option)
    if parsed.has("--storage"):
        place = parsed.last("--storage")
        changes["storage"] = os.path.abspath(place) if place else None
    if parsed.has("--review"):
        changes["review"] = True
    changes["limits"] = limits_of(parsed, policy.limits)
    return policy.replace(**changes)


GRANTS = {
    "--rw": ("rw", "refuse"),
    "--ro": ("ro", "refuse"),
    "--rw-create": ("rw", "create"),
    "--ro-optional": ("ro", "skip"),
    "--no-grant": ("none", "skip"),
}


def passed(value: str, rules: Sequence[EnvRule]) -> EnvRule:
    """The rule for one --setenv. A pattern counts only if it is one that drops: any other would pass on secrets that
    nobody thought of."""
    name, is_set, content = value.partition("=")
    if any(char.isspace() for char in name):
        raise PolicyError(f"--setenv {value!r}: no variable has a space in its name (to set one: NAME=VALUE)")
    if is_set:
        return EnvRule("set", name, content)
    if "*" in name and not any(rule.verb == "drop" and rule.name == name for rule in rules):
        raise PolicyError(
            f"--setenv {name} is a pattern that drops nothing; name each variable, or lift a pattern of the list "
            "(corral init writes it down)"
        )
    return EnvRule("keep", name)


# ---- from options to the rest of what a run needs ----


def directory_of(parsed: Parsed) -> str:
    try:
        return os.path.abspath(parsed.last("--cd") or os.getcwd())
    except FileNotFoundError:
        raise PolicyError(
            "the working directory is gone; change to one that exists, or use --cd DIR"
        ) from None


def config_file(parsed: Parsed) -> str | None:
    """The file to read in place of the user's own; the last one named counts."""
    for name, value in reversed(parsed.options):
        if name == "--config" or (name == "--config-optional" and os.path.lexists(value)):
            return value
    return None


def settings_of(parsed: Parsed, settings: RunSettings) -> RunSettings:
    """The settings of the files with the command line on top. Here a relative path begins in the working directory,
    and nothing in it is expanded."""
    changes: dict[str, object] = {}
    scripts = dict.fromkeys((*map(os.path.abspath, parsed.all("--script")), *settings.scripts))
    if parsed.has("--initjail"):
        program = parsed.last("--initjail") or ""
        changes["initjail"] = os.path.abspath(program) if "/" in program else program or None
    if parsed.has("--command"):
        changes["command"] = parsed.last("--command") or None
    if parsed.has("--desktop"):
        changes["desktop"] = True
    if parsed.has("--no-profile"):
        changes["agent"] = None
    return settings.replace(scripts=tuple(scripts), **changes)


def limits_of(parsed: Parsed, limits: Limits) -> Limits:
    changes: dict[str, float] = {}
    for item in parsed.all("--limit"):
        name, given, value = item.partition("=")
        if name not in LIMITS or not given:
            raise PolicyError(
                f"--limit takes NAME=N with NAME one of {', '.join(LIMITS)}{nearest(name, LIMITS)}"
            )
        changes[name.replace("-", "_")] = amount(value, LIMITS[name][2])
    timeout = parsed.last("--timeout")
    if timeout is not None:
        changes["wall"] = amount(timeout, "seconds")
    return limits.tightest(Limits(processes=None).replace(**changes))


LIKE = {"bytes": "512M or 2G", "seconds": "90 or 1.5", "count": "200"}


def amount(text: str, unit: str) -> float:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    number, factor = text.strip(), 1
    if unit == "bytes":
        number = number.upper().removesuffix("IB").removesuffix("B")
        factor = scale.get(number[-1:], 1)
        number = number[:-1] if number[-1:] in scale else number
    elif unit == "seconds":
        number = number.removesuffix("s")
    try:
        value = float(number) if unit == "seconds" else int(number)
    except ValueError:
        raise PolicyError(f"not a number of {unit}: {text!r}; write it like {LIKE[unit]}") from None
    return value * factor
