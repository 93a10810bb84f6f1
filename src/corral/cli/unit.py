"""`corral run` through the user's systemd manager: the unit has our streams, we stay and pass signals on."""

from __future__ import annotations

import os

from corral.cli import complain
from corral.cli.stay import end_like
from corral.errors import CommandNotExecutable, CommandNotFound
from corral.jail.launch import Launch
from corral.jail.stdio import Attached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from corral.cli.setup import Ready
else:
    import _signal  # without the enums that cost 6 ms

# The command is in another session than our terminal: what that sends, it sends only to us.
PASSED_ON = (
    *(_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM),
    *(_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGWINCH),
)
TIMED_OUT = 124


def run_in_unit(ready: Ready, variables: dict[str, str]) -> int:
    from corral.cli.run import record

    enclosure = ready.enclosure
    plan, words = enclosure.launchable(ready.argv)
    stdio = Attached(has_input=False, captured=False, inherits_input=True)
    launch = Launch(plan, words, variables, stdio, enclosure.policy.limits.wall)
    _pass_signals_on(launch)
    while launch.ended is None:
        launch.read_status()
    launch.close()
    try:
        status, _, _ = launch.verdict(lambda: b"")
    except CommandNotFound as error:
        return complain(str(error), 127)
    except CommandNotExecutable as error:
        return complain(str(error), 126)
    record(ready, 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    return TIMED_OUT if launch.over == "deadline" else end_like(status)


def _pass_signals_on(launch: Launch) -> None:
    def stop(number: int, _: object) -> None:
        launch.signal(number)
        os.kill(os.getpid(), _signal.SIGSTOP)
        launch.signal(_signal.SIGCONT)

    for number in PASSED_ON:
        _signal.signal(number, lambda number, _: launch.signal(number))
    _signal.signal(_signal.SIGTSTP, stop)
