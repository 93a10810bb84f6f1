"""What a config says of commands: `[[risk]]` rows, and how commands begin that are allowed all the same."""

from __future__ import annotations

from corral.approval import LEVELS, RiskRow
from corral.config.values import Wrong, expect, one_of, shown
from corral.errors import PolicyError

_level = one_of("level", LEVELS)


def allowed_beginning(value: object) -> str:
    """An entry of `approval.allow`."""
    from corral.commands import allowed_words

    text: str = expect(str, value)
    try:
        allowed_words(text)
    except PolicyError as refused:
        raise Wrong(f"cannot be: {refused}") from None
    return text


def risk_rows(value: object) -> tuple[RiskRow, ...]:
    """Each with a verb or an exact command, and its level; one row for one thing."""
    if isinstance(value, dict):
        raise Wrong("is a list of tables (did you mean [[risk]]?)")
    rows: dict[object, int] = {}
    found: list[RiskRow] = []
    for index, item in enumerate(expect(list, value)):
        try:
            row = _risk_row(item)
        except Wrong as wrong:
            wrong.at = (index, *wrong.at)
            raise
        earlier = rows.setdefault(subject(row), index)
        if earlier != index:
            raise Wrong(
                f"row {index + 1} is about the same as row {earlier + 1}; one row is enough", at=(index,)
            )
        found.append(row)
    return tuple(found)


def subject(row: RiskRow) -> object:
    """What a row is about: a later layer's row about the same replaces the earlier one."""
    from corral.commands import plain_words

    return plain_words(row.exact) if row.exact else (row.verb, frozenset(row.options.split()), row.args)


def _risk_row(item: object) -> RiskRow:
    table: dict[str, object] = expect(dict, item)
    for key, part in table.items():
        if key not in RiskRow._fields:
            there = ", ".join(RiskRow._fields)
            why = f"a risk row has no {shown(key)}; it has {there}"
            raise Wrong(why, at=(key,), word=key, words=RiskRow._fields)
        if part == "":
            raise Wrong(f"row: {key} is empty", at=(key,))
    try:
        if "level" in table:
            _level(table["level"])
        return RiskRow(**table)  # type: ignore[arg-type]
    except Wrong as wrong:
        wrong.at, wrong.why = ("level",), wrong.why if wrong.words else f"level {wrong.why}"
        raise
    except PolicyError as refused:
        raise Wrong(f"row: {refused}", at=(str(refused.rule),)) from None
