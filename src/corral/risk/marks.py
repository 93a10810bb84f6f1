"""Private characters that stand, in a resolved word, for what is not known before the command runs.

They cannot collide with input: the parser hands text over as Latin-1, one character a byte.
"""

from __future__ import annotations

HOLE = "\ue000"
"""Unknown text outside quotes: it may be empty, one word or many."""
SHUT = "\ue001"
"""Unknown text inside quotes: part of exactly one word."""
STAR = "\ue002"
"""A file name pattern (`*`, `?` or `[`) outside quotes."""
GAP = "\ue003"
"""An unquoted ``$IFS``: bash splits the word here."""
MAYBE = "\ue004"
"""What follows is the likely value (``${x:-v}`` gives v), but the environment may hold another."""
DESCRIPTOR = "/dev/fd/" + SHUT
"""What a process substitution becomes: a path, never an option."""
OPEN, COMMA, CLOSE = "\ue005", "\ue006", "\ue007"
"""Braces and commas outside quotes, until they are expanded."""


class Doubt(Exception):
    """The text of a word is not one word to bash, or hides something; the message says what."""
