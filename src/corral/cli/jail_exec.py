"""`corral __jail-exec -- ANCHOR GLOB… -- CMD ARGS…`: the writable-paths jail as an argument prefix, for spawners that
know that protocol. Exit codes of its own: 2 the arguments, 3 the jail, 4 the directory, the program or the exec.

They collide with a command's own; with ``--status-fd N`` before the first ``--`` they are also told there, as
``code N``, and a run that began says ``run`` instead.
"""

from __future__ import annotations

import os
import sys

from corral.cli.run import become_launcher
from corral.cli.setup import Ready
from corral.errors import CorralError, NotEnforceable
from corral.jail.enclosure import Enclosure
from corral.policy import Policy

ARGUMENTS, RESTRICT, EXEC = 2, 3, 4


def main(subcommand: str, words: list[str]) -> int:
    status, rest = _status(words)
    split = _split(rest)
    if isinstance(split, str):
        return _fail(status, ARGUMENTS, f"invalid argv: {split}")
    anchor, globs, command = split
    try:
        # The protocol's own bounds: writes by directory, everything else as it is.
        policy = Policy.workspace_write(writable=tuple(globs), network="open", environment=())
        enclosure = Enclosure(anchor, policy, inherits_streams=True)
    except NotEnforceable as error:
        return _fail(status, RESTRICT, f"landlock_restrict_self: {error}")
    except CorralError as error:
        return _fail(status, EXEC, f"pre-create: {error}")
    if not _is_program(command[0]):
        return _fail(status, EXEC, f"resolve: {command[0]}: not found")
    ready = Ready(enclosure, tuple(command), "")
    if enclosure.choice.backend == "namespaces":
        become_launcher(ready, dict(os.environ), status)
    from corral.cli.stay import run_attached

    return run_attached(ready, dict(os.environ))


def _status(words: list[str]) -> tuple[int | None, list[str]]:
    if words[:1] == ["--status-fd"] and len(words) > 1 and words[1].isdigit():
        return int(words[1]), words[2:]
    return None, words


def _split(words: list[str]) -> tuple[str, list[str], list[str]] | str:
    """Anchor, globs and command, or what is wrong."""
    if words[:1] != ["--"]:
        return "no leading --"
    if "--" not in words[1:]:
        return "no second --"
    second = words.index("--", 1)
    bounds, command = words[1:second], words[second + 1 :]
    if not bounds:
        return "no anchor"
    if len(bounds) < 2:
        return "no glob"
    if not command:
        return "no command"
    return bounds[0], bounds[1:], command


def _is_program(name: str) -> bool:
    places = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    return any(os.access(os.path.join(place, name), os.X_OK) for place in places)


def _fail(status: int | None, code: int, text: str) -> int:
    print(f"corral __jail-exec: {text}", file=sys.stderr)
    if status is not None:
        os.write(status, f"code {code}\n".encode())
    return code
