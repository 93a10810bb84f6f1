"""What happens at each level of risk, and what a user has to say about commands: values only, read by `corral.risk`.

`corral.policy` holds one of these, so nothing here may import more than `corral run` can pay for.
"""

from __future__ import annotations

from corral.errors import PolicyError
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

    from corral.risk.levels import Level

    Answer = Literal["allow", "ask", "refuse"]
    LevelName = Literal["safe", "caution", "dangerous"]

# Both from the lightest to the strictest.
ANSWERS: dict[str, str] = {
    "allow": "run it",
    "ask": "a person decides; with nobody there it is refused",
    "refuse": "do not run it",
}
LEVELS: dict[str, str] = {
    "safe": "only reads, as far as that can be proven",
    "caution": "changes something, or is not known",
    "dangerous": "destroys, gains rights, or runs what was fetched or hidden",
}

LONGEST_REASON = 200


class RiskRow(Record):
    """A user's word on commands. With `verb` it raises every use of a program: to `level`, or beyond any approval with
    `refuse`; `options` and `args` narrow it. With `exact` it sets the level of one whole command line, and of no other.
    """

    verb: str = ""
    exact: str = ""
    options: str = ""
    args: str = ""
    level: LevelName | Literal[""] = ""
    reason: str = ""
    refuse: bool = False

    def __post_init__(self) -> None:
        for name in ("verb", "exact", "options", "args", "level", "reason"):
            if not isinstance(getattr(self, name), str):
                raise PolicyError(f"{name} must be a text", rule=name)
        if not isinstance(self.refuse, bool):
            raise PolicyError("refuse must be true or false", rule="refuse")
        if self.level and self.level not in LEVELS:
            raise PolicyError(f"{self.level!r} is no level; there is {', '.join(LEVELS)}", rule="level")
        if not self.reason.isprintable() or len(self.reason) > LONGEST_REASON:
            raise PolicyError(
                f"reason must be one line of at most {LONGEST_REASON} characters", rule="reason"
            )
        if bool(self.verb) == bool(self.exact):
            raise PolicyError("needs verb or exact, and not both", rule="exact")
        if self.exact:
            self._check_exact()
        else:
            self._check_verb()

    def _check_verb(self) -> None:
        from corral.commands import plain_words

        if "/" in self.verb or plain_words(self.verb) != (self.verb,):
            raise PolicyError(f"verb is the bare name of one program, not {self.verb!r}", rule="verb")
        if not self.reason:
            raise PolicyError("needs a reason, for whoever is refused", rule="reason")
        if self.refuse and self.level not in ("", "dangerous"):
            raise PolicyError("refuse is above every level; leave level out", rule="level")
        if self.level == "safe":
            raise PolicyError(
                'a rule for a verb can only raise; lower with exact = "the whole command"', rule="level"
            )
        wrong = [word for word in self.options.split() if not word.startswith("-") or word.strip("-") == ""]
        if wrong:
            raise PolicyError(f"options are names like -f or --force, not {wrong[0]!r}", rule="options")
        object.__setattr__(self, "level", self.level or "dangerous")

    def _check_exact(self) -> None:
        from corral.commands import plain_words

        for name in ("options", "args", "refuse"):
            if getattr(self, name):
                raise PolicyError(f"{name} goes with verb; exact is the whole command", rule=name)
        if not self.level:
            raise PolicyError("needs a level", rule="level")
        if plain_words(self.exact) is None:
            raise PolicyError(
                "exact must be one plain command, without variables, patterns or redirections", rule="exact"
            )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RiskRow:
        _known_fields(cls, fields)
        return cls(**fields)

    @property
    def program(self) -> str:
        """The bare name of the program this is about."""
        from corral.commands import plain_words

        words = plain_words(self.exact)
        return self.verb or (words[0].rpartition("/")[2] if words else "")


class Approval(Record):
    """A host's choice: ``allow``, ``ask`` or ``refuse`` at each level. A level is never treated more lightly than the
    ones below it.

    `flag_forms` = ``ask`` also asks for the forms `corral.risk.decide` names (in-place edits where the jail is not
    proven, inline code, sending). `allow_force`: whether a caller's ``force: true`` lifts a refusal. `allow`: how
    commands begin that run all the same, if they are not dangerous. `rows`: see :class:`RiskRow`. Nothing lifts a
    hardline refusal.
    """

    safe: Answer = "allow"
    caution: Answer = "allow"
    dangerous: Answer = "refuse"
    flag_forms: Answer = "allow"
    allow_force: bool = True
    allow: tuple[str, ...] = ()
    rows: tuple[RiskRow, ...] = ()

    def __post_init__(self) -> None:
        for name in (*LEVELS, "flag_forms"):
            if getattr(self, name) not in ANSWERS:
                raise PolicyError(
                    f"approval.{name} is {getattr(self, name)!r}; it must be allow, ask or refuse", rule=name
                )
        if not isinstance(self.allow_force, bool):
            raise PolicyError("approval.allow_force must be true or false", rule="allow_force")
        for name in ("allow", "rows"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise PolicyError(f"approval.{name} is a list, not one string: [{value!r}]", rule=name)
            object.__setattr__(self, name, tuple(value))
        if self.allow:
            from corral.commands import allowed_words

            for entry in self.allow:
                allowed_words(entry)

    def answers(self, level: Level | str) -> frozenset[str]:
        """What is said at this level and at those below it."""
        names = tuple(LEVELS)
        return frozenset(getattr(self, name) for name in names[: names.index(str(level)) + 1])

    def at(self, level: Level | str) -> str:
        return strictest(self.answers(level))

    def __and__(self, other: Approval) -> Approval:
        """The stricter of two. Where one refuses and the other would ask, force no longer counts: it lifts refusals
        and never stands in for a person."""
        names = (*LEVELS, "flag_forms")
        pairs = [{getattr(self, name), getattr(other, name)} for name in names]
        answers: dict[str, Any] = {name: strictest(pair) for name, pair in zip(names, pairs, strict=True)}
        return Approval(
            **answers,
            allow_force=self.allow_force and other.allow_force and {"ask", "refuse"} not in pairs,
            allow=tuple(entry for entry in self.allow if entry in other.allow),
            rows=_stricter_rows(self.rows, other.rows),
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Approval:
        _known_fields(cls, fields)
        given = dict(fields)
        if "rows" in given:
            given["rows"] = tuple(RiskRow.from_dict(row) for row in given["rows"])
        return cls(**given)


def strictest(answers: Iterable[str]) -> str:
    return max(answers, key=tuple(ANSWERS).index)


def _stricter_rows(a: tuple[RiskRow, ...], b: tuple[RiskRow, ...]) -> tuple[RiskRow, ...]:
    """Everything that either side raises; what both lower, unless a rule of one side only is about that program."""
    raising = dict.fromkeys(row for row in (*a, *b) if row.verb)
    disputed = {row.verb for row in raising if row not in a or row not in b}
    exact = [row for row in a if row.exact and row in b and row.program not in disputed]
    return (*raising, *exact)


def _known_fields(kind: type[Record], fields: dict[str, Any]) -> None:
    for name in fields:
        if name not in kind._fields:
            raise PolicyError(f"{name!r} is no key; keys are {', '.join(kind._fields)}", rule=name)
