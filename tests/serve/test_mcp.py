"""`corral mcp`, driven by the SDK's own client over real pipes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from cli.typed import CORRAL
from corral.audit.reading import verify
from jail.world import carrying, new_mark
from serve.talk import Caller, soon

pytestmark = pytest.mark.jail

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ANNOTATIONS = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")
MODES = ("auto", "legacy")
HANDSHAKE: tuple[dict[str, Any], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "claude-code", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)


@contextlib.asynccontextmanager
async def connected(caller: Caller, *words: str, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=CORRAL, args=["mcp", *words], env=caller.variables, cwd=caller.workspace
    )
    with open(os.devnull, "w") as nowhere:
        async with Client(stdio_client(server, errlog=nowhere), mode=mode, **options) as client:
            yield client


def talking(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(50):
            await work()

    anyio.run(bounded)


def text_of(result: Any) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


def envelope_of(result: types.CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] = (result.meta or {})["corral/envelope"]
    return found


def server_pids(caller: Caller) -> list[int]:
    """Servers that work in this workspace."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"mcp" in words and os.readlink(f"/proc/{pid}/cwd") == str(caller.workspace):
                found.append(int(pid))
    return found


# ---- tools ----


@pytest.mark.parametrize("mode", MODES)
def test_every_tool_is_listed_with_a_schema_and_all_four_annotations(caller: Caller, mode: str) -> None:
    async def work() -> None:
        async with connected(caller, mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert len(tools) == 19
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.annotations is not None
            hints = [getattr(tool.annotations, name) for name in ANNOTATIONS]
            assert all(isinstance(hint, bool) for hint in hints), tool.name
        read, run = tools["read_file"].annotations, tools["run_shell"].annotations
        assert read is not None
        assert run is not None
        assert (read.read_only_hint, read.destructive_hint) == (True, False)
        assert (run.read_only_hint, run.destructive_hint) == (False, True)

    talking(work)


CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "multi_read": {"files": [{"path": "a.txt"}, {"path": "b.txt"}]},
    "write_file": {"path": "new.txt", "content": "new\n"},
    "edit_file": {"path": "a.txt", "old_text": "one", "new_text": "ONE"},
    "multi_edit": {"edits": [{"path": "b.txt", "old_text": "two", "new_text": "TWO"}]},
    "apply_patch": {"patch": "*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch\n"},
    "search_replace": {"pattern": "TWO", "replacement": "2", "files": "b.txt"},
    "search_files": {"pattern": "ONE"},
    "find_files": {"pattern": "*.txt"},
    "list_dir": {},
    "stat_file": {"path": "a.txt"},
    "diff_files": {"path_a": "a.txt", "path_b": "b.txt"},
    "checksum_tree": {},
    "detect_project": {},
    "list_tools": {},
    "undo": {"action": "list"},
    "memory": {"action": "save", "key": "k", "value": "v"},
    "related_context": {"query": "anything"},
    "run_shell": {"command": "cat b.txt"},
}


@pytest.mark.parametrize("mode", MODES)
def test_each_tool_can_be_called(caller: Caller, mode: str) -> None:
    (caller.workspace / "a.txt").write_text("one\n")
    (caller.workspace / "b.txt").write_text("two\n")
    said: dict[str, str] = {}

    async def work() -> None:
        async with connected(caller, mode=mode) as client:
            for name, arguments in CALLS.items():
                result = await client.call_tool(name, arguments)
                assert not result.is_error, (name, result.content)
                said[name] = text_of(result)

    talking(work)
    assert "one" in said["read_file"]
    assert (caller.workspace / "new.txt").read_text() == "new\n"
    assert (caller.workspace / "patched.txt").read_text() == "x\n"
    assert "2\n" in said["run_shell"]
    assert "a.txt" in said["search_files"]
    assert [r["tool"] for r in caller.records()] == list(CALLS)
    assert {r["front"] for r in caller.records()} == {"mcp"}


def test_a_failure_is_an_error_result_with_the_text_and_the_code(caller: Caller) -> None:
    async def work() -> None:
        async with connected(caller) as client:
            outside = await client.call_tool("read_file", {"path": "/etc/passwd"})
            assert outside.is_error
            assert "outside working directory" in text_of(outside)
            assert envelope_of(outside)["error_code"] == "path_outside_sandbox"
            for name, arguments in (
                ("nope", {}),
                ("read_file", {}),
                ("read_file", {"path": 7}),
                ("list_dir", {"x": 1}),
            ):
                assert (await client.call_tool(name, arguments)).is_error
            assert not (await client.call_tool("list_dir", {})).is_error

    talking(work)


def test_an_image_is_image_content_and_svg_is_text(caller: Caller) -> None:
    (caller.workspace / "picture").write_bytes(PNG)
    (caller.workspace / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    async def work() -> None:
        async with connected(caller) as client:
            (image,) = (await client.call_tool("read_file", {"path": "picture"})).content
            assert isinstance(image, types.ImageContent)
            assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", PNG)
            (drawing,) = (await client.call_tool("read_file", {"path": "drawing.svg"})).content
            assert isinstance(drawing, types.EmbeddedResource)
            assert isinstance(drawing.resource, types.TextResourceContents)
            assert drawing.resource.text.startswith("<svg")

    talking(work)


def test_force_is_not_the_models_to_give(caller: Caller) -> None:
    (caller.workspace / "kept").write_text("")

    async def work() -> None:
        async with connected(caller) as client:
            result = await client.call_tool("run_shell", {"command": "rm kept", "force": True})
            assert result.is_error
            assert envelope_of(result)["risk"] == "dangerous"
            assert "force" not in text_of(result)

    talking(work)
    assert (caller.workspace / "kept").exists()
    assert caller.records()[0]["decision"] == "refused"


def test_only_the_tools_that_are_named_are_offered(caller: Caller) -> None:
    async def work() -> None:
        async with connected(caller, "--tools", "list_dir,stat_file") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["list_dir", "stat_file"]
            assert (await client.call_tool("run_shell", {"command": "ls"})).is_error

    talking(work)


# ---- long calls ----


@pytest.mark.parametrize("mode", MODES)
def test_a_call_is_cancelled_in_the_middle_and_its_processes_are_gone(caller: Caller, mode: str) -> None:
    mark = new_mark()

    async def work() -> None:
        async with connected(caller, mode=mode) as client:
            async with anyio.create_task_group() as group:
                arguments = {"command": f"exec -a {mark} sleep 60"}
                group.start_soon(client.call_tool, "run_shell", arguments)
                assert await anyio.to_thread.run_sync(soon, lambda: bool(carrying(mark)))
                group.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(soon, lambda: not carrying(mark))
            assert not (await client.call_tool("list_dir", {})).is_error

    talking(work)
    assert soon(lambda: "canceled" in [r["decision"] for r in caller.records()])


def test_progress_is_told_while_a_call_runs(caller: Caller) -> None:
    told: list[float] = []
    os.mkfifo(caller.workspace / "gate")

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) == 2:
            await anyio.to_thread.run_sync((caller.workspace / "gate").write_text, "go\n")

    async def work() -> None:
        async with connected(caller) as client:
            result = await client.call_tool("run_shell", {"command": "read x < gate"}, progress_callback=note)
            assert not result.is_error

    talking(work)
    assert told == sorted(set(told))


def test_50_calls_at_once_get_their_own_answers(caller: Caller) -> None:
    said: dict[int, str] = {}

    async def work() -> None:
        async with connected(caller) as client:

            async def one(number: int) -> None:
                said[number] = text_of(await client.call_tool("run_shell", {"command": f"echo {number}-x"}))

            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(one, number)

    talking(work)
    assert all(f"\n{number}-x\n" in f"\n{said[number]}\n" for number in range(50))


def test_an_argument_of_50_mb_is_refused_and_the_server_goes_on(caller: Caller) -> None:
    async def work() -> None:
        async with connected(caller) as client:
            with pytest.raises(MCPError, match="too large"):
                await client.call_tool("write_file", {"path": "big", "content": "x" * 50_000_000})
            assert not (await client.call_tool("list_dir", {})).is_error

    talking(work)
    assert not (caller.workspace / "big").exists()


def test_killed_it_leaves_nothing_running_and_a_new_one_goes_on(caller: Caller) -> None:
    mark = new_mark()

    async def work() -> None:
        with contextlib.suppress(Exception):
            async with connected(caller) as client, anyio.create_task_group() as group:
                arguments = {"command": f"exec -a {mark} sleep 60"}
                group.start_soon(client.call_tool, "run_shell", arguments)
                assert await anyio.to_thread.run_sync(soon, lambda: bool(carrying(mark)))
                (server,) = server_pids(caller)
                os.kill(server, signal.SIGKILL)
        assert await anyio.to_thread.run_sync(soon, lambda: not carrying(mark))
        async with connected(caller) as client:
            assert not (await client.call_tool("list_dir", {})).is_error

    talking(work)
    assert verify(str(caller.state / "audit")).whole


@pytest.mark.parametrize("end", ["input", "output"])
def test_it_ends_when_one_of_its_pipes_ends_and_so_does_what_it_runs(caller: Caller, end: str) -> None:
    mark = new_mark()
    call = {"name": "run_shell", "arguments": {"command": f"exec -a {mark} sleep 60"}}
    with subprocess.Popen(
        [CORRAL, "mcp"],
        cwd=caller.workspace,
        env=caller.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in (*HANDSHAKE, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}):
            server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        assert soon(lambda: bool(carrying(mark)))
        (server.stdin if end == "input" else server.stdout).close()
        assert server.wait(10) == 0
    assert soon(lambda: not carrying(mark))


# ---- resources and roots ----


def test_what_did_not_fit_is_a_resource_and_read_file_takes_its_path(caller: Caller) -> None:
    async def work() -> None:
        async with connected(caller) as client:
            await client.call_tool("run_shell", {"command": "seq 5000"})
            (resource,) = (await client.list_resources()).resources
            assert str(resource.uri).startswith("corral://spill/")
            (content,) = (await client.read_resource(str(resource.uri))).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text.startswith("1\n2\n")
            assert "\n5000" in content.text
            for uri in ("corral://spill/../head", "corral://spill/nope", "file:///etc/passwd"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    talking(work)


@pytest.mark.parametrize(("words", "reachable"), [((), False), (("--roots",), True)])
def test_roots_of_the_client_count_only_if_a_person_said_so(
    caller: Caller, words: tuple[str, ...], reachable: bool
) -> None:
    other = caller.world.granted
    (other / "there").write_text("found it")

    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{other}")])  # type: ignore[arg-type]

    async def work() -> None:
        async with connected(caller, *words, mode="legacy", list_roots_callback=roots) as client:

            async def reads() -> bool:
                return not (await client.call_tool("read_file", {"path": f"{other}/there"})).is_error

            for _ in range(100 if reachable else 5):
                if await reads():
                    break
                await anyio.sleep(0.02)
            assert await reads() == reachable

    talking(work)


# ---- the wire ----


def raw(caller: Caller, *lines: bytes) -> list[dict[str, Any]]:
    done = subprocess.run(
        [CORRAL, "mcp"],
        cwd=caller.workspace,
        env=caller.variables,
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_message_that_cannot_be_read_is_answered_with_its_id(caller: Caller) -> None:
    answers = raw(
        caller,
        b"{bad",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"method":"tools/call","params":{"name":"' + b"x" * 20_000_000 + b'"},"jsonrpc":"2.0","id":"late"}',
    )
    assert [(one["id"], one["error"]["code"]) for one in answers] == [
        (None, -32700),
        (7, -32700),
        ("late", -32600),
    ]


def test_a_wrong_command_line_is_one_line_on_stderr(caller: Caller) -> None:
    for words, code in ((("x",), 2), (("--tools", "x"), 2), (("--stream",), 2), (("-m", "x"), 2)):
        done = subprocess.run(
            [CORRAL, "mcp", *words],
            env=caller.variables,
            cwd=caller.workspace,
            capture_output=True,
            timeout=30,
        )
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1), done.stderr
    done = subprocess.run([CORRAL, "mcp", "--help"], env=caller.variables, capture_output=True, timeout=30)
    assert done.stdout.startswith(b"usage: corral mcp")
