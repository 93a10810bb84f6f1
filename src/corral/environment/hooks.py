"""Hooks: what the host may do itself. Where there is none, Corral does it; the policy holds either way."""

from __future__ import annotations

from corral.errors import HookError
from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.files.changing import OpenHook, RemoveHook

    # Is given a command that is about to be launched, and returns that same object, changed or not.
    WrapHook = Callable[["Command"], "Command"]


class Command:
    """A command that is about to be launched, everything about it settled: its words, working directory, whole
    environment, time (None: no limit), and whether it gets a terminal. All but the last may be changed."""

    __slots__ = ("argv", "cwd", "env", "terminal", "timeout")

    def __init__(
        self, argv: list[str], cwd: str, env: dict[str, str], timeout: float | None, terminal: bool
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.timeout = timeout
        self.terminal = terminal

    def __repr__(self) -> str:
        return f"<Command {self.argv!r} in {self.cwd}>"


class Hooks(Record):
    """``wrapper`` sees every command, however it is started; ``opener`` every file that is written, ``remover`` every
    one that is removed."""

    wrapper: WrapHook | None = None
    opener: OpenHook | None = None
    remover: RemoveHook | None = None

    def __post_init__(self) -> None:
        for name in self._fields:
            hook = getattr(self, name)
            if hook is not None and not callable(hook):
                raise HookError(f"{name} must be something to call, not {hook!r}", rule=name)

    def wrap(self, command: Command) -> None:
        if self.wrapper is not None and self.wrapper(command) is not command:
            raise HookError(
                "the command wrapper must return the object it was given; nothing was run", rule="wrapper"
            )
