"""Standard input and output as the SDK's transport wants them, with two things it does not have: a bound for the
length of a message, and an answer to one that cannot be read."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from functools import partial

import anyio
import anyio.to_thread
import mcp_types as types

from corral.files.atomic import write_all
from corral.serve.lines import TooLong, lines, readable
from corral.tools.limits import MB, REQUEST_BYTES

# The arguments of a call may have the size of a request; around them stands a little more.
MESSAGE_BYTES = REQUEST_BYTES + MB
EDGE = 4096


class Output:
    """Where messages go, a whole line at a time. If nobody reads them any more, the input ends."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        async with self._lock:
            with contextlib.suppress(OSError):
                await anyio.to_thread.run_sync(write_all, self.fd, text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""


class Input:
    """Messages as they come. What is no message is answered here, with its id if that can be seen."""

    def __init__(self, fd: int, output: Output) -> None:
        self._lines = lines(fd, MESSAGE_BYTES, lambda: readable(fd, output.fd))
        self._output = output

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            # Abandoned at the end: the thread waits for input that nobody wants any more.
            line = await anyio.to_thread.run_sync(partial(next, self._lines, None), abandon_on_cancel=True)
            if line is None:
                return
            if isinstance(line, TooLong):
                size = f"{line.size // MB} MB (max {MESSAGE_BYTES // MB} MB)"
                await self._refuse(line, types.INVALID_REQUEST, f"message too large: {size}")
            elif line.strip():
                try:
                    types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    edges = TooLong(len(line), line[:EDGE], line[-EDGE:])
                    await self._refuse(edges, types.PARSE_ERROR, "not a JSON-RPC message")
                else:
                    yield line.decode("utf-8", "replace")

    async def _refuse(self, line: TooLong, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        answer = {"jsonrpc": "2.0", "id": line.member("id"), "error": error}
        await self._output.write(json.dumps(answer) + "\n")


def private_streams() -> tuple[int, int]:
    """Our own copies of standard input and output. In their place stand nothing and stderr: what anything else prints
    is no part of the protocol."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink
