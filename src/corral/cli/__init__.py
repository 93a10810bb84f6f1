"""The command line: one module a subcommand, nothing imported before it is needed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# name: (module, what it does)
COMMANDS = {
    "run": ("run", "run a command in a jail"),
    "sh": ("run", "run one shell line in a jail"),
    "explain": ("explain", "show the plan for a command; runs nothing"),
    "why": ("why", "would it be refused, by which rule, what would allow it"),
    "status": ("doctor", "mode, mechanism, and whether it is proven"),
    "doctor": ("doctor", "try every piece of this host; the exact remedy for each gap"),
    "risk": ("risk", "say how dangerous a command line is; runs nothing"),
    "trust": ("trust", "accept a project's changed corral.toml"),
    "init": ("init", "write the commented default config"),
}


def usage() -> str:
    lines = ["usage: corral COMMAND …", ""]
    lines += [f"  {name:<9}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join([*lines, "", "corral COMMAND --help says more; corral --version prints the version"])


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: the command's own; 2 the command line or config is wrong; 125 this host or the policy refuses."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 2
    if words[0] == "--version":
        from corral import __version__

        print(f"corral {__version__}")
        return 0
    if words[0] == "__jail-exec":
        from corral.cli.jail_exec import main as jail_exec

        return jail_exec(words[0], words[1:])
    if words[0] not in COMMANDS:
        from corral.policy import nearest

        return complain(f"unknown command {words[0]!r}{nearest(words[0], COMMANDS)}; try corral --help", 2)
    module = COMMANDS[words[0]][0]
    subcommand = __import__(f"corral.cli.{module}", fromlist=["main"])
    from corral.errors import CorralError, PolicyError

    try:
        code: int = subcommand.main(words[0], words[1:])
    except PolicyError as error:
        return complain(str(error), 2)
    except CorralError as error:
        return complain(str(error), 125)
    except BrokenPipeError:
        return 141  # whoever read our output has enough
    except KeyboardInterrupt:
        return 130
    return code


def complain(text: str, code: int) -> int:
    """One line, nothing in it that a terminal would obey."""
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text.replace("\n", " "))
    print(f"corral: {line}", file=sys.stderr)
    return code
