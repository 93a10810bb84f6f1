"""A real terminal: a pseudo-terminal of our own, or a pane of tmux, with a program in its foreground."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from jail.world import eventually
from leaks import marked_children, our_processes

PATIENCE = 15.0


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """All that was started in the block is dead at its end. What a closed terminal orphans is the host's to bury, and
    in a container it may never be."""

    def living() -> list[str]:
        found = our_processes(mark)
        return [
            f"{one.pid} {one.name}" for one in found if "zombie" not in one.name and one.pid not in before
        ]

    with marked_children() as mark:
        before = {one.pid for one in our_processes(mark)}
        yield
        assert eventually(lambda: not living(), 3), f"still there: {living()}"


class Terminal:
    """What is typed and what is seen. Echo is on, so what is waited for must not look like what was typed."""

    def __init__(self, argv: Sequence[str], cwd: Path, variables: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(24, 80)
        self.seen = ""
        self._unread = ""
        try:
            self.process = subprocess.Popen(
                ["setsid", "--ctty", *argv],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=cwd,
                env=variables,
            )
        finally:
            os.close(theirs)

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def shows(self, text: str) -> str:
        """Wait for it; all that came since the last time, up to its end."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._unread:
            assert self._read(deadline), f"{text!r} did not come, only {self._unread!r} after {self.seen!r}"
        found, text, self._unread = self._unread.partition(text)
        self.seen += found + text
        return found + text

    def _read(self, deadline: float) -> bool:
        ready = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
            more = os.read(self._ours, 65536) if ready else b""
            self._unread += more.decode(errors="replace")
            return bool(more)
        return False

    def rest(self) -> str:
        """All that comes until the program is gone, which it must be soon."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        rest, self._unread = self._unread, ""
        return rest

    def ends(self) -> int:
        """The exit code; negative for a signal."""
        self.rest()
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self._ours)  # hangs up on whoever is left in the session
        self.process.wait(PATIENCE)


@contextlib.contextmanager
def terminal(argv: Sequence[str], cwd: Path, variables: dict[str, str]) -> Iterator[Terminal]:
    made = Terminal(argv, cwd, variables)
    try:
        yield made
    finally:
        made.close()


class Pane:
    """The same in tmux: keys by name, and the screen as it looks."""

    def __init__(self, socket: Path, cwd: Path, variables: dict[str, str], argv: Sequence[str]) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self._variables = variables
        self._call("new-session", "-d", "-x", "80", "-y", "24", "-c", str(cwd), *argv)

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._variables, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def types(self, text: str) -> None:
        self._call("send-keys", "-l", text)

    def presses(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def resize(self, rows: int, columns: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        return self._call("capture-pane", "-p")

    def shows(self, text: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} did not come, only:\n{screen}"
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=PATIENCE)


@contextlib.contextmanager
def pane(socket: Path, cwd: Path, variables: dict[str, str], argv: Sequence[str]) -> Iterator[Pane]:
    made = Pane(socket, cwd, variables, argv)
    try:
        yield made
    finally:
        made.close()
