"""The record of every call and every run: what was asked, what was decided, how it was held.

One line of JSON each, chained by hashes, in the state directory, which no jail shows. Arguments are kept as a digest:
the record must not become a second copy of what passes through it. `corral run` records too, so neither :mod:`json`
nor :mod:`hashlib` is imported here.
"""

from __future__ import annotations

import os
import sys

from corral.audit.log import Log
from corral.digest import digest
from corral.state import made_state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from corral.audit.log import Value
    from corral.environment.base import Posture

DIRECTORY = "audit"

# Error codes of a call that a rule said no to; every other failure is a failure of the call itself.
REFUSALS = frozenset(
    {
        "path_outside_sandbox",
        "permission_denied",
        "command_blocked",
        "command_denied",
        "command_hardline",
        "command_repeated",
        "approval_required",
        "stale_file",
    }
)


class Audit:
    """Writes records. A record that cannot be written is said once on stderr; the call it is about goes on."""

    def __init__(self, log: Log | None) -> None:
        self.log = log
        self._complained = False

    @classmethod
    def here(cls) -> Audit:
        """In the state directory; without effect where there is none to write to, as inside a jail."""
        state = made_state_directory()
        return cls(None if state is None else Log(os.path.join(state, DIRECTORY)))

    def close(self) -> None:
        if self.log is not None:
            self.log.close()

    def record_call(
        self,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        posture: Posture | None,
        *,
        front: str,
        size: int,
    ) -> None:
        """One tool call. ``front`` is who passed it on (tool, stream, mcp), ``size`` the bytes of its answer."""
        arguments = request.get("args")
        meta = response.get("meta")
        code = response.get("error_code")
        self._write(
            "call",
            tool=_text(request.get("tool")),
            arguments=fingerprint(arguments),
            risk=_text(response.get("risk")),
            decision=decision(arguments, response),
            code=_text(code),
            posture=shown(posture),
            exit=_number(meta.get("exit_code") if isinstance(meta, dict) else None),
            bytes=size,
            front=front,
            client=_text(request.get("client")),
            request_id=_text(request.get("request_id")),
        )

    def record_run(
        self,
        argv: Sequence[str],
        posture: Posture | None,
        *,
        cwd: str,
        decision: str = "allowed",
        risk: str | None = None,
        exit_code: int | None = None,
        size: int | None = None,
        front: str = "run",
    ) -> None:
        """One command. ``exit_code`` and ``size`` stay empty where this process becomes the command."""
        words = b"\0".join(os.fsencode(word) for word in (cwd, *argv))
        self._write(
            "run",
            tool=os.path.basename(argv[0]) if argv else None,
            arguments=digest(words),
            risk=risk,
            decision=decision,
            posture=shown(posture),
            exit=exit_code,
            bytes=size,
            front=front,
        )

    def _write(self, kind: str, **fields: Value) -> None:
        if self.log is None:
            return
        try:
            self.log.append(kind, fields)
        except OSError as error:
            if not self._complained:
                self._complained = True
                print(f"corral: the audit is not written: {error}", file=sys.stderr)


def decision(arguments: object, response: Mapping[str, Any]) -> str:
    """allowed, forced (dangerous, and the caller insisted), refused by a rule, canceled, or failed."""
    if response.get("ok"):
        forced = isinstance(arguments, dict) and arguments.get("force") is True
        return "forced" if forced and response.get("risk") == "dangerous" else "allowed"
    code = response.get("error_code")
    if code in REFUSALS:
        return "refused"
    return "canceled" if code == "canceled" else "failed"


def shown(posture: Posture | None) -> str | None:
    """How it was held, in four words."""
    if posture is None:
        return None
    proven = "enforcing" if posture.enforcing else "not-enforcing"
    return f"{posture.mode} {posture.mechanism} network-{posture.network} {proven}"


_encode: Callable[[object], str] | None = None


def fingerprint(arguments: object) -> str | None:
    """The same for the same arguments, in whatever order they were given; None for what no JSON can hold."""
    global _encode
    if _encode is None:
        import json

        _encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
    try:
        text = _encode(arguments)
    except (TypeError, ValueError, RecursionError):
        return None
    return digest(text.encode("utf-8", "surrogatepass"))


def _text(value: object) -> str | None:
    """What a caller gave, bounded: the record holds names, not contents."""
    return value[:128] if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
