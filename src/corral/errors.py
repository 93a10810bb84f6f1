"""One family of typed errors. Each is also the matching built-in, so ordinary ``except`` clauses work."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.environment.base import CommandResult


class CorralError(Exception):
    """Anything Corral refuses or fails at. ``path``, ``rule`` and ``grant`` are set where they are known:
    what it was about, which rule decided, and the exact grant that would have allowed it."""

    def __init__(
        self, message: str, *, path: str | None = None, rule: str | None = None, grant: str | None = None
    ):
        super().__init__(message)
        self.path = path
        self.rule = rule
        self.grant = grant


class PolicyError(CorralError, ValueError):
    """The policy, the command line or the config is wrong. Nothing ran."""


class ConfigError(PolicyError):
    """A config file is wrong; the message begins with its name and line."""


class UnknownBackend(PolicyError):
    """No jail is called that. ``known``: those there are."""

    def __init__(self, name: str, known: tuple[str, ...]):
        super().__init__(f'unknown jail backend: "{name}"; there is {", ".join(known)}', rule="backend")
        self.known = known


class NotEnforceable(CorralError, RuntimeError):
    """This host cannot hold what the policy demands. Nothing ran."""


class LandlockUnavailable(NotEnforceable):
    """Landlock is too old here, off, or not there. ``found`` is its ABI (0: none), ``needed`` the one asked for."""

    def __init__(self, found: int, needed: int):
        what = f"this host has Landlock ABI {found}" if found else "this host has no Landlock"
        kernel = {1: "5.13", 2: "5.19", 3: "6.2", 4: "6.7", 5: "6.10", 6: "6.12"}.get(
            needed, "newer than 6.12"
        )
        super().__init__(
            f"{what}; ABI {needed} is needed (Linux kernel {kernel}, with landlock in its lsm= list)"
        )
        self.found = found
        self.needed = needed


class LaunchRefused(NotEnforceable):
    """A step of the plan failed. The launcher stopped there; the command was not started."""

    def __init__(self, message: str, *, step: int, errno: int, path: str | None = None):
        super().__init__(message, path=path)
        self.step = step
        self.errno = errno


class HookError(CorralError, TypeError):
    """A hook of the host's gave back something else than it must. Nothing ran, and nothing was written."""


class Refused(CorralError, PermissionError):
    """A rule of the policy says no."""


class PathEscape(Refused):
    """A path leads outside its root."""


class PathNotAllowed(Refused):
    """A path lies inside its root, and no rule allows it."""


class CommandNotFound(CorralError, FileNotFoundError):
    """The program does not exist as seen from inside the jail."""


class CommandNotExecutable(CorralError, PermissionError):
    """The program exists and cannot be run."""


class CommandFailed(CorralError, RuntimeError):
    """``check=True`` and the command ended with something other than 0."""

    def __init__(self, message: str, *, result: CommandResult):
        super().__init__(message)
        self.result = result


class CommandTimeout(CommandFailed, TimeoutError):
    """``check=True`` and the time was up."""


class InputClosed(CorralError, BrokenPipeError):
    """The command does not read its input any more, or it was closed."""


class StillRunning(CorralError, TimeoutError):
    """The time to wait for a command was up. It runs on."""


class JobExists(PolicyError):
    """A background job of that name is running."""


class BadPath(PathEscape, ValueError):
    """A path that names nothing: empty, or with a NUL byte in it."""


class SensitivePath(Refused):
    """A path goes through a name that holds secrets. No grant lifts that."""


class StaleFile(Refused):
    """A file is not any more what was read of it."""


class ChangeConflict(Refused):
    """What a jail changed was changed outside as well. Nothing was applied."""


class FileTooLarge(CorralError, OSError):
    """A file is larger than what was asked for."""


class LinkLoop(CorralError, OSError):
    """Symbolic links that lead to each other, or too many in a row."""


class NotAFile(CorralError, OSError):
    """A FIFO, a socket or a device stands where a file is wanted."""


class NotAFileButDirectory(NotAFile, IsADirectoryError):
    """A directory stands where a file is wanted."""
