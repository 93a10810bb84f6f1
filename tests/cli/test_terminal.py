"""Signals, job control and the rest of what a terminal does, as a person sees it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import case
from cli.terminal import Pane, Terminal, nothing_left, pane, terminal
from cli.typed import CORRAL, Person
from hostfacts import skip_unless_host
from jail.world import PYTHON, bystander, carrying, eventually, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

SHELL = ["bash", "--norc", "--noprofile", "-i"]


@contextlib.contextmanager
def at_terminal(person: Person, backend: str, *command: str) -> Iterator[Terminal]:
    """A run in the foreground of a terminal; when that is closed, nothing is left of it."""
    argv = [CORRAL, "run", "-q", "--backend", backend, *command]
    with nothing_left(), terminal(argv, person.project, person.variables) as made:
        yield made


@pytest.fixture
def shell(person: Person) -> Iterator[Terminal]:
    """A person's own shell, outside any jail. When it is closed, nothing is left of what it ran."""
    variables = {**person.variables, "PS1": "> ", "HISTFILE": "/dev/null"}
    with nothing_left(), terminal(SHELL, person.project, variables) as made:
        made.shows("> ")
        yield made


def run_line(backend: str, command: str) -> str:
    return f"corral run -q --backend {backend} {command}"


# ---- codes ----


@case("jai-44")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "exit 255"], 255),
        (["no-such-program"], 127),
        (["./data"], 126),
        (["--limit", "x", "true"], 2),
        (["-m", "casual", "--backend", "landlock", "true"], 125),
    ],
)
def test_the_code_is_the_commands_own_or_says_why_there_is_none(
    backend: str, person: Person, command: list[str], code: int
) -> None:
    (person.project / "data").write_text("data")
    with at_terminal(person, backend, *command) as seen:
        assert seen.ends() == code


@case("jai-45")
@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "HUP", "INT", "PIPE"])
def test_who_dies_of_a_signal_is_seen_to_die_of_it(backend: str, person: Person, name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    with at_terminal(person, backend, "sh", "-c", f"kill -{name} $$") as seen:
        assert seen.ends() == -number
    line = f"{CORRAL} run --backend {backend} sh -c 'kill -{name} $$'; echo $?"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=person.project,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout == f"{128 + number}\n"
    assert not list(person.project.iterdir())  # no core file of ours


@case("jai-46")
def test_what_left_its_session_ends_with_the_program(backend: str, person: Person) -> None:
    mark = new_mark()
    script = "sleep 300 & setsid sh -c 'trap : HUP TERM INT; sleep 300; sleep 300' & echo g''one"
    with no_leaks(person.project):
        with at_terminal(person, backend, "sh", "-c", script, mark) as seen:
            seen.shows("gone\r\n")
            assert seen.ends() == 0
        assert eventually(lambda: not carrying(mark))


# ---- other processes ----

LOOK = """
import json, os, sys
def attempt(action):
    try: action()
    except OSError as error: return type(error).__name__
    return ""
outside = int(sys.argv[1])
print(json.dumps({
    "kill": attempt(lambda: os.kill(outside, 0)),
    "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "me": [os.getpid(), os.getppid()],
    "init": {name: attempt(lambda: os.readlink(f"/proc/1/{name}")) for name in ("root", "cwd", "exe")},
    "fd": attempt(lambda: [os.readlink(f"/proc/1/fd/{name}") for name in os.listdir("/proc/1/fd")]),
    "files": {name: attempt(lambda: open(f"/proc/1/{name}", "rb").read(1)) for name in ("mem", "environ", "maps")},
}))
"""


@case("jai-47")
def test_outside_processes_are_out_of_reach_and_out_of_sight(person: Person) -> None:
    with bystander() as process:
        seen = {
            backend: person.reads_json("run", "--backend", backend, *python(LOOK, str(process.pid)))
            for backend in ("namespaces", "landlock")
        }
        assert process.poll() is None
    assert seen["namespaces"]["kill"] == "ProcessLookupError"
    assert seen["namespaces"]["pids"] == [1, 2]
    assert seen["namespaces"]["me"] == [2, 1]
    assert seen["landlock"]["kill"] == "PermissionError"


@case("jai-48")
def test_the_jails_own_init_cannot_be_killed_or_looked_into(person: Person) -> None:
    with bystander() as process:
        words = ["run", "--backend", "namespaces", *python(LOOK, str(process.pid))]
        seen = person.reads_json(*words)
    assert set(seen["init"].values()) == {"PermissionError"}
    assert seen["fd"] == "PermissionError"
    assert set(seen["files"].values()) == {"PermissionError"}
    script = "for s in KILL TERM STOP SEGV; do kill -$s 1; done; sleep 0.2; echo alive"
    done = person.types("sh", "--backend", "namespaces", script)
    assert (done.returncode, done.stdout) == (0, "alive\n")


# ---- ^C ----


@case("jai-49")
def test_an_interrupt_is_the_programs_and_not_ours(backend: str, person: Person) -> None:
    with at_terminal(person, backend, PYTHON, "-I", "-S", "-q", "-i") as seen:
        seen.shows(">>> ")
        for count in (1, 2):
            seen.types("import time; time.sleep(300 - 0)\n")
            time.sleep(0.3)
            seen.types("\x03")
            seen.shows("KeyboardInterrupt")
            seen.shows(">>> ")
            seen.types(f"print('alive', {count} + 1)\n")
            seen.shows(f"alive {count + 1}\r\n")
            seen.shows(">>> ")
        time.sleep(0.3)  # the prompt is there a moment before it is read from
        seen.types("\x03")
        seen.shows("KeyboardInterrupt")
        seen.types("raise SystemExit(5)\n")
        assert seen.ends() == 5


@case("jai-49")
def test_a_trapped_interrupt_ends_with_the_traps_code_and_an_untrapped_one_with_the_signal(
    backend: str, person: Person
) -> None:
    script = "trap 'exit 3' INT; echo re''ady; while :; do sleep 0.05; done"
    with at_terminal(person, backend, "sh", "-c", script) as seen:
        seen.shows("ready")
        seen.types("\x03")
        assert seen.ends() == 3
    with at_terminal(person, backend, "sh", "-c", "echo re''ady; exec sleep 300") as seen:
        seen.shows("ready")
        seen.types("\x03")
        assert seen.ends() == -signal.SIGINT
    with at_terminal(person, backend, "sh", "-c", "echo re''ady; exec sleep 300") as seen:
        seen.shows("ready")
        seen.types("\x1c")
        assert seen.ends() == -signal.SIGQUIT


@case("jai-49")
def test_a_shell_goes_on_after_an_interrupted_run_and_a_loop_of_runs_stops(
    backend: str, shell: Terminal
) -> None:
    shell.types(run_line(backend, "sh -c 'echo re\"\"ady; exec sleep 300'") + "\n")
    shell.shows("ready\r\n")
    shell.types("\x03")
    shell.types("echo code $?\n")
    shell.shows("code 130\r\n")
    again = run_line(backend, "sh -c 'echo ro\"\"und; exec sleep 300'")
    shell.types(f"for n in 1 2 3; do {again}; done\n")
    shell.shows("round\r\n")
    shell.types("\x03")
    shell.types("echo af''ter\n")
    assert "round\r\n" not in shell.shows("after\r\n")


# ---- ^Z ----


@case("jai-50")
def test_a_stopped_run_is_stopped_once_and_goes_on_in_the_foreground_again_and_again(
    backend: str, shell: Terminal
) -> None:
    shell.types(run_line(backend, "sh -c 'while read line; do echo got-$line; done'") + "\n")
    for count in (1, 2, 3):
        shell.types(f"line{count}\n")
        shell.shows(f"got-line{count}\r\n")
        shell.types("\x1a")
        shell.shows("Stopped")
        shell.types("echo m''ark\n")
        assert "Stopped" not in shell.shows("mark\r\n")
        shell.types("jobs | grep -c Stopped\n")
        shell.shows("\n1\r\n")
        shell.types("fg\n")
        shell.shows("corral run")
    shell.types("last\n")
    shell.shows("got-last\r\n")
    shell.types("\x04")
    shell.types("echo code $?\n")
    shell.shows("code 0\r\n")


@case("jai-50")
def test_a_shell_inside_has_job_control_and_can_suspend_itself(backend: str, shell: Terminal) -> None:
    """Its process group is another than ours; the terminal goes back and forth."""
    shell.types("PS1='inside> ' " + run_line(backend, "bash --norc --noprofile -i") + "\n")
    shell.shows("inside> ")
    for count in (1, 2):
        shell.types(f"sleep 300{count}\n")
        time.sleep(0.5)
        shell.types("\x1a")
        shell.shows("Stopped")
        shell.types("kill -9 %%; echo in''ner\n")
        shell.shows("inner\r\n")
        shell.types("suspend\n")
        shell.shows("Stopped")
        shell.types("echo ou''ter\n")
        shell.shows("outer\r\n")
        shell.types("fg\n")
        shell.shows("corral run")
        shell.types("echo ag''ain\n")
        shell.shows("again\r\n")
    shell.types("exec sh -c 'exit 4'\n")  # `exit` would ask about jobs that are not buried yet
    shell.types("echo code $?\n")
    shell.shows("code 4\r\n")


@case("jai-50", "jai-46")
@pytest.mark.parametrize("how", ["stopped", "stopped again", "running"])
def test_when_the_shell_is_gone_so_is_a_run_that_it_left_behind(
    backend: str, shell: Terminal, how: str
) -> None:
    """The check is the fixture's: it closes the terminal and looks for what is left."""
    shell.types(run_line(backend, "sh -c 'while read line; do echo got-$line; done'") + "\n")
    for count in {"stopped": [1], "stopped again": [1, 2], "running": []}[how]:
        shell.types(f"line{count}\n")
        shell.shows(f"got-line{count}\r\n")
        shell.types("\x1a")
        shell.shows("Stopped")
        if count == 1 and how == "stopped again":
            shell.types("fg\n")
            shell.shows("corral run")
    if how == "running":
        shell.types("one\n")
        shell.shows("got-one\r\n")


@case("jai-50")
def test_a_run_in_the_background_stops_only_when_it_wants_the_terminal(backend: str, shell: Terminal) -> None:
    shell.types(run_line(backend, "sh -c 'sleep 0.2; echo ba\"\"ck'") + " &\n")
    shell.shows("back\r\n")
    shell.types(run_line(backend, "cat") + " &\n")
    time.sleep(1)
    shell.types("jobs\n")
    shell.shows("Stopped")
    shell.types("kill %%; wait; echo en''ded\n")
    shell.shows("ended\r\n")


# ---- signals to us ----


@case("jai-51")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2])
def test_a_signal_to_us_is_the_commands_and_its_code_ours(
    backend: str, person: Person, number: signal.Signals
) -> None:
    script = f"trap 'exit 6' {number.name[3:]}; echo re''ady; while :; do sleep 0.05; done"
    with at_terminal(person, backend, "sh", "-c", script) as seen:
        seen.shows("ready")
        seen.process.send_signal(number)
        assert seen.ends() == 6
    with at_terminal(person, backend, "sh", "-c", "echo re''ady; exec sleep 300") as seen:
        seen.shows("ready")
        seen.process.send_signal(number)
        assert seen.ends() == -number


# Waited for, not handled: a handler of Python's is not called for a signal that comes right before a sleep.
WATCH = """
import os, signal
def say(word): os.write(1, f"{word} {os.get_terminal_size().columns} {os.get_terminal_size().lines}\\n".encode())
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
say("ready")
while signal.sigwait([signal.SIGWINCH]): say("size")
"""


@case("jai-51")
def test_a_new_size_reaches_the_program(backend: str, person: Person) -> None:
    with at_terminal(person, backend, *python(WATCH)) as seen:
        seen.shows("ready 80 24\r\n")
        for columns, rows in ((132, 50), (40, 10)):
            seen.resize(rows, columns)
            seen.shows(f"size {columns} {rows}\r\n")


def test_a_terminal_that_is_closed_ends_the_run(backend: str, person: Person) -> None:
    mark = new_mark()
    with at_terminal(
        person, backend, "sh", "-c", "trap '' HUP; echo re''ady; sleep 300 & wait", mark
    ) as seen:
        seen.shows("ready")
        assert carrying(mark)
    assert eventually(lambda: not carrying(mark))


# ---- what may be done to the terminal ----

PUSH = """
import fcntl, json, os, struct, sys, termios
def attempt(number, argument):
    try: fcntl.ioctl(0, number, argument)
    except OSError as error: return os.strerror(error.errno)
    return "done"
print(json.dumps({
    "TIOCSTI": [attempt(termios.TIOCSTI, bytes([c])) for c in b"echo pushed\\n"][0],
    "TIOCSTI, high bits": attempt(termios.TIOCSTI | 1 << 31, b"x"),
    "TIOCLINUX": attempt(termios.TIOCLINUX if hasattr(termios, "TIOCLINUX") else 0x541C, bytes([2, 0])),
    "TIOCGWINSZ": struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))[:2],
    "tcsetattr": termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0)),
}))
"""


@case("jai-52")
def test_nothing_can_be_typed_into_the_callers_shell_and_its_size_can_be_asked(
    backend: str, person: Person, shell: Terminal
) -> None:
    (person.project / "push.py").write_text(PUSH)
    shell.types(run_line(backend, f"{PYTHON} -I -S push.py") + "\n")
    shell.shows("{")
    told = json.loads("{" + shell.shows("}"))
    assert (told["TIOCSTI"], told["TIOCLINUX"]) == ("Operation not permitted",) * 2
    assert told["TIOCSTI, high bits"] != "done"
    assert (told["TIOCGWINSZ"], told["tcsetattr"]) == ([24, 80], None)
    shell.types("echo m''ark\n")
    assert "pushed" not in shell.shows("mark\r\n")


# ---- without a terminal ----


@case("jai-53")
@pytest.mark.parametrize("how", ["setsid", "pipe", "closed", "null", "all closed", "file"])
def test_it_works_without_a_terminal_and_with_any_standard_input(
    backend: str, person: Person, how: str
) -> None:
    (person.project / "input").write_text("from a file\n")
    line = {
        "setsid": 'setsid --wait "$@"',
        "pipe": 'echo from a pipe | "$@"',
        "closed": '"$@" <&-',
        "null": '"$@" < /dev/null',
        "all closed": '"$@" <&- >&- 2>&-',
        "file": '"$@" < input',
    }[how]
    command = ["sh", "-c", "cat > made 2> /dev/null; test -e made && exit 5"]
    done = subprocess.run(
        ["bash", "-c", line, "bash", CORRAL, "run", "--backend", backend, *command],
        cwd=person.project,
        env=person.variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (5, "")
    expected = {"pipe": "from a pipe\n", "file": "from a file\n"}.get(how, "")
    assert (person.project / "made").read_text() == expected


@case("jai-53")
def test_a_closed_standard_stream_is_nothing_else_inside(backend: str, person: Person) -> None:
    """A descriptor that Corral opened for itself must not slip into its place."""
    script = "for n in 0 1 2; do readlink /proc/self/fd/$n; done > links 2> /dev/null; exit 0"
    line = f'{CORRAL} run --backend {backend} bash -c "$1" <&- >&- 2>&-'
    subprocess.run(["bash", "-c", line, "bash", script], cwd=person.project, env=person.variables, timeout=30)
    for link in (person.project / "links").read_text().split():
        assert link in ("/dev/null", f"{person.project}/links")


# ---- what is kept and what is not ----

SHOW_DESCRIPTORS = "import os; print(*sorted(int(n) for n in os.listdir('/proc/self/fd')))"


@case("jai-54")
def test_a_directory_outside_on_descriptor_9_is_not_seen_inside_unless_it_is_kept(
    backend: str, person: Person
) -> None:
    script = f'exec 9< {person.world.outside} 8< /etc/passwd; "$@"'

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script, "bash", CORRAL, "run", "--backend", backend, *words],
            cwd=person.project,
            env=person.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )

    assert run(*python(SHOW_DESCRIPTORS)).stdout == "0 1 2 3\n"  # 3 is the directory it is listing
    assert run("ls", "/proc/self/fd/9/").returncode != 0
    kept = run("--keep-fd", "9", *python(SHOW_DESCRIPTORS))
    assert kept.stdout == "0 1 2 3 9\n"
    listed = run("--keep-fd", "9", *python("import os; print(os.listdir(9))"))
    assert listed.stdout == "['victim']\n"
    write = "import os; os.open('made', os.O_CREAT | os.O_WRONLY, dir_fd=9)"
    if backend == "landlock":
        assert run("--keep-fd", "9", *python(write)).returncode != 0
        assert not (person.world.outside / "made").exists()


KEPT = """
import json, os, resource
mask = os.umask(0)
print(json.dumps({"umask": mask, "cwd": os.getcwd(), "PWD": os.environ["PWD"],
                  "files": resource.getrlimit(resource.RLIMIT_NOFILE), "core": resource.getrlimit(resource.RLIMIT_CORE),
                  "nice": os.nice(0), "stack": resource.getrlimit(resource.RLIMIT_STACK)}))
"""


@case("jai-55")
def test_mask_limits_directory_and_its_name_are_kept(backend: str, person: Person) -> None:
    sub = person.project / "sub"
    sub.mkdir()
    person.variables["PWD"] = "/somewhere/else"
    script = 'umask 027; ulimit -S -n 700; ulimit -S -c 0; ulimit -S -s 4096; exec nice -n 3 "$@"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", CORRAL, "run", "--backend", backend, *python(KEPT)],
        cwd=sub,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    told = json.loads(done.stdout)
    assert told["umask"] == 0o027
    assert (told["cwd"], told["PWD"]) == (str(sub), str(sub))
    assert told["files"] == [700, resource.getrlimit(resource.RLIMIT_NOFILE)[1]]
    assert told["core"][0] == 0
    assert told["stack"][0] == 4096 << 10
    assert told["nice"] == os.nice(0) + 3


def test_signals_are_as_the_caller_left_them(backend: str, person: Person) -> None:
    """Ignored ones stay ignored (nohup), and those that Python ignores for itself are not."""
    show = (
        "import signal; print(*(signal.getsignal(getattr(signal, f'SIG{n}')).name for n in ('HUP', 'TERM')))"
    )
    ask = [PYTHON, "-I", "-S", "-c", show]
    line = f"trap '' HUP; exec {CORRAL} run --backend {backend} \"$@\""
    done = subprocess.run(
        ["bash", "-c", line, "bash", *ask],
        cwd=person.project,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout == "SIG_IGN SIG_DFL\n"
    done = person.types("sh", "--backend", backend, "yes | head -1; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("y\n141\n", "")


# ---- in tmux ----


@pytest.fixture
def tmux(person: Person) -> Iterator[Pane]:
    skip_unless_host("no-tmux")
    variables = {**person.variables, "PS1": "> ", "TERM": "screen", "HISTFILE": "/dev/null"}
    with (
        nothing_left(),
        tempfile.TemporaryDirectory() as directory,  # a socket's path must be short
        pane(Path(directory, "tmux"), person.project, variables, SHELL) as made,
    ):
        made.shows(">")
        yield made


@case("jai-49", "jai-50")
def test_in_tmux_an_interrupt_a_stop_and_a_return_do_what_they_do_without_us(
    backend: str, tmux: Pane
) -> None:
    tmux.types(run_line(backend, f"{PYTHON} -I -S -q -i") + "\n")
    tmux.shows(">>>")
    tmux.types("import time; time.sleep(300)\n")
    time.sleep(0.5)
    tmux.presses("C-c")
    tmux.shows("KeyboardInterrupt")
    tmux.types("print('ali' + 've')\n")
    tmux.shows("alive")
    tmux.presses("C-z")
    tmux.shows("Stopped")
    tmux.types("echo out''side\n")
    assert tmux.shows("outside").count("Stopped") == 1
    tmux.types("fg\n")
    tmux.types("print('ba' + 'ck')\n")
    tmux.shows("back")
    tmux.presses("C-d")
    tmux.types("echo co''de $?\n")
    tmux.shows("code 0")


@case("jai-51")
def test_in_tmux_a_new_size_reaches_the_program(backend: str, tmux: Pane, person: Person) -> None:
    (person.project / "watch.py").write_text(WATCH)
    tmux.types(run_line(backend, f"{PYTHON} -I -S watch.py") + "\n")
    tmux.shows("ready 80 ")
    tmux.resize(30, 100)
    tmux.shows("size 100 ")
