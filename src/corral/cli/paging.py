"""What a person sees of a patch: colours, a pager, nothing in it that the terminal would obey; and how far it is."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from corral.denials.denial import printable

# How a line of a patch begins, and its colour.
COLOURS = (
    ("diff --git", "\x1b[1m"),
    ("+++", "\x1b[1m"),
    ("---", "\x1b[1m"),
    ("@@", "\x1b[36m"),
    ("+", "\x1b[32m"),
    ("-", "\x1b[31m"),
    ("#", "\x1b[33m"),
)
RESET = "\x1b[0m"
SOON = 0.5
STEP = 0.1


def shown(patch: bytes, *, colour: bool) -> str:
    """Tabs stay; every other control character is escaped, whatever the file had in it."""
    lines = []
    for raw in patch.decode("utf-8", "surrogateescape").split("\n"):
        line = "\t".join(printable(part) for part in raw.split("\t"))
        start = next((code for begin, code in COLOURS if line.startswith(begin)), "") if colour else ""
        lines.append(f"{start}{line}{RESET}" if start else line)
    return "\n".join(lines)


class Pager:
    """On a terminal the user's pager gets escaped text with our colours; elsewhere the patch goes out as it is."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        self._colour = self._is_terminal and not os.environ.get("NO_COLOR")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._process = _started()
        return self

    def write(self, patch: bytes) -> None:
        if not self._is_terminal:
            sys.stdout.buffer.write(patch)
            return
        text = shown(patch, colour=self._colour).encode("utf-8", "backslashreplace")
        if self._process is None or self._process.stdin is None:
            sys.stdout.buffer.write(text)
        else:
            self._process.stdin.write(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._process is not None:
            try:
                if self._process.stdin is not None:
                    self._process.stdin.close()
            except BrokenPipeError:
                kind = kind or BrokenPipeError
            self._process.wait()
        else:
            sys.stdout.flush()
        return self._process is not None and kind is BrokenPipeError  # the reader has enough


def _started() -> subprocess.Popen[bytes] | None:
    words = shlex.split(os.environ.get("PAGER") or "less -FRX")
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return None
    environment = {"LESS": "FRX", **os.environ}
    return subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)


class Meter:
    """A line on the terminal that says how far a long one is; nothing where nobody looks, or when it is short."""

    def __init__(self, verb: str, *, quiet: bool = False) -> None:
        self._verb = verb
        self._quiet = quiet or not sys.stderr.isatty()
        self._next = time.monotonic() + SOON
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        if self._quiet or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + STEP
        self._shown = True
        print(f"\r{self._verb} {done} of {total}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
