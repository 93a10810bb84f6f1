"""Matching: the lines of many contents that fit a pattern, in bounded time whatever the pattern is.

A fixed text and an expression that no text makes slow are matched here. Any other is matched by `linewise` in a process
of its own, which is ended when time is up or the call is cancelled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from corral.tools import linewise
from corral.tools.expressions import Expression
from corral.tools.linewise import Hits, expression_lines, literal_lines, text_of
from corral.tools.trees import Clock

LOOK_EVERY = 0.05  # seconds, for a call that was cancelled
PIECE = 1 << 20
F_SETPIPE_SZ = 1031


class Matcher:
    """Of one search. Use it with ``with``."""

    def __init__(
        self, pattern: str, clock: Clock, *, literal: bool = False, ignore_case: bool = False
    ) -> None:
        self._clock = clock
        self._expression = Expression(re.escape(pattern) if literal else pattern, ignore_case=ignore_case)
        self._process: _Process | None = None
        self.may_be_in = self._expression.may_be_in

    def many(self, contents: Sequence[bytes]) -> list[Hits]:
        """For each content the lines that match."""
        if self._expression.is_quick or not sys.executable:
            return [self._hits(text_of(content)) for content in contents]
        if self._process is None:
            self._process = _Process(self._expression, self._clock)
        return self._process.many(contents)

    def _hits(self, text: str) -> Hits:
        expression = self._expression
        if expression.is_literal and expression.needle:
            if not expression.ignores_case:
                return literal_lines(expression.needle, text)
            if text.isascii():
                return literal_lines(expression.needle.lower(), text.lower())
        return expression_lines(expression.compiled, text, expression.whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.close()


class _Process:
    def __init__(self, expression: Expression, clock: Clock) -> None:
        import subprocess

        self._clock = clock
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(linewise.__file__), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._writer, self._reader = self._child.stdin.fileno(), self._child.stdout.fileno()
        for fd in (self._writer, self._reader):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):  # the user has too many pipes; it goes on more slowly
                fcntl.fcntl(fd, F_SETPIPE_SZ, PIECE)
        pattern = expression.compiled.pattern.encode("utf-8", "surrogatepass")
        how = b"whole" if expression.whole else b"lines"
        self._waiting = bytearray(b"".join(map(_framed, (pattern, b"%d" % expression.compiled.flags, how))))
        self._answers = bytearray()
        self._taken = 0  # so much of the answers

    def many(self, contents: Sequence[bytes]) -> list[Hits]:
        self._waiting += b"".join(map(_framed, filter(None, contents))) + _framed(b"")
        return [self._answer() if content else [] for content in contents]  # an empty text has no lines

    def _answer(self) -> Hits:
        while (answer := self._next_answer()) is None:
            self._exchange()
        return _hits(answer)

    def _next_answer(self) -> bytes | None:
        start = self._taken + 4
        end = start + int.from_bytes(self._answers[self._taken : start], "big")
        if len(self._answers) < max(start, end):
            del self._answers[: self._taken]
            self._taken = 0
            return None
        self._taken = end
        return bytes(self._answers[start:end])

    def _exchange(self) -> None:
        """Write what fits, read what is there, or wait a moment."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        if self._waiting:
            poll.register(self._writer, select.POLLOUT)
        ready = dict(poll.poll(LOOK_EVERY * 1000))
        self._clock.tick()
        if self._writer in ready:
            written = os.write(self._writer, memoryview(self._waiting)[:PIECE])
            del self._waiting[:written]
        if self._reader in ready:
            piece = os.read(self._reader, PIECE)
            if not piece:
                raise self._clock.up()  # it ran out of memory, or somebody ended it
            self._answers += piece

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _hits(answer: bytes) -> Hits:
    pairs = (pair.split(":") for pair in answer.decode().split(",") if pair)
    return [(int(line), int(column)) for line, column in pairs]
