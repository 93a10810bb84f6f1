"""A room to call tools in: a workspace, an engine over it, and short ways to ask."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral import LocalEnvironment, Policy
from corral.tools.engine import Engine


@dataclass
class Room:
    root: Path
    engine: Engine

    def file(self, path: str, content: str | bytes = "") -> Path:
        made = self.root / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content.encode() if isinstance(content, str) else content)
        return made

    def call(
        self, tool: str, *, client: Any = "", request: Any = "", cancel: Any = None, **args: Any
    ) -> dict[str, Any]:
        """``client``, ``request`` (its id) and ``cancel`` are the envelope's; all else are the tool's arguments."""
        asked: dict[str, Any] = {"tool": tool, "args": args}
        if client:
            asked["client"] = client
        if request:
            asked["request_id"] = request
        return self.engine.call(asked, cancel=cancel)

    def text(self, tool: str, **args: Any) -> str:
        """The result of a call that must succeed."""
        response = self.call(tool, **args)
        assert response["ok"], response
        return str(response.get("result", ""))

    def json(self, tool: str, **args: Any) -> Any:
        return json.loads(self.text(tool, **args))

    def refused(self, tool: str, **args: Any) -> tuple[str, str]:
        """The code and the error of a call that must fail."""
        response = self.call(tool, **args)
        assert not response["ok"], response
        return response["error_code"], response["error"]


@contextlib.contextmanager
def open_room(root: Path, policy: Policy, **options: Any) -> Iterator[Room]:
    with LocalEnvironment(root, policy) as environment, Engine(environment, **options) as engine:
        yield Room(root, engine)
