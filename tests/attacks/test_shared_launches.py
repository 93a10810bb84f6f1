"""Commands of one jail against each other's launch: a supervisor in it holds what no command may have."""

from __future__ import annotations

import os

import pytest

from corral import LocalEnvironment, Policy
from jail.world import World, eventually, python

pytestmark = pytest.mark.jail

MODE = "workspace-write" if os.getuid() == 0 else "casual"
LAUNCHES = 120

# Whose memory can be opened while it is still the launcher, and that of a process which is one's own. (For reading: to
# write into what lies in /proc takes a right that some modes do not give, and the kernel asks for the same otherwise.)
SPY = """
import os, sys
found, last = set(), os.getpid()
child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "100")
while True:
    try:
        os.close(os.open(f"/proc/{child}/mem", os.O_RDONLY))
        break
    except OSError:
        pass
print("own", flush=True)
while not os.path.exists("/tmp/end"):
    for pid in range(max(2, last - 1), last + 8):
        if pid in (child, os.getpid()):
            continue
        try:
            memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except FileNotFoundError:
            continue
        except OSError:
            last = max(last, pid)
            continue
        last = max(last, pid)
        try:
            if "corral-launch" in os.readlink(f"/proc/{pid}/exe"):
                found.add(pid)
        except OSError:
            pass
        os.close(memory)
os.kill(child, 9)
open("/tmp/found", "w").write(repr(sorted(found)))
"""

STOPPER = """
import os, signal, time
if os.fork():
    os._exit(0)
os.setsid()
end = time.monotonic() + 20
while time.monotonic() < end and not os.path.exists("end"):
    for name in os.listdir("/proc"):
        try:
            command = open(f"/proc/{name}/cmdline", "rb").read()
            if name.isdigit() and int(name) not in (1, os.getpid()) and b"--plan-fd" in command:
                os.kill(int(name), signal.SIGSTOP)
        except OSError:
            pass
open("gone", "w")
"""


def test_nobody_writes_into_the_memory_of_a_launch(world: World) -> None:
    """It shares that memory with its supervisor, and gives its capabilities up before the supervisor does."""
    policy = Policy(mode=MODE, network="off")  # type: ignore[arg-type]
    with LocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
        with environment.start(python(SPY)) as spy:
            assert next(iter(spy)).text.strip() == "own"
            for _ in range(LAUNCHES):
                environment.run(["true"])
            environment.shell("touch /tmp/end")
            spy.wait()
        assert environment.shell("cat /tmp/found").stdout == "[]"


@pytest.mark.parametrize("attempt", range(4))
def test_a_launch_that_is_stopped_from_inside_keeps_no_caller_waiting(world: World, attempt: int) -> None:
    """The supervisor is stopped, or what it is about to start: the one ends at once, the other when the time is up."""
    policy = Policy(mode=MODE)  # type: ignore[arg-type]
    with LocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
        assert environment.run(python(STOPPER), stdin=b"").exit_code in (
            0,
            137,
        )  # it may stop its own supervisor
        done = environment.run(["sleep", "30"], timeout=3)
        assert done.duration < 10
        assert (done.exit_code, done.timed_out) in ((137, False), (137, True))
        (world.workspace / "end").touch()
        assert eventually((world.workspace / "gone").exists)
        assert environment.run(["echo", "fine"]).stdout == "fine\n"
