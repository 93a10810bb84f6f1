"""The two contents of a change, and the third that both came from."""

from __future__ import annotations

from corral.changes.change import DIRECTORY, Change, Node
from corral.changes.kept import is_text, kept_content
from corral.changes.layers import Layers
from corral.changes.trees import Tree
from corral.changes.upper import Upper

LARGEST_TEXT = 16 << 20


class Contents:
    """Both trees, open for as long as somebody reads them."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.lower = Tree(layers.lower, "lower")
        try:
            self.upper = Upper(layers.upper, layers.attributes)
        except BaseException:
            self.lower.close()
            raise

    def close(self) -> None:
        self.lower.close()
        self.upper.close()

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def after(self, change: Change) -> bytes:
        node = change.after
        return b"" if node is None else self.tree_of(node).content(node.at)

    def tree_of(self, node: Node) -> Tree:
        return self.upper if node.layer == "upper" else self.lower

    def before(self, change: Change) -> bytes:
        """What stands in the lower directory. Without a conflict that is what was before."""
        return b"" if change.before is None else self.lower.content(change.source or change.path)

    def base(self, change: Change) -> bytes | None:
        """What was before, where it was kept: for a conflict with what came after the run."""
        return kept_content(self.layers, change.before)

    def outside(self, change: Change) -> bytes | None:
        """What stands there now; None for a directory or nothing."""
        node = self.lower.node(change.path)
        return None if node is None or node.kind == DIRECTORY else self.lower.content(change.path)


def both_text(*contents: bytes) -> bool:
    return all(len(content) <= LARGEST_TEXT and is_text(content) for content in contents)
