"""What `corral tool` and `corral mcp` share: their own options among those of `run`, and the engine they open."""

from __future__ import annotations

from corral.cli.options import CANONICAL, OPTIONS, Parsed, apply, parse
from corral.errors import PolicyError
from corral.record import Record
from corral.state import account_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.policy import Policy

    OptionRows = Sequence[tuple[tuple[str, ...], str, str]]

# Of the options of `run`, those that say what is allowed; the others say how a run looks.
POLICY_OPTIONS = (
    *(
        "--mode",
        "--rw",
        "--ro",
        "--rw-create",
        "--ro-optional",
        "--no-grant",
        "--no-cwd",
        "--hide",
        "--unhide",
    ),
    *("--writable", "--setenv", "--unsetenv", "--clean-env", "--cd", "--network", "--timeout", "--limit"),
    *("--backend", "--config", "--profile", "--help"),
)


class Typed(Record):
    """A command line: our own options by their first name, those of the policy, and the words after them."""

    own: dict[str, str]
    parsed: Parsed


def typed(subcommand: str, words: Sequence[str], own: OptionRows) -> Typed:
    """Take our own options out, wherever they stand among the others."""
    names = {name: (row[0][0], row[1]) for row in own for name in row[0]}
    found: dict[str, str] = {}
    others: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in names:
            option, operand = names[name]
            if bool(equals) and not operand:
                raise PolicyError(f"option {name} takes no value; try corral {subcommand} --help")
            if operand and not equals and not rest:
                raise PolicyError(f"option {name} needs a value; try corral {subcommand} --help")
            found[option] = value if equals or not operand else rest.pop(0)
            continue
        others.append(word)
        if rest and not equals and CANONICAL.get(_last_of(word), ("", ""))[1]:
            others.append(rest.pop(0))
    parsed = parse([*others, *rest])
    for option, _ in parsed.options:
        if option not in POLICY_OPTIONS:
            raise PolicyError(
                f"option {option} does not go with corral {subcommand}; try corral {subcommand} --help"
            )
    return Typed(found, parsed)


def _last_of(word: str) -> str:
    """The option of a word whose operand would be the next one: of ``-Dd`` it is ``-d``, of ``-dDIR`` none."""
    if word.startswith("--"):
        return word
    for place, letter in enumerate(word[1:], 1):
        if CANONICAL.get(f"-{letter}", ("", ""))[1]:
            return f"-{letter}" if place == len(word) - 1 else ""
    return ""


def help_text(usage: str, own: OptionRows) -> str:
    rows = [*own, *(row for row in OPTIONS if row[0][0] in POLICY_OPTIONS)]
    lines = [usage, ""]
    for names, operand, text in rows:
        shown = ", ".join(sorted(names, key=len)) + (f" {operand}" if operand else "")
        lines.append(f"  {shown:<28} {text}")
    return "\n".join(lines)


def policy_of(parsed: Parsed, directory: str) -> Policy:
    """The user's config, the project's, and the command line on top. Nothing said: workspace-write, network off."""
    from corral.config import load

    loaded = load(profile=parsed.last("--profile"), project=directory, user=parsed.last("--config"))
    return apply(parsed, loaded.policy, account_home())


def chosen_tools(text: str | None) -> tuple[str, ...] | None:
    """The names in ``--tools a,b``; None if it was not given."""
    if text is None:
        return None
    from corral.policy import nearest
    from corral.tools.registry import NAMES

    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in NAMES:
            raise PolicyError(
                f"--tools: there is no tool {name!r}{nearest(name, NAMES)}; corral tool --list has them"
            )
    if not names:
        raise PolicyError("--tools needs at least one name; corral tool --list has them")
    return names
