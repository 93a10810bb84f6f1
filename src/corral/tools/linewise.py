"""Which lines of a text a regular expression matches. Also the program that does so in a process of its own.

Python's `re` cannot be interrupted from another thread and keeps every other thread waiting, so an expression that may
take long is matched by this file, started as a program: it can be ended. It imports only what that needs.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

# Line numbers from 0, columns from 0.
Hits = list[tuple[int, int]]

ORPHAN_CHECK = 0.5  # seconds


def text_of(content: bytes) -> str:
    """Bytes that are no UTF-8 become U+FFFD, and a line ends with one character."""
    text = content.decode("utf-8", "replace")
    return text.replace("\r\n", "\n") if "\r" in text else text


def literal_lines(needle: str, text: str) -> Hits:
    hits: Hits = []
    line = seen = 0
    at = text.find(needle)
    while at >= 0:
        line += text.count("\n", seen, at)
        start = text.rfind("\n", 0, at) + 1
        hits.append((line, at - start))
        seen = at
        end = text.find("\n", at)
        at = text.find(needle, end) if end >= 0 else -1
    return hits


def expression_lines(expression: re.Pattern[str], text: str, whole: bool) -> Hits:
    """``whole``: the text may be searched at once for lines to look at, because what matches in a line alone also
    matches at its place in the text. (The other way round it need not: a match may span lines.)"""
    if not whole:
        found = ((number, expression.search(line)) for number, line in enumerate(text.split("\n")))
        hits = [(number, match.start()) for number, match in found if match is not None]
        if hits and hits[-1][0] == text.count("\n") and (not text or text.endswith("\n")):
            hits.pop()  # there is no line behind the last line end
        return hits
    hits = []
    line = seen = at = 0
    search = expression.search
    while (match := search(text, at)) is not None:
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        if start == len(text):
            break
        line += text.count("\n", seen, start)
        seen = start
        alone = search(text[start:end])
        if alone is not None:
            hits.append((line, alone.start()))
        at = end + 1
        if at > len(text):
            break
    return hits


# ---- as a program ----


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """First the expression, its flags and how to search; then texts. Each is a length of four bytes and so many bytes;
    each text is answered in the same way, by numbers and columns of lines. Nothing asks for the answers so far."""
    expression = re.compile(
        (_frame(requests) or b"").decode("utf-8", "surrogatepass"), int(_frame(requests) or 0)
    )
    whole = _frame(requests) == b"whole"
    while (content := _frame(requests)) is not None:
        if not content:
            answers.flush()
            continue
        hits = expression_lines(expression, text_of(content), whole)
        answer = ",".join([f"{line}:{column}" for line, column in hits]).encode()
        answers.write(len(answer).to_bytes(4, "big") + answer)


def _frame(requests: BinaryIO) -> bytes | None:
    """None: there are no more."""
    size = requests.read(4)
    return requests.read(int.from_bytes(size, "big")) if size else None


def _leave_if_orphaned(parent: int) -> None:
    """`re` looks at signals now and then in the main thread, so this holds in the middle of a match."""
    import signal

    def look(_number: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, ORPHAN_CHECK, ORPHAN_CHECK)


if __name__ == "__main__":
    _leave_if_orphaned(int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
