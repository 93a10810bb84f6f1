"""What kind of content a file has, by its first bytes. Names lie; only SVG, which is text, goes by its name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["text", "binary", "image", "pdf"]

HEAD_BYTES = 512

# At which offset, what stands there, and what that is called.
SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\1\0", "image/x-icon"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
)
# What a second look at the head must show, where the signature alone is two letters.
CONFIRMED = {"image/webp": b"RIFF", "image/bmp": b"\0"}
PDF = b"%PDF-"


def sniff(head: bytes, name: str = "") -> tuple[Kind, str]:
    """The kind, and the media type, of a file that begins like this; ``head`` is up to 512 bytes."""
    head = head[:HEAD_BYTES]
    if head.startswith(PDF) or name.lower().endswith(".pdf"):
        return "pdf", "application/pdf"
    for offset, magic, media in SIGNATURES:
        if head.startswith(magic, offset) and CONFIRMED.get(media, b"") in head:
            return "image", media
    if b"\0" in head:
        return "binary", "application/octet-stream"
    if name.lower().endswith(".svg"):
        return "image", "image/svg+xml"
    return "text", "text/plain"
