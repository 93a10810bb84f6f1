"""A library's process, seen from who measures: requests out, answers in."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from .contestants import Contestant, Place


class Library:
    """Warm from its first answer on. ``before``: words that make it another user's process."""

    def __init__(self, contestant: Contestant, place: Place, before: list[str] | None = None) -> None:
        assert contestant.library is not None
        self.contestant = contestant
        self.process = subprocess.Popen(
            [*(before or []), *contestant.library(place)],
            cwd=place.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def ask(self, do: str, **fields: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps({"do": do, **fields}), file=self.process.stdin, flush=True)
        return self._answer()

    def exit_code(self, argv: list[str]) -> int:
        code: int = self.ask("run", argv=argv)["code"]
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, said = self.process.communicate()
            raise RuntimeError((said.strip().splitlines() or ["ended without a word"])[-1])
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer
