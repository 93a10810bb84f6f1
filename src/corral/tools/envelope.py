"""The envelope: a request decoded strictly, a response encoded."""

from __future__ import annotations

import json

from corral.record import Record
from corral.tools.failures import Failure, invalid
from corral.tools.limits import CLIENT_CHARACTERS, MB, REQUEST_BYTES, REQUEST_DEPTH, REQUEST_ID_CHARACTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    Response = dict[str, Any]

NO_INPUT = "no input: pipe a JSON request to stdin (try corral tool --help)"
KEYS = ("tool", "args", "client", "compress", "request_id")


class Request(Record):
    tool: str
    args: Mapping[str, object]
    client: str | None
    compress: bool
    request_id: str


def parse(text: str | bytes | bytearray | memoryview) -> dict[str, object]:
    """One JSON object and nothing else."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    if len(raw) > REQUEST_BYTES:
        raise Failure(
            f"request too large: {len(raw) // MB} MB (max {REQUEST_BYTES // MB} MB)", "resource_limit"
        )
    if not raw.strip():
        raise invalid(NO_INPUT)
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid(f"invalid JSON: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise invalid(f"invalid JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise invalid(
            f"invalid JSON: {error if isinstance(error, _Refused) else 'too deep or too long'}"
        ) from None
    if not isinstance(value, dict):
        raise invalid("invalid JSON: a request is one object")
    return value


class _Refused(ValueError):
    """A reason of ours, inside the decoder."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"duplicate key {json.dumps(key)}")
            seen.add(key)
    return made


def _constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def understand(given: Mapping[str, object]) -> Request:
    """The envelope's own keys, typed. The arguments are the tool's to check."""
    for key in given:
        if key not in KEYS:
            raise invalid(f"unknown key {key!r} in the request", f"it takes {', '.join(KEYS)}")
    tool, args = given.get("tool"), given.get("args", {})
    if not isinstance(tool, str) or not tool:
        raise invalid("tool must be the name of a tool", "list_tools names them")
    if args is None:
        args = {}
    if not isinstance(args, dict):
        raise invalid("args must be an object")
    _check_depth(args)
    client, compress = given.get("client"), given.get("compress")
    if client is not None and (not isinstance(client, str) or not _is_name(client)):
        raise invalid(f"client must be a name of at most {CLIENT_CHARACTERS} letters, digits, _, . and -")
    if compress is not None and type(compress) is not bool:
        raise invalid("compress must be a boolean")
    if given.get("request_id") is not None and not request_id_of(given):
        raise invalid(f"request_id must be a string of 1 to {REQUEST_ID_CHARACTERS} characters")
    return Request(tool, args, client, bool(compress), request_id_of(given))


def request_id_of(given: Mapping[str, object]) -> str:
    found = given.get("request_id")
    return found if isinstance(found, str) and len(found) <= REQUEST_ID_CHARACTERS else ""


def _is_name(text: str) -> bool:
    return len(text) <= CLIENT_CHARACTERS and text.isascii() and all(c.isalnum() or c in "_.-" for c in text)


def _check_depth(args: object) -> None:
    """Deeper than this nothing is meant, and whoever walks it by recursion would fall."""
    level: list[object] = [args]
    for _ in range(REQUEST_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise invalid(f"args are more than {REQUEST_DEPTH} levels deep")


def encode(response: Response) -> bytes:
    """One line of ASCII, so that no text in it can end it or break it."""
    return json.dumps(response, separators=(",", ":")).encode("ascii")
