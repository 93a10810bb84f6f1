"""Reply: what a tool answers when it did what it was asked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Block = dict[str, str]


class Reply:
    """``result``: text. ``content``: blocks as ``{"type": "image", "data": base64, "mimeType": …}``. ``as_is``: the
    engine does not cut and collapse the lines of the result, because the tool has done it, or it is JSON."""

    __slots__ = ("as_is", "classification", "content", "meta", "result", "risk")

    def __init__(
        self,
        result: str = "",
        *,
        content: tuple[Block, ...] = (),
        meta: dict[str, Any] | None = None,
        classification: str = "",
        risk: str = "",
        as_is: bool = False,
    ) -> None:
        self.result = result
        self.content = content
        self.meta = meta
        self.classification = classification
        self.risk = risk
        self.as_is = as_is

    @classmethod
    def json(cls, value: Any, meta: dict[str, Any] | None = None) -> Reply:
        """A structured result: JSON inside the result's text."""
        import json

        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(text, meta=meta, as_is=True)
