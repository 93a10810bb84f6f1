"""ExecutionEnvironment, what every kind of environment offers; what a command comes back with, and how its jail
stood while it ran."""

from __future__ import annotations

from abc import ABC, abstractmethod

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import IO, Literal, Self, overload

    from corral.denials import Denial
    from corral.environment.files import Entry, Level, WriteMode
    from corral.files.access import AnyPath
    from corral.files.atomic import Existing, Links
    from corral.files.content import Content
    from corral.files.handles import WriteHandle
    from corral.jail.ladder import Choice
    from corral.policy import Policy


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


def posture_of(policy: Policy, choice: Choice) -> Posture:
    return Posture(
        mode=policy.mode,
        mechanism=choice.backend,
        network=str(policy.network),
        required=policy.require,
        demanded=policy.demanded,
        covered=choice.covered,
        not_covered=choice.not_covered,
        enforcing=choice.enforcing,
    )


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


class ExecutionEnvironment(ABC):
    """Files and commands in one place, under one policy: what tools are written against. Paths are relative to
    :attr:`working_dir`, or absolute below a root. Each method does one thing, or raises a typed error that is also the
    matching built-in; what it refused left nothing behind."""

    posture: Posture

    @property
    @abstractmethod
    def working_dir(self) -> str: ...

    @abstractmethod
    def close(self) -> None:
        """End it and all that runs in it. Harmless twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- files ----

    @abstractmethod
    def read_file(self, path: AnyPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """As text; line ends stay as they are."""

    @abstractmethod
    def read_bytes(self, path: AnyPath, *, limit: int | None = None) -> bytes:
        """The whole content; FileTooLarge if there is more of it than ``limit`` bytes."""

    if TYPE_CHECKING:

        @overload
        def open(self, path: AnyPath, mode: Literal["r"] = "r", *, encoding: str = "utf-8") -> IO[str]: ...
        @overload
        def open(self, path: AnyPath, mode: Literal["rb"], *, encoding: str = "utf-8") -> IO[bytes]: ...
        @overload
        def open(self, path: AnyPath, mode: WriteMode, *, encoding: str = "utf-8") -> WriteHandle: ...

    @abstractmethod
    def open(
        self, path: AnyPath, mode: str = "r", *, encoding: str = "utf-8"
    ) -> IO[str] | IO[bytes] | WriteHandle:
        """``r`` and ``rb`` read; ``w``, ``wb`` and (create only) ``x``, ``xb`` write when the file is closed."""

    @abstractmethod
    def write_file(
        self,
        path: AnyPath,
        content: Content,
        *,
        existing: Existing = "replace",
        links: Links = "refuse",
        encoding: str = "utf-8",
    ) -> int:
        """The number of bytes written, all or none of them: text, bytes, or something to read them from. Missing
        directories are made. ``existing`` "refuse": FileExistsError if something is there. ``links`` "break": a file
        with several names is replaced under this one and stays as it was under the others."""

    @abstractmethod
    def remove_file(self, path: AnyPath) -> None:
        """Anything but a directory. A link is removed itself, never what it leads to."""

    @abstractmethod
    def remove_tree(self, path: AnyPath) -> None:
        """A directory and all below it; nothing of it if one thing in it may not be removed."""

    @abstractmethod
    def rename(self, source: AnyPath, target: AnyPath, *, existing: Existing = "replace") -> None:
        """A file or a directory; a directory replaces nothing."""

    @abstractmethod
    def make_dir(self, path: AnyPath) -> None:
        """With the directories above it. Harmless if it is there."""

    @abstractmethod
    def list_dir(self, path: AnyPath = ".") -> list[Entry]:
        """By name; what is sensitive or hidden is not in it."""

    @abstractmethod
    def walk(self, path: AnyPath = ".") -> Iterator[Level]:
        """As ``os.walk``, top down; files come with what lstat says. No link is followed."""

    @abstractmethod
    def stat(self, path: AnyPath) -> os.stat_result:
        """Of what is there, links followed that stay inside."""

    @abstractmethod
    def glob(self, pattern: str) -> list[str]:
        """Paths that fit, by name, relative to the working directory. ``**`` is any number of directories."""

    # ---- commands ----

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        keep: Literal["tail"] = "tail",
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """Run a command and return when its whole tree is gone.

        A non-zero exit and a time-out are results; ``check=True`` raises instead. ``env`` None means the caller's
        environment without what the policy drops; given, exactly that. ``extra_env`` is added as it is.
        """

    def shell(
        self,
        line: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """One line for bash, never a login shell: no start-up file puts back what was scrubbed."""
        return self.run(
            ["bash", "-c", line],
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            check=check,
        )

    def exec_command(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        output_limit: int | None = None,
        stderr: Literal["apart", "merged"] = "apart",
        check: bool = False,
    ) -> CommandResult:
        """A program and its arguments: the same as :meth:`run`."""
        return self.run(
            [program, *args],
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
            stderr=stderr,
            check=check,
        )
