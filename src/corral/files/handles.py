"""A file that is open for writing: nothing of it is there before :meth:`close`, all of it afterwards."""

from __future__ import annotations

import warnings

from corral.files.atomic import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codecs import IncrementalEncoder
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from corral.files.atomic import Pending


class WriteHandle:
    """As an open file. Leaving a ``with`` by an exception, or forgetting to close it, leaves the old content."""

    def __init__(
        self,
        name: str,
        mode: str,
        pending: Pending,
        ended: Callable[[bool], None],
        encoder: IncrementalEncoder | None,
    ) -> None:
        self.name = name
        self.mode = mode
        self._encoder = encoder
        self._pending = pending
        self._ended = ended
        self.closed = False

    def write(self, content: str | bytes) -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        if isinstance(content, str) and self._encoder is not None:
            write_all(self._pending.fd, self._encoder.encode(content))
        elif self._encoder is None and not isinstance(content, str):
            write_all(self._pending.fd, content)
        else:
            raise TypeError(f"mode {self.mode!r} takes {'bytes' if self._encoder is None else 'str'}")
        return len(content)

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back; it reaches the disk when the file is closed."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Put it in its place. Harmless twice."""
        self._end(keep=True)

    def discard(self) -> None:
        """Leave all as it was."""
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        if not self.closed:
            self.closed = True
            self._ended(keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(keep=kind is None)

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(f"{self.name} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.discard()
