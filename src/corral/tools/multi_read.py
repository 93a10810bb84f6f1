"""multi_read: several files in one call."""

from __future__ import annotations

from corral.files.sniff import HEAD_BYTES, sniff
from corral.tools.arguments import Arguments, arg
from corral.tools.failures import Failure, told
from corral.tools.limits import KB, MB, MULTI_READ_BYTES, MULTI_READ_FILES, MULTI_READ_SOURCE_BYTES
from corral.tools.read_file import binary_notice, load, refuse_pdf
from corral.tools.reply import Reply
from corral.tools.tool import Tool
from corral.tools.windows import Shown, Window, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.tools.call import Call


class MultiRead(Arguments):
    files: list[Window] = arg("the files, each as read_file takes it", least=1, most=MULTI_READ_FILES)


def multi_read(call: Call, args: MultiRead) -> Reply:
    files: dict[str, str] = {}
    errors: dict[str, dict[str, str]] = {}
    truncation: dict[str, Any] = {}
    room = _Room()
    for wanted in args.files:
        call.check_canceled()
        name = _name(wanted, files, errors)
        try:
            shown = _read(call, wanted, room)
        except (Failure, OSError) as error:
            failure = told(error, wanted.path)
            errors[name] = {"error": failure.message, "error_code": failure.code}
            continue
        files[name] = shown.text
        if shown.truncation is not None:
            truncation[name] = shown.truncation
    if not files:
        raise Failure(
            f"all {len(args.files)} files failed",
            _only_code(errors),
            "; ".join(f"{name}: {error['error']}" for name, error in errors.items()),
            meta={"errors": errors},
        )
    return Reply.json(
        {"files": files, "errors": errors, "truncation": truncation, "truncated_global": room.is_over}
    )


class _Room:
    """What is left of what one answer holds, and of what is read for it. Once it is over, it stays so."""

    def __init__(self) -> None:
        self._shown, self._read = MULTI_READ_BYTES, MULTI_READ_SOURCE_BYTES
        self.is_over = False

    def check(self) -> None:
        if self.is_over:
            raise Failure(
                f"not read: one answer holds {MULTI_READ_BYTES // KB} KB, of at most "
                f"{MULTI_READ_SOURCE_BYTES // MB} MB of files",
                "global_cap_exceeded",
            )

    def take(self, shown: int, read: int) -> None:
        self._shown -= shown
        self._read -= read
        self.is_over = self._shown < 0 or self._read < 0
        self.check()


def _read(call: Call, wanted: Window, room: _Room) -> Shown:
    room.check()
    content = load(call, wanted.path)
    kind, _ = sniff(content[:HEAD_BYTES], wanted.path)
    refuse_pdf(kind)
    if kind == "image":
        raise Failure(f"an image: {wanted.path}", "binary_file", "read_file shows it")
    shown = Shown(binary_notice(content)) if kind == "binary" else show(content, wanted)
    room.take(len(shown.text.encode("utf-8", "surrogatepass")), len(content))
    return shown


def _name(wanted: Window, *taken: dict[str, Any]) -> str:
    """The path; where it is asked for more than once, with a number."""
    name = wanted.path
    number = 1
    while any(name in names for names in taken):
        number += 1
        name = f"{wanted.path}#{number}"
    return name


def _only_code(errors: dict[str, dict[str, str]]) -> Any:
    codes = {error["error_code"] for error in errors.values()}
    return codes.pop() if len(codes) == 1 else "invalid_args"


TOOL = Tool(
    name="multi_read",
    help="Read up to 20 files in one call",
    arguments=MultiRead,
    run=multi_read,
    read_only=True,
    idempotent=True,
)
