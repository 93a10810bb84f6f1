"""The tools as an MCP server. The SDK costs a second to import; nothing but `corral mcp` imports this."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from corral import __version__
from corral.audit import Audit
from corral.environment.local import LocalEnvironment
from corral.errors import CorralError
from corral.serve.blocks import answered, described
from corral.serve.desk import Desk
from corral.serve.wire import Input, Output, private_streams
from corral.tools.call import Cancel
from corral.tools.engine import Engine, failed
from corral.tools.failures import Failure
from corral.tools.limits import CLIENT_CHARACTERS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from corral.policy import Policy

    Context = ServerRequestContext[Any, Any]

AT_ONCE = 64
WAITING = 1024
HEARTBEAT_SECONDS = 1.0
SPILL = "corral://spill/"
# How clients call themselves, and whose skills related_context looks for.
CLIENTS = (("claude", "claude"), ("codex", "codex"), ("pi", "pi"))

INSTRUCTIONS = (
    "File tools and a shell inside a fence. Paths are relative to the workspace, and nothing outside it can be changed."
    " Every refusal says which rule it was and what a person could do to allow it; trying another way does not help."
)


def serve(directory: str, policy: Policy, tools: tuple[str, ...] | None, *, with_roots: bool) -> None:
    """Until the input ends."""
    with (
        LocalEnvironment(directory, policy) as environment,
        Engine(environment, tools=tools) as engine,
    ):
        desk = Desk(engine, Audit.here(), "mcp")
        anyio.run(partial(_serve, Counter(desk, with_roots)))


async def _serve(counter: Counter) -> None:
    source, sink = private_streams()
    output = Output(sink)
    server = counter.server()
    async with stdio_server(cast(Any, Input(source, output)), cast(Any, output)) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class Counter:
    """What each kind of message gets."""

    def __init__(self, desk: Desk, with_roots: bool) -> None:
        self._desk = desk
        self._engine = desk.engine
        self._with_roots = with_roots
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._under_way = 0

    def server(self) -> Server[Any]:
        server: Server[Any] = Server(
            "corral",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read_resource,
        )
        if self._with_roots:
            for event in ("notifications/initialized", "notifications/roots/list_changed"):
                server.add_notification_handler(event, types.NotificationParams, self.take_roots)
        return server

    # ---- tools ----

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(tool) for tool in self._engine.tools()])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        request = {"tool": params.name, "args": dict(params.arguments or {}), "client": client_of(context)}
        if self._under_way >= AT_ONCE + WAITING:
            problem = failed(Failure("too many calls at once", "resource_limit", "wait for some answers"))
            self._desk.record(request, problem)
            return answered(problem)
        self._under_way += 1
        try:
            return answered(await self._called(context, request))
        finally:
            self._under_way -= 1

    async def _called(self, context: Context, request: dict[str, Any]) -> dict[str, Any]:
        """In a thread. Given up by the client, it is told to end and not waited for."""
        cancel, heartbeat = Cancel(), Heartbeat(context)
        call = partial(self._desk.call, request, cancel, heartbeat.note)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(heartbeat.beat)
                response = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
                group.cancel_scope.cancel()
        except BaseException:
            cancel.set()
            raise
        return response

    # ---- what did not fit into an answer ----

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found = await anyio.to_thread.run_sync(self._engine.spills.paths)
        names = [path.rpartition("/")[2] for path in found]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=SPILL + name, name=name, mime_type="text/plain", description="output of run_shell"
                )
                for name in names
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        content = await anyio.to_thread.run_sync(self._spill, uri.removeprefix(SPILL))
        if not uri.startswith(SPILL) or content is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"no such resource: {uri}")
        text = content.decode("utf-8", "replace")
        block = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[block])

    def _spill(self, name: str) -> bytes | None:
        for path in self._engine.spills.paths():
            if path.rpartition("/")[2] == name:
                try:
                    return self._engine.spills.read(path)
                except Failure:
                    return None
        return None

    # ---- roots ----

    async def take_roots(self, context: Context, params: types.NotificationParams | None) -> None:
        """Further roots, because the person who typed ``--roots`` trusts the client to name them."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            try:
                roots = (await context.session.list_roots()).roots
            except MCPError:
                return  # it has none
        for root in roots:
            address = urlsplit(str(root.uri))
            if address.scheme == "file" and address.netloc in ("", "localhost"):
                await anyio.to_thread.run_sync(self._add_root, unquote(address.path))

    def _add_root(self, path: str) -> None:
        environment = self._engine.environment
        if path.rstrip("/") == environment.root:
            return
        try:
            environment.add_root(path)
        except (CorralError, OSError) as error:
            print(f"corral: root {path!r} is not added: {error}", file=sys.stderr)


class Heartbeat:
    """Progress while a call runs: clients that listen to it do not give up on a long one."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._message = ""

    def note(self, done: float, total: float | None, message: str) -> None:
        """What the tool says of itself, from its own thread."""
        share = f"{done:g} of {total:g}" if total else ""
        self._message = " ".join(part for part in (message, share) if part)

    async def beat(self) -> None:
        started = anyio.current_time()
        while True:
            await anyio.sleep(HEARTBEAT_SECONDS)
            elapsed = anyio.current_time() - started
            await self._session.report_progress(elapsed, None, self._message or f"{elapsed:.0f} s")


def client_of(context: Context) -> str | None:
    """Who asks, as a name that the engine takes."""
    params = context.session.client_params
    if params is None or not params.client_info.name:
        return None
    name = params.client_info.name.lower()
    for beginning, client in CLIENTS:
        if name == beginning or name.startswith(f"{beginning}-"):
            return client
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in name)
    return kept[:CLIENT_CHARACTERS]
