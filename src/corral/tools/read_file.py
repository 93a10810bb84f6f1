"""read_file: the text of a file, a window of it, or an image."""

from __future__ import annotations

from corral.errors import FileTooLarge
from corral.files.sniff import HEAD_BYTES, sniff
from corral.tools.arguments import arg
from corral.tools.failures import Failure
from corral.tools.limits import MB, READ_FILE_BYTES
from corral.tools.reply import Reply
from corral.tools.tool import Tool
from corral.tools.windows import Window, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call


class ReadFile(Window):
    include_checksum: bool = arg("add the SHA-256 of the whole file", False)
    if_checksum: str = arg("the SHA-256 that you know; if it is still the same, only that is said", "")


def read_file(call: Call, args: ReadFile) -> Reply:
    content = load(call, args.path)
    meta: dict[str, Any] = {}
    if args.include_checksum or args.if_checksum:
        from corral.digest import digest

        checksum = digest(content)
        if args.if_checksum.lower() == checksum:
            return Reply.json({"unchanged": True, "path": args.path, "checksum": checksum})
        if args.include_checksum:
            meta["sha256"] = checksum
    kind, media = sniff(content[:HEAD_BYTES], args.path)
    if kind == "image":
        import base64

        data = base64.b64encode(content).decode("ascii")
        return Reply(content=({"type": "image", "data": data, "mimeType": media},), meta=meta)
    if kind == "binary":
        return Reply(binary_notice(content), meta=meta, as_is=True)
    refuse_pdf(kind)
    shown = show(content, args)
    if shown.truncation is not None:
        meta["truncation"] = shown.truncation
    return Reply(shown.text, meta=meta, as_is=True)


def load(call: Call, path: str) -> bytes:
    """The whole content, of a spill file of ours too."""
    if path.startswith("/"):
        spilled = call.spills.read(path)
        if spilled is not None:
            return spilled
    try:
        return call.files.read_bytes(path, limit=READ_FILE_BYTES)
    except FileTooLarge:
        raise too_large(call, path, READ_FILE_BYTES) from None


def too_large(call: Call, path: str, limit: int) -> Failure:
    size = call.files.stat(path).st_size
    return Failure(
        f"file too large: {size // MB} MB (max {limit // MB} MB)",
        "file_too_large",
        "search_files finds the lines you need",
    )


def binary_notice(content: bytes) -> str:
    return f"[binary file: {len(content)} bytes — use checksum_tree for integrity or skip content reads]"


def refuse_pdf(kind: str) -> None:
    if kind == "pdf":
        raise Failure(
            "pdf extraction not supported in zero-dep mode",
            "binary_file",
            "convert the PDF to text first (pdftotext, pdftk, or a cloud OCR service) and read the text file",
        )


TOOL = Tool(
    name="read_file",
    help="Read a text file, or an image, with line numbers",
    arguments=ReadFile,
    run=read_file,
    read_only=True,
    idempotent=True,
)
