"""What the parser finds: simple commands with their words, redirections and surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

PIPE, FILE, HEREDOC, TERMINAL = "a pipe", "a file", "a here-document", "a terminal"


class Redirection:
    """One redirection: its operator and the resolved target."""

    __slots__ = ("operator", "target")

    def __init__(self, operator: str, target: str) -> None:
        self.operator = operator
        self.target = target


class Simple:
    """One simple command, or a bare redirection or assignment. Mutable while it is being built, never after."""

    __slots__ = ("assignments", "fed", "indirect", "redirections", "span", "words")

    def __init__(self, span: tuple[int, int], fed: str) -> None:
        self.span = span
        self.fed = fed
        self.indirect = False
        self.words: list[str] = []
        # Lists only once there is something in them: of a million commands few have either.
        self.assignments: Sequence[tuple[str, str]] = ()
        self.redirections: Sequence[Redirection] = ()

    def assign(self, name: str, value: str) -> None:
        self.assignments = _with(self.assignments, (name, value))

    def redirect(self, redirection: Redirection) -> None:
        self.redirections = _with(self.redirections, redirection)


def _with(items: Sequence[Item], item: Item) -> Sequence[Item]:
    if isinstance(items, list):
        items.append(item)
        return items
    return [item]


class Script:
    """All of one command line, in the order it is written."""

    __slots__ = (
        "background",
        "calculates",
        "commands",
        "doubts",
        "heredoc",
        "self_feeding",
        "text",
        "too_deep",
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.commands: list[Simple] = []
        self.doubts: list[str] = []
        self.background = False
        self.calculates = False
        self.heredoc = False
        self.self_feeding = False
        self.too_deep = False

    def doubt(self, why: str) -> None:
        if why not in self.doubts and len(self.doubts) < 16:
            self.doubts.append(why)
