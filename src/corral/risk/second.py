"""A second opinion from shfmt, where it is installed. It costs a process, so it is asked only when wanted.

It can add commands that the first reading did not see, and doubts. It takes nothing away.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

TIMEOUT = 5.0


def find_shfmt() -> str | None:
    """Where shfmt is, if it is."""
    return shutil.which("shfmt")


def commands_seen(shfmt: str, command: str) -> list[list[str]] | None:
    """The leading literal words of every simple command that shfmt sees; None if it cannot read the line."""
    try:
        done = subprocess.run(
            [shfmt, "--language-dialect=bash", "--to-json"],
            input=command.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        tree = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, RecursionError):
        return None
    return None if tree is None else list(_calls(tree))


def _calls(tree: object) -> Iterator[list[str]]:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if node.get("Type") == "CallExpr" and node.get("Args"):
                yield _literal_words(node["Args"])
            todo.extend(node.values())


def _literal_words(arguments: list[dict[str, object]]) -> list[str]:
    words: list[str] = []
    for argument in arguments:
        text = _literal(argument)
        if text is None:
            break
        words.append(text)
    return words


def _literal(word: dict[str, object]) -> str | None:
    parts = word.get("Parts", [])
    text = ""
    for part in parts if isinstance(parts, list) else []:
        kind = part.get("Type")
        if kind == "Lit":
            text += str(part.get("Value", "")).replace("\\", "")
        elif kind == "SglQuoted" and not part.get("Dollar"):
            text += str(part.get("Value", ""))
        elif kind == "DblQuoted" and (inner := _literal(part)) is not None:
            text += inner
        else:
            return None
    return text
