"""A program that speaks to `corral tool` over pipes, in a home and a workspace of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cli.typed import CORRAL, TIMEOUT
from jail.world import World, eventually

Answer = dict[str, Any]


class Caller:
    """``state`` is the state directory: its knowledge of this host, and the record of calls."""

    def __init__(self, world: World, state: Path) -> None:
        self.world = world
        self.workspace = world.workspace
        self.state = state
        self.variables = {
            "PATH": f"{Path(CORRAL).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(world.home),
            "LANG": "C.UTF-8",
            "CORRAL_STATE_DIR": str(state),
        }

    def tool(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        given.update(cwd=self.workspace, env=self.variables, capture_output=True, timeout=TIMEOUT)
        done: subprocess.CompletedProcess[bytes] = subprocess.run([CORRAL, "tool", *words], **given)
        return done

    def asks(self, request: Any, *words: str) -> tuple[Answer, int]:
        """One request over stdin; one line comes back, and nothing else."""
        raw = request if isinstance(request, bytes) else json.dumps(request).encode()
        done = self.tool(*words, stdin=raw)
        assert done.stderr == b"", done.stderr
        assert done.stdout.endswith(b"\n")
        assert done.stdout.count(b"\n") == 1
        answer: Answer = json.loads(done.stdout)
        return answer, done.returncode

    @contextlib.contextmanager
    def stream(self, *words: str) -> Iterator[Talk]:
        with subprocess.Popen(
            [CORRAL, "tool", "--stream", *words],
            cwd=self.workspace,
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                yield Talk(process)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)

    def records(self) -> list[Answer]:
        found = []
        for path in sorted((self.state / "audit").glob("*.jsonl")):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return found


class Talk:
    """One stream: lines out, lines in."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._out, self._in = process.stdin, process.stdout
        self._buffer = b""

    def send(self, *requests: Any) -> None:
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in requests]
        self._out.write(b"".join(line + b"\n" for line in lines))
        self._out.flush()

    def receive(self, timeout: float = TIMEOUT) -> Answer:
        while b"\n" not in self._buffer:
            assert select.select([self._in], [], [], timeout)[0], "no answer"
            piece = os.read(self._in.fileno(), 1 << 16)
            assert piece, f"the stream ended: {self.process.stderr and self.process.stderr.read()!r}"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: Answer = json.loads(line)
        assert isinstance(answer["ok"], bool)
        return answer

    def asks(self, request: Any) -> Answer:
        self.send(request)
        return self.receive()

    def ends_input(self) -> None:
        self._out.close()

    def stops_reading(self) -> None:
        self._in.close()


def call(tool: str, request_id: str | None = None, **args: Any) -> Answer:
    request: Answer = {"tool": tool, "args": args}
    return request if request_id is None else {**request, "request_id": request_id}


def shell(command: str, request_id: str | None = None, **args: Any) -> Answer:
    return call("run_shell", request_id, command=command, **args)


def soon(holds: Callable[[], bool]) -> bool:
    """A server takes a second to start, and on a busy machine several."""
    return eventually(holds, 30)
