"""The command line: one module a subcommand, nothing imported before it is needed."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# name: (module, what it does)
COMMANDS = {
    "run": ("run", "run a command in a jail"),
    "sh": ("run", "run one shell line in a jail"),
    "explain": ("explain", "show the plan for a command; runs nothing"),
    "why": ("why", "would it be refused, by which rule, what would allow it"),
    "status": ("doctor", "mode, mechanism, and whether it is proven"),
    "doctor": ("doctor", "try every piece of this host; the exact remedy for each gap"),
    "jails": ("jails", "the jails that are kept: mode, size, age; remove one"),
    "down": ("jails", "say who runs in a jail; set aside what it changed"),
    "changes": ("changes", "what a jail changed: list, diff, apply, discard"),
    "selftest": ("selftest", "try to break out of a jail, case by case"),
    "risk": ("risk", "say how dangerous a command line is; runs nothing"),
    "tool": ("tool", "one tool call in JSON, or a stream of them"),
    "mcp": ("mcp", "the tools over MCP, on standard input and output"),
    "audit": ("audit", "what was called and run, and whether the record is whole"),
    "workspace": ("workspace", "git worktrees for agents: new, list, remove"),
    "trust": ("trust", "accept a project's changed corral.toml"),
    "init": ("init", "write the commented default config"),
    "completion": ("completion", "print the completion script of bash, zsh or fish"),
    "man": ("man", "the manual page"),
}


def usage() -> str:
    lines = ["usage: corral COMMAND …", ""]
    lines += [f"  {name:<12}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join([*lines, "", "corral COMMAND --help says more; corral --version prints the version"])


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: the command's own; 2 the command line or config is wrong; 125 this host or the policy refuses."""
    occupy_standard_streams()
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read our output has enough
        return 141
    except KeyboardInterrupt:
        return 130
    return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 2
    if words[0] == "--version":
        from corral import __version__

        print(f"corral {__version__}")
        return 0
    from corral.errors import CorralError, PathEscape, PolicyError

    try:
        return _subcommand(words[0])(words[0], words[1:])
    except (PolicyError, PathEscape) as error:
        return complain(str(error), 2)
    except CorralError as error:
        return complain(str(error), 125)


def _subcommand(name: str) -> Callable[[str, list[str]], int]:
    if name == "__jail-exec":
        from corral.cli.jail_exec import main as jail_exec

        return jail_exec
    if name not in COMMANDS:
        from corral.errors import PolicyError
        from corral.policy import nearest

        raise PolicyError(f"unknown command {name!r}{nearest(name, COMMANDS)}; try corral --help")
    module = __import__(f"corral.cli.{COMMANDS[name][0]}", fromlist=["main"])
    found: Callable[[str, list[str]], int] = module.main
    return found


def occupy_standard_streams() -> None:
    """0-2 must be something before anything is opened, or it would become the command's."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open("/dev/null", os.O_RDWR)  # takes the lowest number: this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def complain(text: str, code: int) -> int:
    print(f"corral: {harmless(text)}", file=sys.stderr)
    return code


def harmless(text: str) -> str:
    """One line, nothing in it that a terminal would obey."""
    shown = (c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return "".join(shown).encode("utf-8", "backslashreplace").decode()
