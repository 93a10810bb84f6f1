"""What a command comes back with, and how its jail stood while it ran."""

from __future__ import annotations

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials import Denial


class Posture(Record):
    """How a run is held: an object for programs, never module state."""

    mode: str
    mechanism: str
    network: str
    required: bool
    demanded: tuple[str, ...]
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]
    enforcing: bool = False

    @property
    def active(self) -> bool:
        return self.mechanism != "none"

    @property
    def present_but_not_enforcing(self) -> bool:
        return self.active and not self.enforcing

    @property
    def degraded(self) -> bool:
        """A jail was asked for, and what holds is less than the mode asks."""
        return self.mode != "off" and not self.enforcing

    @property
    def status_summary(self) -> str:
        how = "required" if self.required else "best-effort"
        if self.mode == "off":
            return "off"
        return f"{self.mode} ({self.mechanism}, {how})" if self.active else "OFF (unavailable)"


class CommandResult(Record):
    """Output is bytes of the stream's tail; ``stdout`` and ``stderr`` decode it."""

    argv: tuple[str, ...]
    exit_code: int
    signal: int | None
    timed_out: bool
    over: str
    duration: float
    cpu_seconds: float
    max_rss_kb: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    stdout_bytes_dropped: int
    stderr_bytes_dropped: int
    removed: tuple[str, ...]
    posture: Posture
    denials: tuple[Denial, ...] = ()

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def stdout_truncated(self) -> bool:
        return self.stdout_bytes_dropped > 0

    @property
    def stderr_truncated(self) -> bool:
        return self.stderr_bytes_dropped > 0

    @property
    def not_covered(self) -> tuple[str, ...]:
        return self.posture.not_covered

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


class Output(tuple[str, bytes]):
    """A piece of output: which stream, and the bytes as they came."""

    __slots__ = ()

    def __new__(cls, stream: str, data: bytes) -> Output:
        return tuple.__new__(cls, (stream, data))

    @property
    def stream(self) -> str:
        return self[0]

    @property
    def data(self) -> bytes:
        return self[1]

    @property
    def text(self) -> str:
        """Decoded; a character that was cut in two by the end of the piece is shown as unknown."""
        return self[1].decode("utf-8", "replace")
