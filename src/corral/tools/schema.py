"""JSON Schema, function-calling entries and help text, all from the fields of the argument classes."""

from __future__ import annotations

from corral.tools.arguments import REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from corral.tools.arguments import Arguments
    from corral.tools.tool import Tool


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    properties = {}
    for name, field in arguments.fields().items():
        default = field.arg.default
        properties[name] = {**field.kind.schema(), "description": field.arg.help}
        if default is not REQUIRED and default is not None and default != ():
            properties[name]["default"] = default
    required = [name for name, field in arguments.fields().items() if field.required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def function_entry(tool: Tool) -> dict[str, Any]:
    """As function calling wants it, without the descriptions of the parameters: that is what a prompt pays for."""
    function = {"name": tool.name, "description": tool.help, "parameters": _bare(tool.schema)}
    return {"type": "function", "function": function}


def function_entries(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [function_entry(tool) for tool in tools]


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _bare(value) for key, value in schema.items() if key not in ("description", "properties")}
    if "properties" in schema:  # here a name may be "description"
        kept["properties"] = {name: _bare(value) for name, value in schema["properties"].items()}
    return kept


def help_text(tool: Tool) -> str:
    lines = [f"{tool.name}: {tool.help}"]
    for name, field in tool.arguments.fields().items():
        default = field.arg.default
        shown = "optional" if default in (None, ()) else f"default {default!r}"
        wanted = "" if field.required else f" ({shown})"
        lines.append(f"  {name}: {field.kind.name}{wanted}: {field.arg.help}")
    return "\n".join(lines)
