"""The fenced blocks of the documentation, with what a comment before one says of it.

``<!-- not run: WHY -->`` before a block: it needs something that is not here. ``<!-- file: NAME -->``: it is
somebody else's file, only parsed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
LANGUAGES = {"console", "python", "toml", "json", "markdown", "text"}

_FENCE = re.compile(
    r"(?:^<!-- (?P<word>not run|file): (?P<said>.*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    not_run: str
    file: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    content = page.read_text()
    found = []
    for match in _FENCE.finditer(content):
        line = content.count("\n", 0, match.start("language")) + 1
        said = {match["word"]: match["said"]}
        name = str(page.relative_to(ROOT))
        found.append(
            Block(name, line, match["language"], match["text"], said.get("not run", ""), said.get("file", ""))
        )
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def in_language(language: str, *, run: bool = True) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and bool(block.not_run) != run]


class Command(NamedTuple):
    """A line after ``$``, with what is shown below it."""

    line: str
    shown: tuple[str, ...]


def commands_of(block: Block) -> list[Command]:
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], ()))
        elif found and found[-1].line.endswith("\\"):
            found[-1] = Command(f"{found[-1].line}\n{line}", ())
        else:
            found[-1] = found[-1]._replace(shown=(*found[-1].shown, line))
    return found


def missing_line(shown: tuple[str, ...], said: str, home: str) -> str:
    """The first line that is shown and was not said, in that order; ``…`` stands for anything, /home/you for home."""
    rest = iter(said.splitlines())
    for line in shown:
        pattern = re.escape(line.replace("/home/you", home)).replace("…", ".*")
        if line != "…" and not any(re.fullmatch(pattern, candidate) for candidate in rest):
            return line
    return ""
