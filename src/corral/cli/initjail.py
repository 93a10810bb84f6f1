"""`--initjail`: a program of the user's that furnishes a new home, outside the jail, once."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def initialise(program: str, home: str, jail: str, mode: str) -> None:
    """Its failure is told and the run goes on, as a home that is not furnished is still a home."""
    variables = {**os.environ, "CORRAL_JAIL": jail, "CORRAL_MODE": mode}
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    try:
        os.chdir(home)
        pid = os.posix_spawnp(program, [program], variables, file_actions=actions)
    except OSError as error:
        print(f"corral: --initjail {program}: {error.strerror}", file=sys.stderr)
        return
    finally:
        os.fchdir(here)
        os.close(here)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        print(f"corral: --initjail {program} {how}; the run goes on", file=sys.stderr)
