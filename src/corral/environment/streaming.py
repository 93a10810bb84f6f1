"""Streaming: a command under way whose output is taken as it comes. Nothing here waits; who waits, and how, is the
business of :mod:`process` (a thread), :mod:`jobs` (one thread for all) and :mod:`aprocess` (an event loop). All of them
wait for one descriptor, ``events``."""

from __future__ import annotations

import contextlib
import os
import select
from _thread import allocate_lock

from corral.environment.base import Output
from corral.errors import CorralError, InputClosed, PolicyError
from corral.jail.launch import SIGKILL, Launch
from corral.jail.spawn import CHUNK, Outcome, Tail
from corral.jail.stdio import Pipes, Stdio, Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.environment.base import CommandResult
    from corral.environment.gate import Entry, Gate

SIGSTOP = 19
PIPE = -1  # as in subprocess
ROWS, COLUMNS = 24, 80
END_OF_INPUT = b"\x04"  # what a person types at a terminal
BACKLOG = 1 << 20  # of input that waits to be read; beyond it `write` waits too
# What a pipe or terminal may hold when the command has ended. What others write there afterwards is not its output.
AFTER_END = 1 << 20
IN_A_ROW = 16


class Streaming:
    """``stdin``: bytes are fed and then end; PIPE stays open for `write`; None: nothing to read."""

    def __init__(
        self,
        gate: Gate,
        entry: Entry,
        *,
        stdin: bytes | str | int | None,
        merged: bool,
        pty: bool,
        limit: int,
        spawn: Callable[..., int] | None = None,
        ended: Callable[[Streaming], None] | None = None,
    ) -> None:
        self.argv = entry.plan.argv
        self._gate, self._entry, self._on_end = gate, entry, ended
        self._lock = allocate_lock()  # of the input, and of the supervisor's pid
        self.turn = allocate_lock()  # of the thread that deals with what happens
        self._result: CommandResult | None = None
        self._error: Exception | None = None
        self._waiting = [memoryview(_input_bytes(stdin))] if stdin not in (None, PIPE) else []
        self.backlog = sum(map(len, self._waiting))
        self._input_ends = stdin != PIPE and not pty
        self._after_end = 0
        self._last = -1
        self._full = 0  # pieces in a row that were as large as they can be
        self._stdio: Stdio = (
            Terminal(ROWS, COLUMNS) if pty else Pipes(has_input=stdin is not None, merged=merged)
        )
        try:
            self._launch = Launch(
                entry.plan, entry.words, entry.variables, self._stdio, entry.deadline, spawn
            )
        except BaseException:
            self._stdio.close()
            raise
        self._tails = {
            self._stdio.error: ("stderr", Tail(limit)),
            self._stdio.output: ("stdout", Tail(limit)),
        }
        self._open = set(self._tails)
        self.stdout_tail = self._tails[self._stdio.output][1]
        self.stderr_tail = self._tails[self._stdio.error][1] if len(self._tails) > 1 else Tail(limit)
        self._listen()

    def _listen(self) -> None:
        self.events = select.epoll()
        os.set_blocking(self._launch.status, False)
        self.events.register(self._launch.status, select.EPOLLIN)
        for fd in self._open:
            os.set_blocking(fd, False)
            self.events.register(fd, select.EPOLLIN)
        if self._stdio.input >= 0 and self._stdio.input not in self._open:
            os.set_blocking(self._stdio.input, False)
            self.events.register(self._stdio.input, 0)
        self.feed()

    @property
    def is_running(self) -> bool:
        """Whether the command was still there when it was last heard of."""
        return self._launch.ended is None

    @property
    def has_run(self) -> bool:
        """Whether the command itself was started."""
        return self._launch.running

    @property
    def has_output(self) -> bool:
        """Whether more may come."""
        return bool(self._open)

    @property
    def is_over(self) -> bool:
        """Whether the whole tree is gone and all that it printed was taken."""
        return self._launch.ended is not None and not self._open

    @property
    def is_finished(self) -> bool:
        return self._result is not None or self._error is not None

    # ---- from any thread ----

    def signal(self, number: int) -> None:
        """To the command itself; SIGKILL to all it has started."""
        if number == SIGSTOP:
            raise PolicyError("SIGSTOP cannot be passed on to a command; SIGTSTP can")
        if number == SIGKILL:
            self.ask_to_end()
            return
        with self._lock:
            self._launch.signal(int(number))

    def resize(self, rows: int, columns: int) -> None:
        if not isinstance(self._stdio, Terminal):
            raise PolicyError("only a command that was started with pty=True has a size")
        with self._lock:
            if self._stdio.output >= 0:
                self._stdio.resize(rows, columns)

    def ask_to_end(self) -> None:
        """End it and all it has started; returns at once."""
        with self._lock:
            self._launch.ask_to_end()

    # ---- input, from any thread ----

    @property
    def input_is_gone(self) -> bool:
        return self._stdio.input < 0

    def queue(self, content: bytes | str) -> None:
        view = memoryview(_input_bytes(content))
        with self._lock:
            if self._stdio.input < 0 or self._input_ends:
                raise InputClosed(f"{self.argv[0]}: its input is closed")
            if view:
                self._waiting.append(view)
                self.backlog += len(view)
            self._feed()

    def close_input(self) -> None:
        if self._stdio.is_terminal:
            self.queue(END_OF_INPUT)
            return
        with self._lock:
            self._input_ends = True
            self._feed()

    def feed(self) -> None:
        """As much of the input as fits now."""
        with self._lock:
            self._feed()

    def drop_input(self) -> None:
        with self._lock:
            self._drop_input()

    def copies_to_watch(self) -> tuple[int, ...]:
        """Of the input and of the status line, for a writer to wait for: whoever reads may close the originals."""
        with self._lock:
            if self._stdio.input < 0 or self._launch.status < 0:
                return ()
            return os.dup(self._stdio.input), os.dup(self._launch.status)

    def _feed(self) -> None:
        if self._stdio.input < 0:
            return
        try:
            while self._waiting:
                written = os.write(self._stdio.input, self._waiting[0][:BACKLOG])
                self.backlog -= written
                rest = self._waiting[0][written:]
                if rest:
                    self._waiting[0] = rest
                else:
                    del self._waiting[0]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more
            self._drop_input()
            return
        if self._input_ends and not self._waiting:
            self._drop_input()
        else:
            self._watch_input()

    def _watch_input(self) -> None:
        fd = self._stdio.input
        reading = select.EPOLLIN if fd in self._open else 0
        if reading or not self._stdio.is_terminal:
            self.events.modify(fd, reading | (select.EPOLLOUT if self._waiting else 0))

    def _drop_input(self) -> None:
        self._waiting.clear()
        self.backlog = 0
        self._input_ends = True
        if self._stdio.input >= 0 and not self._stdio.is_terminal:
            self.events.unregister(self._stdio.input)  # a writer that waits may hold a copy of it
            os.close(self._stdio.input)
            self._stdio.input = -1

    # ---- what happens, and the output that comes of it ----

    def hear(self) -> None:
        """Wait for what the launcher says, and nothing else."""
        poll = select.poll()
        poll.register(self._launch.status, select.POLLIN)
        poll.poll()
        self._launch.read_status()

    def happened(self, timeout: float | None = 0) -> list[tuple[int, int]]:
        """What `advance` is to deal with. Once the command has ended nothing is waited for."""
        return self.events.poll(timeout) if self._launch.ended is None else []

    def advance(self, happened: list[tuple[int, int]]) -> Output | None:
        """Deal with what happened, and take one piece of output if there is one. Status and input first, and the
        streams in turn: a flood on one of them holds up nothing."""
        launch = self._launch
        ready: list[int] = []
        for fd, mask in happened:
            if fd == launch.status:
                launch.read_status()
            else:
                if fd == self._stdio.input and mask & ~select.EPOLLIN:
                    self.feed()
                if fd in self._open:
                    ready.append(fd)
        if launch.ended is not None:
            ready = list(self._open)  # all that it printed is there by now
        elif len(ready) > 1 and ready[0] == self._last:
            ready.reverse()
        for fd in ready:
            output = self._take(fd)
            if output is not None:
                self._last = fd
                return output
        return None

    def more(self) -> Output | None:
        """The rest of a flood, without asking first whether there is any; but not for long."""
        return self._take(self._last) if 0 < self._full < IN_A_ROW and self._last in self._open else None

    def _take(self, fd: int) -> Output | None:
        try:
            chunk = os.read(fd, CHUNK)
            self._full = self._full % IN_A_ROW + 1 if len(chunk) == CHUNK else 0
            if self._full:
                self._stdio.widen()
        except BlockingIOError:
            self._full = 0
            if self._launch.ended is not None:
                self._open.discard(fd)  # somebody else has it open; what the command printed is all here
            return None
        except OSError:  # a terminal that nobody has open any more
            chunk = b""
        name, tail = self._tails[fd]
        if self._launch.ended is not None:
            self._after_end += len(chunk)
        if not chunk or self._after_end > AFTER_END:
            self._open.discard(fd)
            if self._launch.ended is None:
                self.events.unregister(fd)
            return None
        tail.add(chunk)
        return Output(name, chunk)

    # ---- the end ----

    def finish(self) -> CommandResult:
        """Once it is over: everything is given back. The same result, or error, every time."""
        if not self.is_finished:
            self._give_back()
            try:
                status, cpu, rss = self._launch.verdict(self.stderr_tail.content)
                outcome = Outcome(status, self._launch.over, self.stdout_tail, self.stderr_tail, cpu, rss)
                self._result = self._gate.result(self._entry, outcome)
            except Exception as error:  # noqa: BLE001 - kept, and raised to everyone who asks
                self._error = error
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def close(self) -> None:
        """End it, and come back when its tree is gone. Harmless twice."""
        self.ask_to_end()
        with self.turn:
            if not self.is_finished:
                self._launch.end()
                while not self.is_over:
                    self.advance(self.happened())
                with contextlib.suppress(CorralError):
                    self.finish()

    def _give_back(self) -> None:
        with self._lock:
            self._open.clear()
            self.events.close()
            self._stdio.close()
            self._launch.close()
        self._gate.release(self._entry)
        if self._on_end is not None:
            self._on_end(self)


def _input_bytes(content: bytes | str | int | None) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise PolicyError(f"input is text or bytes, or PIPE for a command to be written to, not {content!r}")
