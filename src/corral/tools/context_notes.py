"""Notes: what is known of one Markdown file from its beginning. Read without a YAML parser: names, texts
and plain lists."""

from __future__ import annotations

import re

from corral.record import Record
from corral.tools.limits import CONTEXT_BODY_RUNES, CONTEXT_DESCRIPTION_RUNES
from corral.tools.text import cut_line

FENCE = "---"
WORD = re.compile(r"[^\W_]+")
NAME_WEIGHT, HEAD_WEIGHT, BODY_WEIGHT = 3, 2, 1
ALIAS_BONUS = 2
SHORTEST_PLURAL = 4


class Note(Record):
    """``type``: kb, skill, agent or command. ``weights``: how much each word of it counts."""

    type: str
    name: str
    title: str
    description: str
    category: str
    tags: list[str]
    aliases: list[str]
    path: str
    weights: dict[str, int]

    def score(self, words: list[str]) -> int:
        total = 0
        groups = {self.category.lower(), *map(str.lower, self.aliases)}
        for word in words:
            total += self._weight(word) + (ALIAS_BONUS if word in groups else 0)
        return total

    def _weight(self, word: str) -> int:
        """Of the word itself; of its singular or plural one less."""
        found = self.weights.get(word)
        if found is not None:
            return found
        other = word[:-1] if word.endswith("s") and len(word) >= SHORTEST_PLURAL else word + "s"
        return max(self.weights.get(other, 0) - 1, 0)

    def shown(self, score: int) -> dict[str, object]:
        return {
            "type": self.type,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "category": self.category,
            "tags": self.tags,
            "path": self.path,
            "score": score,
        }


def words_of(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def read_note(kind: str, names: tuple[str, ...], path: str, text: str) -> Note:
    """``names``: of the file below its source."""
    fields, body = _front_matter(text)
    *above, stem = (*names[:-1], names[-1].removesuffix(".md"))
    if stem == "SKILL" and above:
        stem = above.pop()
    name = _text(fields, "name") or stem
    title = next((line[2:].strip() for line in body.split("\n") if line.startswith("# ")), "") or name
    category = _text(fields, "category") or (above[0] if above else "")
    description = " ".join((_text(fields, "description") or _first_paragraph(body)).split())
    tags, aliases = _list(fields, "tags"), _list(fields, "aliases")
    weights: dict[str, int] = {}
    for weight, pieces in (
        (BODY_WEIGHT, (description, *aliases, *_sources(fields), body[:CONTEXT_BODY_RUNES])),
        (HEAD_WEIGHT, (title, category, *tags)),
        (NAME_WEIGHT, (name, stem)),
    ):
        weights.update((word, weight) for piece in pieces for word in words_of(piece))
    return Note(
        kind,
        cut_line(name, CONTEXT_DESCRIPTION_RUNES),
        cut_line(title, CONTEXT_DESCRIPTION_RUNES),
        cut_line(description, CONTEXT_DESCRIPTION_RUNES),
        category,
        tags,
        aliases,
        path,
        weights,
    )


def _front_matter(text: str) -> tuple[dict[str, str | list[str]], str]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].strip() != FENCE:
        return {}, "\n".join(lines)
    fields: dict[str, str | list[str]] = {}
    key = ""
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == FENCE:
            return fields, "\n".join(lines[number + 1 :])
        named = re.fullmatch(r"([A-Za-z][\w-]*):\s*(.*)", line)
        item = re.fullmatch(r"\s*-\s+(.*)", line)
        if named is not None:
            key = named[1].lower()
            fields[key] = _value(named[2].strip())
        elif item is not None and key:
            found = fields.get(key)
            fields[key] = [*(found if isinstance(found, list) else []), _unquoted(item[1].strip())]
        elif line.startswith((" ", "\t")) and isinstance(fields.get(key), str):
            fields[key] = f"{fields[key]} {line.strip()}".lstrip(" >|-")
    return {}, "\n".join(lines)  # it never ends, so it was none


def _value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [_unquoted(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _text(fields: dict[str, str | list[str]], key: str) -> str:
    found = fields.get(key, "")
    return found if isinstance(found, str) else ", ".join(found)


def _list(fields: dict[str, str | list[str]], key: str) -> list[str]:
    found = fields.get(key, [])
    return [part.strip() for part in found.split(",") if part.strip()] if isinstance(found, str) else found


def _sources(fields: dict[str, str | list[str]]) -> list[str]:
    return [_text(fields, key) for key in fields if key.startswith("source")]


def _first_paragraph(body: str) -> str:
    pieces = (piece.strip() for piece in body.split("\n\n"))
    return next((piece for piece in pieces if piece and not piece.startswith("#")), "")
