"""Desk: an engine behind a front end. Every call gets one response, and every call is recorded."""

from __future__ import annotations

from corral.tools.engine import failed
from corral.tools.envelope import parse, request_id_of
from corral.tools.failures import Failure
from corral.tools.limits import MB, REQUEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from corral.audit import Audit
    from corral.serve.lines import TooLong
    from corral.tools.call import Cancel, Progress
    from corral.tools.engine import Engine

    Response = dict[str, Any]


class Desk:
    """``front``: the name of the front end in the record."""

    def __init__(self, engine: Engine, audit: Audit, front: str) -> None:
        self.engine = engine
        self.audit = audit
        self.front = front

    def call(
        self,
        request: Mapping[str, Any],
        cancel: Cancel | None = None,
        progress: Progress | None = None,
    ) -> Response:
        response = self.engine.call(request, cancel=cancel, progress=progress)
        self.record(request, response)
        return response

    def record(self, request: Mapping[str, Any], response: Response) -> None:
        self.audit.record_call(
            request,
            response,
            self.engine.environment.posture,
            front=self.front,
            size=size_of(response),
        )

    def answer(self, raw: bytes | TooLong) -> Response:
        """A request as it came, decoded and called."""
        request, problem = decoded(raw)
        if problem is None:
            return self.call(request)
        self.record(request, problem)
        return problem


def decoded(raw: bytes | TooLong) -> tuple[dict[str, object], Response | None]:
    """The request, and the response to it if it is none: malformed, or too large."""
    if not isinstance(raw, bytes):
        return too_large(raw)
    try:
        return parse(raw), None
    except Failure as failure:
        return {}, failed(failure)


def too_large(line: TooLong) -> tuple[dict[str, object], Response]:
    largest = f"max {REQUEST_BYTES // MB} MB"
    response = failed(Failure(f"request too large: {line.size // MB} MB ({largest})", "resource_limit"))
    found = line.member("request_id")
    request: dict[str, object] = {} if found is None else {"request_id": found}
    if request_id_of(request):
        response["request_id"] = found
    return request, response


def size_of(response: Response) -> int:
    """Bytes of what a caller is given to read."""
    text = f"{response.get('result', '')}{response.get('error', '')}"
    return len(text.encode("utf-8", "surrogatepass")) + sum(
        len(block.get("data", "")) for block in response.get("content", ())
    )
