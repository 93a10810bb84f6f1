"""Engine: requests in, responses out. It may be called from many threads, and it never raises for bad input."""

from __future__ import annotations

import os
from _thread import allocate_lock

from corral.digest import digest
from corral.state import made_state_directory
from corral.tools import registry
from corral.tools.call import Call, Cancel
from corral.tools.envelope import parse, request_id_of, understand
from corral.tools.failures import Failure, invalid, told
from corral.tools.text import tidy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self, TypeVar

    from corral.environment.files import FileHalf
    from corral.environment.local import LocalEnvironment
    from corral.policy import Policy
    from corral.risk.approval import Approver
    from corral.tools.call import Progress
    from corral.tools.envelope import Request, Response
    from corral.tools.history import History
    from corral.tools.reply import Reply
    from corral.tools.spills import Spills
    from corral.tools.tool import Tool

    T = TypeVar("T")

CLIENTS_AT_ONCE = 16
WORKSPACE_CHARACTERS = 16


class Engine:
    """Tools over one environment. ``policy`` None: the environment's own. ``tools``: the names of those that are
    offered; None: all. ``client``: who asks, unless the request says so. ``approver``: asked where the policy's
    approval says so; None: nobody is there. Close it, or use it with ``with``; the environment stays the caller's."""

    def __init__(
        self,
        environment: LocalEnvironment,
        policy: Policy | None = None,
        *,
        tools: Iterable[str] | None = None,
        client: str | None = None,
        approver: Approver | None = None,
    ) -> None:
        self.environment = environment
        self.policy = policy if policy is not None else environment.policy
        self.client = os.environ.get("CORRAL_CLIENT", "") if client is None else client
        self.offered = _offered(tools)
        self.approver = approver
        self.state = made_state_directory()
        self.changing = allocate_lock()  # held by whoever changes files, from reading one to writing it
        self._lock = allocate_lock()
        self._shared: dict[str, Any] = {}
        self._halves: dict[str, FileHalf] = {}
        self._base: FileHalf | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Harmless twice. A call after it opens anew what it needs."""
        with self._lock:
            shared, self._shared = self._shared, {}
            while self._halves:
                _let_go(self._halves.popitem()[1])
        for one in shared.values():
            if hasattr(one, "close"):
                one.close()

    # ---- what there is ----

    def tools(self) -> list[Tool]:
        """All that are offered, in order."""
        return registry.load_all(self.offered)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Something that is made once for this engine."""
        with self._lock:
            found: T | None = self._shared.get(name)
            if found is None:
                found = self._shared[name] = make()
            return found

    @property
    def history(self) -> History:
        found: History | None = self._shared.get("history")
        if found is not None:
            return found
        from corral.tools.history import History

        return self.shared("history", lambda: History(self._place("history"), self.workspace))

    @property
    def spills(self) -> Spills:
        from corral.tools.spills import Spills

        return self.shared("spills", lambda: Spills(self._place("spills")))

    @property
    def workspace(self) -> str:
        return self.environment.working_dir

    def _place(self, name: str) -> str | None:
        """A directory of this workspace's own in the state directory; made by whoever puts something there."""
        if self.state is None:
            return None
        key = digest(os.fsencode(self.workspace))[:WORKSPACE_CHARACTERS]
        return os.path.join(self.state, name, key)

    def files(self, client: str) -> FileHalf:
        """The environment's files, with the memory of what this client has read."""
        base = self.environment._file_half()
        with self._lock:
            if base is not self._base:  # a root was added
                self._base = base
                while self._halves:
                    _let_go(self._halves.popitem()[1])
            found = self._halves.get(client)
            if found is None:
                from corral.files.stamps import Stamps

                while len(self._halves) >= CLIENTS_AT_ONCE:
                    _let_go(self._halves.pop(next(iter(self._halves))))
                found = base.remembering(Stamps.kept_for(base.working_dir, client))
                self._halves[client] = found
            return found

    # ---- a call ----

    def call(
        self,
        request: Mapping[str, Any] | str | bytes,
        *,
        cancel: Cancel | None = None,
        progress: Progress | None = None,
    ) -> Response:
        """One request, decoded or not; one response, as the envelope has it."""
        request_id = ""
        try:
            given = parse(request) if isinstance(request, str | bytes | bytearray | memoryview) else request
            request_id = request_id_of(given)
            response = succeeded(self._carry_out(understand(given), cancel or Cancel(), progress))
        except Exception as error:  # noqa: BLE001 - whatever happens, there is one response
            response = failed(told(error))
        if request_id:
            response["request_id"] = request_id
        return response

    def _carry_out(self, request: Request, cancel: Cancel, progress: Progress | None) -> Reply:
        tool = self._tool(request.tool)
        args = tool.arguments.decode(request.args)
        client = self.client if request.client is None else request.client
        call = Call(self, tool.name, client, request.request_id, self.files(client), cancel, progress)
        call.check_canceled()
        if tool.changes:
            with self.changing, self.history.locked():
                reply = tool.run(call, args)
        else:
            reply = tool.run(call, args)
        if not reply.as_is:
            reply.result = tidy(reply.result)
        if request.compress and tool.name != "run_shell":
            from corral.tools.compressing import compress

            compress(reply)
        return reply

    def _tool(self, name: str) -> Tool:
        if name not in self.offered:
            raise invalid(f"unknown tool: {name}", _nearest(name, self.offered))
        return registry.load(name)


def _let_go(half: FileHalf) -> None:
    if half.stamps is not None:
        half.stamps.close()


def _offered(names: Iterable[str] | None) -> tuple[str, ...]:
    if names is None:
        return registry.NAMES
    wanted = tuple(names)
    for name in wanted:
        if name not in registry.NAMES:
            from corral.errors import PolicyError
            from corral.policy import nearest

            raise PolicyError(f"unknown tool {name!r}{nearest(name, registry.NAMES)}")
    return tuple(name for name in registry.NAMES if name in wanted)


def _nearest(name: str, names: Iterable[str]) -> str:
    from corral.policy import nearest

    return nearest(name, names).strip(" ()") or "list_tools names them"


def succeeded(reply: Reply) -> Response:
    response: Response = {"ok": True}
    if reply.result:
        response["result"] = reply.result
    if reply.content:
        response["content"] = list(reply.content)
    if reply.meta:
        response["meta"] = reply.meta
    return _judged(response, reply)


def failed(failure: Failure) -> Response:
    response: Response = {"ok": False}
    if failure.result:
        response["result"] = failure.result
    if failure.meta:
        response["meta"] = failure.meta
    response["error"] = failure.message
    if failure.suggestion:
        response["suggestion"] = failure.suggestion
    _judged(response, failure)
    response["error_code"] = failure.code
    return response


def _judged(response: Response, answer: Reply | Failure) -> Response:
    if answer.classification:
        response["classification"] = answer.classification
    if answer.risk:
        response["risk"] = answer.risk
    return response
