"""Call: one request being carried out, and all that a tool may use meanwhile."""

from __future__ import annotations

import contextlib
from _thread import allocate_lock

from corral.tools.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from corral.environment.files import FileHalf
    from corral.environment.local import LocalEnvironment
    from corral.policy import Policy
    from corral.tools.engine import Engine
    from corral.tools.history import History
    from corral.tools.spills import Spills

    Progress = Callable[[float, float | None, str], None]
    T = TypeVar("T")


class Cancel:
    """Somebody's wish that a call ends. It can be set from any thread."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._is_set = False
        self._callbacks: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._lock:
            callbacks, self._is_set = ([] if self._is_set else self._callbacks), True
        for callback in callbacks:
            callback()

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Meanwhile, call this when it is set (at once if it is)."""
        with self._lock:
            late = self._is_set
            self._callbacks.append(callback)
        try:
            if late:
                callback()
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


class Call:
    """``files``: the environment's files, with the memory of what this client has read. ``client`` may be empty."""

    __slots__ = ("cancel", "client", "engine", "files", "progress", "request_id", "tool")

    def __init__(
        self,
        engine: Engine,
        tool: str,
        client: str,
        request_id: str,
        files: FileHalf,
        cancel: Cancel,
        progress: Progress | None,
    ) -> None:
        self.engine = engine
        self.tool = tool
        self.client = client
        self.request_id = request_id
        self.files = files
        self.cancel = cancel
        self.progress = progress

    @property
    def environment(self) -> LocalEnvironment:
        return self.engine.environment

    @property
    def policy(self) -> Policy:
        return self.engine.policy

    @property
    def workspace(self) -> str:
        """The absolute path that relative ones begin at."""
        return self.files.working_dir

    @property
    def state(self) -> str:
        """The state directory; a Failure where there is none."""
        directory = self.engine.state
        if directory is None:
            raise Failure(
                "there is no state directory that can be written",
                "permission_denied",
                "set CORRAL_STATE_DIR to a directory of your own",
            )
        return directory

    @property
    def history(self) -> History:
        return self.engine.history

    @property
    def spills(self) -> Spills:
        return self.engine.spills

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Something of a tool's own that lives as long as the engine (``close`` is called on it then)."""
        return self.engine.shared(name, make)

    def check_canceled(self) -> None:
        """To be called now and then by whatever takes long."""
        if self.cancel.is_set():
            raise Failure("canceled", "canceled")

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Progress, for whoever listens."""
        if self.progress is not None:
            self.progress(done, total, message)
