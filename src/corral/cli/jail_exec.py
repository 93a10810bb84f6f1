"""`corral __jail-exec -- ANCHOR GLOB… -- CMD ARGS…`: the writable-paths jail as an argument prefix, for spawners that
know that protocol. Exit codes of its own: 2 the arguments, 3 the jail, 4 the directory, the program or the exec.

They collide with a command's own; with ``--status-fd N`` before the first ``--`` they are also told there, as
``code N``, and a run that began says ``run`` instead.
"""

from __future__ import annotations

import _socket
import os
import sys

from corral.cli.run import STATUS_SLOT
from corral.cli.stay import LIFE_SLOT, end_like, launch_attached
from corral.errors import CorralError, NotEnforceable
from corral.jail.enclosure import Enclosure
from corral.policy import Policy

ARGUMENTS, RESTRICT, EXEC = 2, 3, 4
FRONT_STEPS = 4  # what stands before the plan: where to report, and whom to watch


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
        plan, encoded = enclosure.launchable(command, os.getcwd())
    except NotEnforceable as error:
        return _fail(status, RESTRICT, f"landlock_restrict_self: {error}")
    except (CorralError, OSError) as error:
        return _fail(status, EXEC, f"pre-create: {error}")
    told = _carried_out(plan.passed, encoded)
    if "fail" in told:
        step, errno = (int(word) for word in told["fail"])
        at_exec = step >= len(plan.steps) + FRONT_STEPS
        text = os.strerror(errno)
        return (
            _fail(status, EXEC, f"exec: {command[0]}: {text}") if at_exec else _fail(status, RESTRICT, text)
        )
    if status is not None and "run" in told:
        os.write(status, b"run\n")
    return end_like(int(told["end"][0]) if "end" in told else 125 << 8)


def _carried_out(passed: tuple[int, ...], encoded: bytes) -> dict[str, list[str]]:
    """What the launcher told, by the first word of each line."""
    ours, theirs = _socket.socketpair()
    life = os.pidfd_open(os.getpid())
    front = f"fd\0{STATUS_SLOT}\0{theirs.fileno()}\0status\0{STATUS_SLOT}\0fd\0{LIFE_SLOT}\0{life}\0life\0{LIFE_SLOT}\0"
    launch_attached(front.encode() + encoded, (theirs.fileno(), life, *passed), dict(os.environ))
    theirs.close()
    lines = b""
    while got := ours.recv(4096):
        lines += got
    ours.close()
    return {words[0]: words[1:] for line in lines.decode().splitlines() if (words := line.split())}


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


def _fail(status: int | None, code: int, text: str) -> int:
    print(f"corral __jail-exec: {text}", file=sys.stderr)
    if status is not None:
        os.write(status, f"code {code}\n".encode())
    return code
