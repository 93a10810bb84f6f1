"""What `compress` does to a text: fewer characters, the same meaning. What was done is said.

Paths that begin alike are told once where they begin; hashes are told by their first characters.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.tools.reply import Reply

HASH = re.compile(r"\b[0-9a-f]{40}\b")
HASHES, HASH_CHARACTERS = 2, 8
PATH_LINE = re.compile(r"^(/[^\s:]+/)[^\s:/]*", re.MULTILINE)
PATHS = 3
LONGEST = 1 << 20


def shorten_hashes(text: str) -> str:
    if len(HASH.findall(text)) < HASHES:
        return text
    short = {whole: whole[:HASH_CHARACTERS] for whole in HASH.findall(text)}
    if len(set(short.values())) < len(short):
        return text  # two of them would look the same
    return HASH.sub(lambda match: short[match[0]], text)


def share_prefix(text: str) -> str:
    directories = PATH_LINE.findall(text)
    if len(directories) < PATHS:
        return text
    prefix = os.path.commonpath(directories)
    if prefix == "/":
        return text
    start = re.compile(rf"^{re.escape(prefix)}/", re.MULTILINE)
    return f"[cwd: {prefix}]\n{start.sub('', text)}"


WAYS: dict[str, Callable[[str], str]] = {"path_prefix_dedup": share_prefix, "hash_abbrev": shorten_hashes}


def compressed(text: str) -> tuple[str, list[str]]:
    """The text, and the names of what was done to it."""
    done = []
    if len(text) <= LONGEST:
        for name, way in WAYS.items():
            shorter = way(text)
            if len(shorter) < len(text):
                text = shorter
                done.append(name)
    return text, done


def compress(reply: Reply) -> None:
    """A reply in place. JSON stays as it is: its strings may be names that somebody uses."""
    if reply.result.startswith(("{", "[{")):
        return
    reply.result, done = compressed(reply.result)
    if done:
        reply.meta = {**(reply.meta or {}), "compressed": done}
