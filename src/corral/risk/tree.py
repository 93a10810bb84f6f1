"""The parser: tree-sitter with its bash grammar, loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corral.errors import CorralError

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MANY = 500

_language: Language | None = None


class ParserMissing(CorralError, RuntimeError):
    """tree-sitter or its bash grammar is not installed, or the two do not fit each other."""

    def __init__(self) -> None:
        super().__init__(
            "the risk classifier needs tree-sitter and its bash grammar: pip install 'corral[risk]'",
            grant="pip install 'corral[risk]'",
        )


def root_of(source: bytes) -> Node:
    """The root of the tree of this text. A parser each time: one shared by threads would mix their texts up."""
    global _language
    try:
        import tree_sitter

        if _language is None:
            import tree_sitter_bash

            _language = tree_sitter.Language(tree_sitter_bash.language())
    except (ImportError, ValueError):  # a grammar made for another tree-sitter is a ValueError
        raise ParserMissing from None
    return tree_sitter.Parser(_language).parse(source).root_node


def children(node: Node) -> Iterator[Node] | list[Node]:
    """All children. `Node.children` keeps them, with all below, until the end: too much for a million."""
    return node.children if node.child_count < MANY else _one_by_one(node)


def _one_by_one(node: Node) -> Iterator[Node]:
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        child = cursor.node
        if child is not None:
            yield child
        more = cursor.goto_next_sibling()
