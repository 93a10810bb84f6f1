"""One request, one response: strict on the way in, always well formed on the way out."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from cases import case
from corral import LocalEnvironment, PolicyError
from corral.tools.arguments import Arguments, arg
from corral.tools.engine import Engine
from corral.tools.envelope import encode
from corral.tools.limits import REQUEST_BYTES
from corral.tools.reply import Reply
from corral.tools.tool import Tool
from tools.room import Room

ASKS = '{"tool":"list_tools"}'


@case("jinn-1", "jinn-2", "jinn-3", "jinn-6", "jinn-7")
@pytest.mark.parametrize(
    ("request_text", "error"),
    [
        (b"", "no input: "),
        (b" \n\t", "no input: "),
        (b"{bad", "invalid JSON: "),
        (b"[]", "invalid JSON: a request is one object"),
        (b'"tool"', "invalid JSON: a request is one object"),
        (b"null", "invalid JSON: a request is one object"),
        (ASKS.encode() + b" x", "invalid JSON: Extra data"),
        (ASKS.encode() * 2, "invalid JSON: Extra data"),
        (b'{"tool":"a","tool":"b"}', 'invalid JSON: duplicate key "tool"'),
        (b'{"tool":"list_tools","args":{"x":{"y":1,"y":2}}}', 'invalid JSON: duplicate key "y"'),
        (b'{"tool":"list_tools","args":{"x":NaN}}', "invalid JSON: NaN is no JSON number"),
        (b'{"tool":"list_tools","args":{"x":' + b"9" * 5000 + b"}}", "invalid JSON: too deep or too long"),
        (b"\xff\xfe{}", "invalid JSON: not UTF-8 at byte 0"),
        (b"[" * 100_000, "invalid JSON: too deep or too long"),
        (
            b'{"tool":"list_tools","args":' + b'{"a":' * 200 + b"1" + b"}" * 201,
            "args are more than 100 levels",
        ),
    ],
)
def test_what_is_no_request_is_one_clear_error(room: Room, request_text: bytes, error: str) -> None:
    response = room.engine.call(request_text)
    assert response["error"].startswith(error)
    assert (response["ok"], response["error_code"]) == (False, "invalid_args")
    assert room.engine.call(ASKS)["ok"]


def test_a_request_that_is_too_large_is_refused_before_it_is_read(room: Room) -> None:
    large = b'{"tool":"list_tools","client":"' + b"x" * REQUEST_BYTES + b'"}'
    response = room.engine.call(large)
    assert (response["error_code"], response["error"]) == (
        "resource_limit",
        "request too large: 16 MB (max 16 MB)",
    )
    assert room.engine.call(large[:31] + b'"}')["ok"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, "tool must be the name of a tool"),
        ({"tool": 5}, "tool must be the name of a tool"),
        ({"tool": "list_tools", "args": []}, "args must be an object"),
        ({"tool": "list_tools", "arguments": {}}, "unknown key 'arguments' in the request"),
        ({"tool": "list_tools", "compress": 1}, "compress must be a boolean"),
        ({"tool": "list_tools", "client": "a/b"}, "client must be a name"),
        ({"tool": "list_tools", "client": "x" * 65}, "client must be a name"),
        ({"tool": "list_tools", "request_id": 7}, "request_id must be a string"),
    ],
)
def test_the_envelope_has_its_own_keys_and_types(room: Room, wrong: dict[str, Any], error: str) -> None:
    response = room.engine.call(wrong)
    assert response["error"].startswith(error)
    assert response["error_code"] == "invalid_args"


@case("jinn-4")
def test_an_unknown_tool_is_named(room: Room) -> None:
    assert room.refused("nope") == ("invalid_args", "unknown tool: nope")
    assert room.call("read_fil")["suggestion"] == "did you mean read_file?"


@case("jinn-5")
def test_the_id_of_a_request_comes_back_with_success_and_with_failure(room: Room) -> None:
    room.file("a", "x\n")
    assert room.call("read_file", path="a", request="r1")["request_id"] == "r1"
    assert room.call("read_file", path="b", request="r2")["request_id"] == "r2"
    assert room.call("nope", request="r3")["request_id"] == "r3"
    assert room.engine.call({"tool": 1, "request_id": "r4"})["request_id"] == "r4"
    assert "request_id" not in room.call("read_file", path="a")


@case("jinn-8")
@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"path": "a", "pth": 1}, "unknown argument pth (did you mean path?)"),
        ({}, "path is required"),
        ({"path": 5}, "path must be a string, not an integer"),
        ({"path": None}, "path must be a string, not null"),
        ({"path": "a", "start_line": "5"}, "start_line must be an integer, not a string"),
        ({"path": "a", "start_line": True}, "start_line must be an integer, not a boolean"),
        ({"path": "a", "start_line": 1.5}, "start_line must be an integer, not a number"),
        ({"path": "a", "start_line": -1}, "start_line must be at least 0, not -1"),
        ({"path": "a", "start_line": 10**20}, "start_line must be at most 9.0072e+15"),
        ({"path": "a", "line_numbers": 1}, "line_numbers must be a boolean, not an integer"),
    ],
)
def test_arguments_are_checked_by_name_type_and_range(room: Room, args: dict[str, Any], error: str) -> None:
    room.file("a", "x\n")
    assert room.refused("read_file", **args) == ("invalid_args", error)
    assert room.text("read_file", path="a", start_line=1.0) == "1\tx"


def test_what_is_wrong_deep_inside_is_named_by_its_place(room: Room) -> None:
    edits = [{"path": "a", "old_text": "x", "new_text": "y"}, {"path": "a", "old_text": 1, "new_text": "y"}]
    assert room.refused("multi_edit", edits=edits)[1] == "edits[1].old_text must be a string, not an integer"
    assert room.refused("multi_edit", edits=[{}])[1] == "edits[0].path is required"
    assert room.refused("multi_edit", edits=[])[1] == "edits must have at least 1 of them, not 0"
    assert room.refused("multi_edit", edits={})[1] == "edits must be a list, not an object"


@case("jinn-10")
def test_list_tools_has_the_schema_only_if_it_is_asked_for(room: Room) -> None:
    told = room.json("list_tools")
    assert "read_file" in told["tools"]
    assert told["features"]["undo"] is True
    assert "schema" not in told
    with_schema = room.json("list_tools", include_schema=True)
    named = {entry["function"]["name"]: entry["function"] for entry in with_schema["schema"]}
    assert list(named) == with_schema["tools"]
    assert "description" not in json.dumps(named["read_file"]["parameters"])


def test_schema_help_and_check_come_from_the_same_types(room: Room) -> None:
    from corral.tools.schema import help_text

    for tool in room.engine.tools():
        assert tool.schema["additionalProperties"] is False
        assert set(tool.schema["properties"]) == set(tool.arguments.fields())
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert not (tool.read_only and (tool.destructive or tool.changes))
        for name in tool.schema["properties"]:
            assert f"  {name}: " in help_text(tool)
        wrong = room.call(tool.name, **{"no such argument": 1})
        assert wrong["error_code"] == "invalid_args"


def test_only_what_is_offered_can_be_called(room: Room) -> None:
    with Engine(room.engine.environment, tools=["list_tools", "read_file"]) as engine:
        assert engine.offered == ("read_file", "list_tools")
        assert engine.call({"tool": "write_file", "args": {}})["error"] == "unknown tool: write_file"
        assert engine.call({"tool": "list_tools"})["ok"]
    with pytest.raises(PolicyError, match="unknown tool 'read'"):
        Engine(room.engine.environment, tools=["read"])


def test_a_bug_in_a_tool_is_a_response_too(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing(Arguments):
        x: int = arg("nothing", 0)

    def broken(_call: object, _args: Nothing) -> Reply:
        raise ZeroDivisionError("oops")

    from corral.tools import registry

    tool = Tool(name="list_tools", help="", arguments=Nothing, run=broken)
    monkeypatch.setitem(registry._loaded, "list_tools", tool)
    assert room.refused("list_tools") == ("internal_error", "internal error: ZeroDivisionError: oops")


def test_many_threads_may_call_at_once(room: Room) -> None:
    for number in range(8):
        room.file(f"f{number}", "start\n")
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(20):
            old = "start" if turn == 0 else f"turn {turn - 1}\n"
            new = f"turn {turn}\n" if turn else f"turn {turn}"
            response = room.call("edit_file", path=f"f{number}", old_text=old, new_text=new)
            wrong.extend([] if response["ok"] else [response])
            room.call("read_file", path=f"f{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert {(room.root / f"f{number}").read_text() for number in range(8)} == {"turn 19\n"}


def test_edits_of_one_file_at_once_all_land(room: Room) -> None:
    room.file("shared", "".join(f"<{number}>\n" for number in range(20)))

    def work(number: int) -> None:
        room.call("edit_file", path="shared", old_text=f"<{number}>", new_text=f"done {number}.")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (room.root / "shared").read_text() == "".join(f"done {number}.\n" for number in range(20))


def test_a_response_is_one_line_of_ascii_whatever_is_in_it(room: Room) -> None:
    room.file("a", "é\u2028 \udc80 \x00"[:2] + "\n")
    room.file("b", b"\xff\xfe text\n")
    for path in ("a", "b", "\udcff"):
        line = encode(room.call("read_file", path=path))
        assert line.isascii()
        assert b"\n" not in line
        assert json.loads(line)["ok"] in (True, False)


def test_an_engine_can_be_closed_and_goes_on(room: Room) -> None:
    room.file("a", "x\n")
    with LocalEnvironment(room.root, room.engine.policy) as environment:
        engine = Engine(environment)
        assert engine.call({"tool": "read_file", "args": {"path": "a"}})["ok"]
        engine.close()
        engine.close()
        assert engine.call({"tool": "read_file", "args": {"path": "a"}})["ok"]
        engine.close()
