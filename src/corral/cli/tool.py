"""`corral tool`: one JSON request, one line of JSON; or a stream of them."""

from __future__ import annotations

import contextlib
import os
import sys

from corral.cli.options import directory_of
from corral.cli.serving import chosen_tools, help_text, policy_of, typed
from corral.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.cli.serving import Typed
    from corral.serve.desk import Desk

USAGE = """usage: corral tool [OPTION …] ['REQUEST']     one request, from the argument or from stdin
       corral tool --stream [OPTION …]        a request a line; answers in the order of completion
       corral tool --list | --schema

A request is {"tool": NAME, "args": {…}}, with client, compress and request_id if you like; the answer is one line.
Exit code 0 only if it says "ok": true, 1 if not; 2 the command line or the config is wrong; 125 refused by this host.
In a stream, {"cancel": ID} ends the request with that request_id."""
OWN = (
    (("--stream",), "", "many requests, a line each"),
    (("--schema",), "", "print the tools as function-calling JSON"),
    (("--list",), "", "print the tools, and the size of each one's schema"),
    (("--tools",), "LIST", "offer only these, separated by commas"),
)
WAYS = ("--stream", "--schema", "--list")


def main(subcommand: str, words: list[str]) -> int:
    given = typed(subcommand, words, OWN)
    if given.parsed.has("--help"):
        print(help_text(USAGE, OWN))
        return 0
    ways = [way for way in WAYS if way in given.own]
    if len(ways) > 1 or (ways and given.parsed.words) or len(given.parsed.words) > 1:
        raise PolicyError("corral tool takes one request, in a single argument; or one of " + ", ".join(WAYS))
    if "--schema" in given.own or "--list" in given.own:
        return _describe(given)
    request = given.parsed.words[0] if given.parsed.words else None
    if request is None and sys.stdin.isatty() and not ways:
        print(help_text(USAGE, OWN))
        return 0
    if "--stream" in given.own:
        return _stream(given)
    import gc

    gc.disable()  # one call: what it would find costs more to look for than it weighs
    code = _answer(given, request)
    sys.stdout.flush()
    os._exit(code)  # all is closed by now; taking the interpreter apart would be a tenth of the whole


def _stream(given: Typed) -> int:
    from corral.serve.stream import Stream

    with _opened(given, "stream") as desk:
        Stream(desk, 0, 1).run()
    return 0


def _answer(given: Typed, request: str | None) -> int:
    from corral.serve.lines import whole_input
    from corral.tools.envelope import encode
    from corral.tools.limits import REQUEST_BYTES

    raw = os.fsencode(request) if request is not None else whole_input(0, REQUEST_BYTES)
    with _opened(given, "tool") as desk:
        response = desk.answer(raw)
    sys.stdout.write(encode(response).decode("ascii") + "\n")
    return 0 if response["ok"] else 1


@contextlib.contextmanager
def _opened(given: Typed, front: str) -> Iterator[Desk]:
    from corral.audit import Audit
    from corral.environment.local import LocalEnvironment
    from corral.serve.desk import Desk
    from corral.tools.engine import Engine

    directory = directory_of(given.parsed)
    tools = chosen_tools(given.own.get("--tools"))
    with (
        LocalEnvironment(directory, policy_of(given.parsed, directory)) as environment,
        Engine(environment, tools=tools) as engine,
    ):
        yield Desk(engine, Audit.here(), front)


def _describe(given: Typed) -> int:
    import json

    from corral.tools.registry import NAMES, load_all
    from corral.tools.schema import function_entries

    chosen = chosen_tools(given.own.get("--tools"))
    tools = load_all([name for name in NAMES if chosen is None or name in chosen])
    entries = function_entries(tools)
    if "--schema" in given.own:
        print(json.dumps(entries, separators=(",", ":")))
        return 0
    sizes = [len(json.dumps(entry, separators=(",", ":"))) for entry in entries]
    for tool, size in zip(tools, sizes, strict=True):
        print(f"{tool.name:<16} {size:>6} bytes  {tool.help}")
    print(f"{'in all':<16} {sum(sizes):>6} bytes")
    return 0
