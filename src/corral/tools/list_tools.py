"""list_tools: what there is to call."""

from __future__ import annotations

from corral import __version__
from corral.tools.arguments import Arguments, arg
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call

FEATURES = {
    "atomic_writes": True,
    "changed_since_read": True,
    "sensitive_paths": True,
    "undo": True,
    "rollback": True,
    "risk": True,
}


class ListTools(Arguments):
    include_schema: bool = arg("with the schema of every tool's arguments", False)


def list_tools(call: Call, args: ListTools) -> Reply:
    told: dict[str, Any] = {
        "corral_version": __version__,
        "tools": list(call.engine.offered),
        "features": {**FEATURES, "jail": call.environment.posture.mechanism, "mode": call.policy.mode},
    }
    if args.include_schema:
        from corral.tools.schema import function_entries

        told["schema"] = function_entries(call.engine.tools())
    return Reply.json(told)


TOOL = Tool(
    name="list_tools",
    help="List the tools that can be called",
    arguments=ListTools,
    run=list_tools,
    read_only=True,
    idempotent=True,
)
