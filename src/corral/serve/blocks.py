"""Responses of the engine as MCP has them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import mcp_types as types

if TYPE_CHECKING:
    from corral.tools.tool import Tool

    Block = types.TextContent | types.ImageContent | types.EmbeddedResource

SVG = "image/svg+xml"
ENVELOPE = ("error_code", "suggestion", "classification", "risk", "meta")


def described(tool: Tool) -> types.Tool:
    annotations = types.ToolAnnotations.model_validate(tool.annotations)
    return types.Tool(
        name=tool.name, description=tool.help, input_schema=tool.schema, annotations=annotations
    )


def answered(response: dict[str, Any]) -> types.CallToolResult:
    """Text first, then images. The rest of the envelope goes into ``_meta``: clients show the model what is structured
    *instead of* the text."""
    text = response.get("result", "")
    if not response["ok"]:
        parts = (response.get("error", ""), response.get("suggestion", ""), text)
        text = "\n".join(part for part in parts if part)
    blocks: list[Block] = [_block(block) for block in response.get("content", ())]
    if text or not blocks:
        blocks.insert(0, types.TextContent(type="text", text=_sendable(text)))
    envelope = {name: response[name] for name in ENVELOPE if name in response}
    result = types.CallToolResult(content=list(blocks), is_error=not response["ok"])
    if envelope:
        result.meta = {"corral/envelope": _sendable_all(envelope)}
    return result


def _block(block: dict[str, str]) -> Block:
    if block["mimeType"] != SVG:
        return types.ImageContent(type="image", data=block["data"], mime_type=block["mimeType"])
    # No model takes SVG as an image, and a client that passes it on as one loses the conversation.
    text = base64.b64decode(block["data"]).decode("utf-8", "replace")
    resource = types.TextResourceContents(uri="corral://image.svg", mime_type=SVG, text=text)
    return types.EmbeddedResource(type="resource", resource=resource)


def _sendable(text: str) -> str:
    """A name of a file may hold bytes that are no text; on this wire they cannot stand."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _sendable_all(value: Any) -> Any:
    if isinstance(value, str):
        return _sendable(value)
    if isinstance(value, dict):
        return {_sendable_all(key): _sendable_all(inner) for key, inner in value.items()}
    return [_sendable_all(inner) for inner in value] if isinstance(value, list | tuple) else value
