"""related_context: which notes, skills, agents and commands of this user are about something. Names, descriptions and
paths only: no content, and a path that is told here gains no right to be read."""

from __future__ import annotations

import os

from corral.tools.arguments import Arguments, arg
from corral.tools.limits import CONTEXT_MOST_RESULTS, CONTEXT_RESULTS
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from corral.tools.call import Call
    from corral.tools.context_notes import Note


class RelatedContext(Arguments):
    query: str = arg("what it should be about", least=1, most=1000)
    types: list[Literal["kb", "skill", "agent", "command"]] | None = arg("only these kinds", None, least=1)
    limit: int = arg(f"so many of each kind, at most {CONTEXT_MOST_RESULTS}", CONTEXT_RESULTS)
    client: Literal["claude", "codex", "pi", "all"] | None = arg(
        "whose skills; unless it is said, those of the client that asks", None
    )
    rebuild: bool = arg("read every file again", False)


def run(call: Call, args: RelatedContext) -> Reply:
    from corral.tools.context_index import TYPES, build
    from corral.tools.context_notes import words_of

    client = args.client or _client(call.client)
    state = call.engine.state
    cache = os.path.join(state, f"context-index-{client or 'none'}.json") if state is not None else None
    index = build(
        client,
        call.policy.related_context,
        os.path.expanduser("~"),
        cache,
        call.check_canceled,
        rebuild=args.rebuild,
    )
    words = list(dict.fromkeys(words_of(args.query)))
    scored = [(note.score(words), note) for note in index.notes if note.type in (args.types or TYPES)]
    ranked = sorted(
        (row for row in scored if row[0] > 0),
        key=lambda row: (-row[0], row[1].type, row[1].name, row[1].path),
    )
    limit = min(max(args.limit, 1), CONTEXT_MOST_RESULTS)
    return Reply.json(
        {
            "results": [note.shown(score) for score, note in _best(ranked, limit)],
            "index": {
                "entry_count": len(index.notes),
                "rebuilt": index.rebuilt,
                "build_time": f"{index.build_seconds * 1000:.0f}ms",
                "source_count": len(index.sources),
                "client": client or "none",
            },
            "warnings": index.warnings,
        }
    )


def _client(declared: str) -> str:
    """The client whose directories are known, by the name it goes by (``claude-code`` is claude)."""
    from corral.tools.context_index import CLIENTS

    first = declared.lower().replace("_", "-").split("-")[0]
    return first if first in CLIENTS else ""


def _best(ranked: list[tuple[int, Note]], limit: int) -> list[tuple[int, Note]]:
    """So many of each type."""
    counts: dict[str, int] = {}
    kept = []
    for score, note in ranked:
        counts[note.type] = counts.get(note.type, 0) + 1
        if counts[note.type] <= limit:
            kept.append((score, note))
    return kept


TOOL = Tool(
    "related_context",
    "Find notes, skills, agents and commands of this user that are about a topic. Tells names and paths, no content.",
    RelatedContext,
    run,
    read_only=True,
    idempotent=True,
)
