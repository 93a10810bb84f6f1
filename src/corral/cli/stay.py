"""Where no PID namespace takes the tree down with us, we stay: the supervisor watches this process, and the private
temp directory is removed at the end. Signals meant for the command are passed on."""

from __future__ import annotations

import os
import sys

from corral.jail.fence import GROUP_SLOT
from corral.jail.host import launcher_path
from corral.jail.spawn import SIGPIPE, SIGXFSZ

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import NoReturn

    from corral.cli.afterwards import Watch
    from corral.cli.setup import Ready
    from corral.environment.keeping import Keeping
    from corral.jail.cgroups import Group
else:
    import _signal  # without the enums that cost 6 ms

LIFE_SLOT = "1023"
ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)


def run_attached(
    ready: Ready, variables: dict[str, str], watch: Watch | None = None, group: Group | None = None
) -> int:
    """``watch``: tells a person, at the end, what is left of the run. ``group``: its control group, removed then."""
    from corral.cli.run import add_summary, record, wall_clock

    enclosure = ready.enclosure
    temp = None
    if enclosure.choice.backend == "landlock":
        from corral.environment.temp import make_temp

        temp = make_temp(enclosure.writable)
    keeping = _entered(ready, variables) if enclosure.jail is not None else None
    try:
        if temp is not None:
            enclosure.use_temp(temp[0])
            variables["TMPDIR"] = temp[0].path
            add_summary(enclosure, variables, os.path.dirname(temp[0].path))
        plan, words = enclosure.launchable(ready.argv, ground=enclosure.staged_ground(), group=group)
        life = os.pidfd_open(os.getpid())
        steps = f"fd\0{LIFE_SLOT}\0{life}\0life\0{LIFE_SLOT}\0".encode()
        passed = (life, *plan.passed)
        if group is not None:
            steps += f"fd\0{GROUP_SLOT}\0{group.procs}\0".encode()
            passed = (group.procs, *passed)
        status = launch_attached(steps + wall_clock(ready) + words, passed, variables)
        if group is not None and group.passed_memory():
            print("corral: the memory limit was passed; the run was ended", file=sys.stderr)
            status = (128 + _signal.SIGKILL) << 8
    finally:
        if group is not None:
            group.remove()
        if temp is not None:
            from corral.environment.temp import remove_temp

            remove_temp(*temp)
        enclosure.close()
        if keeping is not None:
            _listen_again()
            keeping.close()
    record(ready, 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    if watch is not None:
        watch.tell()
    return end_like(status)


def _listen_again() -> None:
    """The command is gone, and with it whom signals were for. What it left may take long to look at: whoever has no
    patience may end that, and the next `corral changes` does it."""
    while _signal.sigtimedwait(ENDING, 0) is not None:
        pass  # sent before the end
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, ENDING)


def _entered(ready: Ready, variables: dict[str, str]) -> Keeping:
    """In the named jail, whose home was made if it is new."""
    from corral.environment.keeping import Keeping

    enclosure, settings = ready.enclosure, ready.settings
    jail, home = enclosure.jail, enclosure.home
    assert jail is not None
    variables["CORRAL_JAIL"], variables["CORRAL_MODE"] = jail.name, enclosure.policy.mode
    if home is not None:
        from corral.jail.stores import store_variables

        variables.update(store_variables(home.place.path, enclosure.root.path, variables))
    if home is not None and not home.copied and settings.agent is not None:
        from corral.config.seeding import seed_home

        seed_home(settings.agent, home.layers[0].path)

    def began() -> None:
        from corral.jail.named import recorded

        if settings.initjail and home is not None and recorded(jail) is None:
            from corral.cli.initjail import initialise

            initialise(settings.initjail, home.layers[0].path, jail.name, enclosure.policy.mode)

    return Keeping(enclosure, began)


def launch_attached(content: bytes, passed: tuple[int, ...], variables: dict[str, str]) -> int:
    everything = _signal.valid_signals()
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, everything)
    fd = os.memfd_create("plan", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    path = launcher_path()
    pid = os.posix_spawn(
        path,
        (path, "--plan-fd", str(fd)),
        variables,
        file_actions=[(os.POSIX_SPAWN_DUP2, n, n) for n in (fd, *passed)],
        setsigmask=before,
        setsigdef=(SIGPIPE, SIGXFSZ),
    )
    os.close(fd)
    return _wait(pid, everything)


def _wait(pid: int, everything: set[_signal.Signals]) -> int:
    """Until the supervisor is gone. What the terminal sends reaches it without us; what a process sends to us is
    meant for it. If it stops, so do we; whoever continues us has most likely continued it too."""
    while True:
        info = _signal.sigwaitinfo(everything)
        if info.si_signo == _signal.SIGCHLD:
            status = _changes(pid)
            while status is not None and os.WIFSTOPPED(status):
                os.kill(os.getpid(), _signal.SIGSTOP)
                _signal.sigtimedwait((_signal.SIGCONT,), 0)  # what woke us is not to be passed on
                status = _changes(pid)
                if status is None:  # continued alone: it is still stopped
                    os.kill(pid, _signal.SIGCONT)
            if status is not None and not os.WIFCONTINUED(status):
                return status
        elif info.si_code <= 0:
            os.kill(pid, info.si_signo)


def _changes(pid: int) -> int | None:
    """The latest of what became of it since we last looked; None if nothing did."""
    latest = None
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not found:
            return latest
        latest = status
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return status


def end_like(status: int) -> NoReturn:
    """All is closed by now; taking the interpreter apart would take longer than the jail did."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _die_of(number: int) -> NoReturn:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    os.kill(os.getpid(), number)
    os._exit(128 + number)
