"""Environment rules as they are written, and the ones among them that could never decide anything."""

from __future__ import annotations

from corral.config.values import Wrong, shown
from corral.errors import PolicyError
from corral.variables import EnvRule, name_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = ("drop", "keep", "set")


def environment_rule(value: object) -> EnvRule:
    """``drop PATTERN``, ``keep PATTERN`` or ``set NAME=VALUE``."""
    if not isinstance(value, str):
        raise Wrong('must be strings like "drop AWS_*", "keep EDITOR" or "set CI=1"')
    verb, _, rest = value.strip().partition(" ")
    if verb not in VERBS:
        raise Wrong(f"{shown(value)} is no rule; one begins with drop, keep or set", word=verb, words=VERBS)
    name, equals, content = rest.lstrip().partition("=") if verb == "set" else (rest.strip(), "", "")
    if verb == "set" and not equals:
        raise Wrong(f"{shown(value)} sets nothing (did you mean set {name.strip() or 'NAME'}=VALUE?)")
    if verb == "set" and ("*" in name or "\\" in name):
        raise Wrong(f"{shown(value)} needs one name, not a pattern")
    if verb != "set" and "=" in name:
        raise Wrong(f"{shown(value)} can never match: no name has a = in it (did you mean set {name}?)")
    if any(char.isspace() for char in name):
        raise Wrong(f"{shown(value)} can never match: one name a rule, and no spaces around it")
    if verb != "set" and _has_other_wildcards(name):
        raise Wrong(rf"{shown(value)} can never match as meant: only * and \ are special")
    try:
        return EnvRule(verb, name, content)  # type: ignore[arg-type]
    except PolicyError as error:
        raise Wrong(f"{shown(value)}: {error}") from None


def _has_other_wildcards(pattern: str) -> bool:
    escaped = False
    for char in pattern:
        if not escaped and char in "?[":
            return True
        escaped = char == "\\" and not escaped
    return False


def written(rule: EnvRule) -> str:
    return f"{rule.verb} {rule.name}" + (f"={rule.value}" if rule.verb == "set" else "")


def idle_rule(earlier: Sequence[EnvRule], own: Sequence[EnvRule]) -> tuple[int, int | None, str] | None:
    """The first of our own rules that decides nothing: its index, that of the rule which decides instead (if it is
    one of ours), and why. ``earlier`` are the rules these are appended to; to overrule one of those is their point."""
    for index, rule in enumerate(own):
        for later in range(index + 1, len(own)):
            # A value that is set stays whatever is kept later; only a drop takes it away.
            if covers(own[later].name, rule.name) and (rule.verb, own[later].verb) != ("set", "keep"):
                why = f'"{written(own[later])}" after it decides every name that it matches'
                return index, later, why
        before = (*earlier, *own[:index])
        if rule.verb == "keep" and not any(r.verb == "drop" and overlap(r.name, rule.name) for r in before):
            return index, None, "no rule before it drops such a name, and what is not dropped is kept"
    return None


def covers(general: str, special: str) -> bool:
    """Whether every name that ``special`` matches is matched by ``general``. May miss some with backslashes."""
    return general == special or ("\\" not in special and name_matches(general, special))


def overlap(a: str, b: str) -> bool:
    """Whether some name is matched by both patterns."""
    if "*" not in b and "\\" not in b:
        return name_matches(a, b)
    left, right = _tokens(a), _tokens(b)
    # reachable[j]: the first i tokens of a and the first j of b can stand for the same text.
    reachable = [all(t is None for t in right[:j]) for j in range(len(right) + 1)]
    for token in left:
        row = [reachable[0] and token is None]
        for j, other in enumerate(right):
            if token is None or other is None:  # the star takes nothing, or one more of the other side
                row.append(reachable[j + 1] or row[j])
            else:
                row.append(reachable[j] and token == other)
        reachable = row
    return reachable[-1]


def _tokens(pattern: str) -> list[str | None]:
    """Characters, None for a star."""
    tokens: list[str | None] = []
    escaped = False
    for char in pattern:
        if char == "\\" and not escaped:
            escaped = True
            continue
        tokens.append(None if char == "*" and not escaped else char)
        escaped = False
    return tokens
