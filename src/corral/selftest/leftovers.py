"""What stays when the command is over. Only the host can tell: it sees who still holds a stream of the run."""

from __future__ import annotations

import os
import signal
import time

from corral.selftest.case import must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

LINGERS = 3.0  # seconds; longer than the host waits


@must_fail("tree", "leave a process behind: forked twice, in a session of its own, deaf to signals")
def daemon(given: Given) -> None:
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    time.sleep(LINGERS)
    os._exit(0)


@must_work("wait for a child")
def waited_for(given: Given) -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
