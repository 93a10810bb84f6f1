"""Tool: how one declares itself. Each tool module has one, called ``TOOL``."""

from __future__ import annotations

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.tools.arguments import Arguments
    from corral.tools.call import Call
    from corral.tools.reply import Reply


class Tool(Record):
    """``help``: one line. ``arguments``: the class whose fields are schema, help and validation in one. ``run``: called
    with the call and an instance of that class.

    The four annotations are MCP's: changes nothing; may destroy something; a second call with the same arguments
    changes nothing more; reaches beyond the workspace. ``changes``: it writes files of the workspace, so the engine
    lets only one such call at a time through."""

    name: str
    help: str
    arguments: type[Arguments]
    run: Callable[[Call, Any], Reply]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    changes: bool = False

    @property
    def annotations(self) -> dict[str, bool]:
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }

    @property
    def schema(self) -> dict[str, Any]:
        """Of its arguments, as JSON Schema, with descriptions."""
        from corral.tools.schema import schema_of

        return schema_of(self.arguments)
