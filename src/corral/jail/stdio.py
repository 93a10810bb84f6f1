"""Stdio: what a command has on 0-2, and our ends of it. Pipes, or a terminal of its own."""

from __future__ import annotations

import os

from corral.jail.launch import above_standard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


F_SETPIPE_SZ = 1031
WIDE = 1 << 17


class Stdio:
    """``input`` -1: the command reads nothing. ``error`` is ``output`` where the two are one."""

    is_terminal = False

    def __init__(self) -> None:
        self.input = self.output = self.error = -1
        self.actions: list[tuple[Any, ...]] = []
        self._theirs: list[int] = []

    def widen(self) -> None:
        """Room for two of our reads, so that the command need not stand still while one is dealt with. For a flood."""

    def close_theirs(self) -> None:
        """Once the launcher has them, and only then do ours come to an end."""
        while self._theirs:
            os.close(self._theirs.pop())

    def close(self) -> None:
        self.close_theirs()
        for fd in {self.input, self.output, self.error} - {-1}:
            os.close(fd)
        self.input = self.output = self.error = -1


class Pipes(Stdio):
    _is_wide = False

    def __init__(self, *, has_input: bool, merged: bool) -> None:
        super().__init__()
        try:
            self._open(has_input, merged)
        except BaseException:
            self.close()
            raise

    def _open(self, has_input: bool, merged: bool) -> None:
        self.output, out = self.pipe()
        self._theirs.append(out)
        err = out
        self.error = self.output
        if not merged:
            self.error, err = self.pipe()
            self._theirs.append(err)
        if has_input:
            stdin, self.input = self.pipe()
            self._theirs.append(stdin)
            self.actions.append((os.POSIX_SPAWN_DUP2, stdin, 0))
        else:
            self.actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
        self.actions += [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)]

    def widen(self) -> None:
        if self._is_wide:
            return
        import fcntl

        self._is_wide = True
        try:
            fcntl.fcntl(self.output, F_SETPIPE_SZ, WIDE)
        except OSError:
            return  # the user has too many pipes; it goes on more slowly

    @staticmethod
    def pipe() -> tuple[int, int]:
        reader, writer = os.pipe()
        return above_standard(reader), above_standard(writer)


class Attached(Stdio):
    """The caller's own standard error, and output unless it is captured; input if there is some, else nothing."""

    def __init__(self, *, has_input: bool, captured: bool, inherits_input: bool = False) -> None:
        super().__init__()
        try:
            if has_input:
                stdin, self.input = Pipes.pipe()
                self._theirs.append(stdin)
                self.actions.append((os.POSIX_SPAWN_DUP2, stdin, 0))
            elif inherits_input:
                self.actions.append((os.POSIX_SPAWN_DUP2, 0, 0))
            else:
                self.actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
            out = 1
            if captured:
                self.output, out = Pipes.pipe()
                self._theirs.append(out)
            self.actions += [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, 2, 2)]
        except BaseException:
            self.close()
            raise


class Terminal(Stdio):
    """The command's end is opened by name in the child: a session leader without a terminal gets it as its own."""

    is_terminal = True

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        ours, theirs = os.openpty()
        self.input = self.output = self.error = above_standard(ours)
        self._theirs.append(theirs)
        try:
            self.resize(rows, columns)
            name = os.ttyname(theirs)
        except BaseException:
            self.close()
            raise
        self.actions.append((os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0))
        self.actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]

    def resize(self, rows: int, columns: int) -> None:
        """The kernel tells the programs in the foreground by SIGWINCH."""
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.output, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
