"""Ways out of such a jail, and leaks from it, that work elsewhere: each is closed here, beside its control."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cases import case
from systemd.testbed import HOME, RUNTIME

if TYPE_CHECKING:
    from systemd.conftest import Bed

BUS = {"XDG_RUNTIME_DIR": RUNTIME, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus"}


# ---- the user's bus, and what else answers in the runtime directory ----


@case("hive-5.1")
def test_the_users_manager_cannot_be_asked_for_a_unit_without_a_jail(bed: Bed) -> None:
    ask = "systemd-run --user --pipe --wait --collect --quiet -- cat ~/.ssh/id"
    assert bed.sh(ask) == "the private key\n"
    answer = bed.script(ask, env=[f"{name}={value}" for name, value in BUS.items()])
    assert answer["exit_code"] != 0
    assert "private key" not in answer["stdout"]


@case("hive-5.1")
def test_no_socket_of_the_runtime_directory_answers(bed: Bed) -> None:
    sockets = [f"{RUNTIME}/bus", f"{RUNTIME}/systemd/private", f"{RUNTIME}/agent"]
    program = (
        "import socket, sys\nfor path in sys.argv[1:]:\n s = socket.socket(socket.AF_UNIX)\n"
        " try:\n  s.connect(path); print('open')\n except OSError as e: print(type(e).__name__)"
    )
    with agent(bed, sockets[-1]):
        argv = ["/usr/bin/python3", "-c", program, *sockets]
        outside = bed.testbed.run(*argv)
        assert outside.stdout.split() == ["open"] * 3
        inside = bed.jail(argv, policy={"network": "open"})
    assert inside["stdout"].split() == ["FileNotFoundError"] * 3


@contextlib.contextmanager
def agent(bed: Bed, path: str) -> Iterator[None]:
    """Something that listens, as an ssh-agent does."""
    listen = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
    serve = f"{listen} print(flush=True); sys.stdin.read()"
    with bed.testbed.start("/usr/bin/python3", "-c", serve, path) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait()
            bed.sh(f"rm -f {path}")


# ---- secrets ----

KEY = "key-3f9a0c"
PROMPT = "prompt-77b1e2"


@case("hive-5.4")
def test_no_key_and_no_prompt_is_on_any_command_line_in_the_unit_or_in_the_journal(bed: Bed) -> None:
    wait = "echo $0 > ready; echo $ANTHROPIC_API_KEY >> ready; while [ ! -e go ]; do sleep 0.02; done"
    command = ["bash", "-c", wait, PROMPT]
    journal = bed.testbed.journal
    with bed.start(command, api_key=KEY, env=[f"OTHER={KEY}-other"]) as driver:
        try:
            bed.sh("while [ ! -s ~/work/ready ]; do sleep 0.02; done")
            seen = {
                "systemd-run": command_lines(bed, "systemd-run"),
                "shown": bed.sh("systemctl --user show '*'"),
                "status": bed.testbed.run("systemctl", "--user", "status", "--no-pager", "corral-*").stdout,
                "unit files": bed.sh(f"cat {RUNTIME}/systemd/transient/*"),
                "all": bed.sh("systemctl --user list-units --all --no-legend"),
            }
        finally:
            bed.sh("touch ~/work/go")
            driver.wait()
    assert bed.sh("cat ~/work/ready") == f"{PROMPT}\n{KEY}\n"
    assert "--unit=corral-" in seen["systemd-run"]
    assert "corral-" in seen["unit files"]
    assert "corral-" in seen["all"]
    assert "a command in a corral" in journal.read_text()
    for where, text in {**seen, "journal": journal.read_text()}.items():
        assert KEY not in text, where
        # The status lists processes with their arguments, and the prompt is an argument of the command's own.
        assert PROMPT not in text or where == "status", where


def command_lines(bed: Bed, program: str) -> str:
    """Of all processes of that name, as every local user can read them."""
    return bed.sh(f"for p in $(pgrep -x {program}); do tr '\\0' ' ' < /proc/$p/cmdline; done")


@case("hive-5.4")
def test_no_variable_of_the_caller_can_be_read_from_its_process(bed: Bed) -> None:
    look = "grep -l hush-5d /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; echo looked"
    caller = {"MY_TOKEN": "hush-5d"}
    assert "environ" in bed.testbed.run("bash", "-c", look, variables=caller).stdout
    answer = bed.script(look.replace("hush-5d", "hus[h]-5d"), variables=caller)
    assert answer["stdout"] == "looked\n"


# ---- environment ----


@case("hive-5.5")
def test_nothing_of_the_managers_environment_arrives_or_runs(bed: Bed) -> None:
    bed.sh(f"echo 'touch {HOME}/work/ran' > ~/rc")
    bed.sh(f"systemctl --user set-environment GH_TOKEN=ghp-123 BASH_ENV={HOME}/rc LD_PRELOAD=/nonexistent.so")
    try:
        plain = bed.sh("systemd-run --user --pipe --wait --collect --quiet -- env 2>/dev/null")
        assert "GH_TOKEN=ghp-123" in plain
        bed.sh("rm -f ~/work/ran")
        answer = bed.script("env")
    finally:
        bed.sh("systemctl --user unset-environment GH_TOKEN BASH_ENV LD_PRELOAD; rm ~/rc")
    assert answer["exit_code"] == 0
    assert "ghp-123" not in answer["stdout"]
    assert answer["stderr"] == ""
    assert bed.sh("ls ~/work") == ""


# ---- quoting ----

SINGLE = list("$%\\'\"`;&|<>*?~#!(){}[]:=, \n\té☃")
ODD = [*SINGLE, "${HOME}", "$$", "%h", "$(id)", "-p"]


TOO_ODD = ("'", '"', "\n", "\t")
NEWER = 254  # where what starts a unit reads its paths once more, and does not unquote them


def generated(count: int, pieces: list[str]) -> list[str]:
    chance = random.Random(9)
    return ["".join(chance.choices(pieces, k=chance.randint(0, 9))) for _ in range(count)]


@case("hive-5.6")
def test_a_thousand_odd_arguments_and_variables_arrive_as_they_were(bed: Bed) -> None:
    values = generated(1000, [*ODD, "a", "B", "7"])
    show = (
        "import json, os, sys; print(json.dumps([sys.argv[1:], [os.environ[f'V{n}'] for n in range(1000)]]))"
    )
    argv = ["/usr/bin/python3", "-c", show, *values]
    answer = bed.jail(argv, env=[f"V{n}={value}" for n, value in enumerate(values)])
    assert json.loads(answer["stdout"]) == [values, values]


@case("hive-5.7")
def test_directories_with_odd_names_are_bound_as_they_are(bed: Bed) -> None:
    """As the working directory, as a writable grant and as a read-only one."""
    pieces = ODD if bed.version < NEWER else [piece for piece in ODD if piece not in TOO_ODD]
    names = sorted({*generated(60, pieces), *pieces} - {""})
    make = "import os, sys, json\nfor n in json.loads(sys.argv[1]):\n os.makedirs(n); open(n + '/here', 'w').write(n)"
    places = [f"{HOME}/odd/{name}" for name in names]
    assert bed.python(make, json.dumps(places)).returncode == 0
    show = (
        "import json, os, sys\nseen = []\nfor path in json.loads(sys.argv[1]):\n"
        " text = open(path + '/here').read()\n"
        " try:\n  open(path + '/new', 'w').close(); seen.append([text, 'written'])\n"
        " except OSError as e:\n  seen.append([text, e.strerror])\nprint(json.dumps([os.getcwd(), seen]))"
    )
    half = len(places) // 2
    grants = [(place, "rw") for place in places[1:half]] + [(place, "ro") for place in places[half:]]
    try:
        answer = bed.jail(
            ["/usr/bin/python3", "-c", show, json.dumps(places)], cwd=places[0], policy={"grants": grants}
        )
        where, seen = json.loads(answer["stdout"])
    finally:
        bed.sh("rm -rf ~/odd")
    assert where == places[0]
    assert seen == [[place, "written"] for place in places[:half]] + [
        [place, "Read-only file system"] for place in places[half:]
    ]


@case("hive-5.7")
def test_a_path_that_is_too_odd_for_newer_versions_is_bound_or_refused_by_name(bed: Bed) -> None:
    for piece in TOO_ODD:
        place = f"{HOME}/work/a{piece}b"
        bed.python("import os, sys; os.mkdir(sys.argv[1])", place)
        answer = bed.jail(["ls", "-A", place], policy={"grants": [(place, "ro")]})
        if "error" in answer:
            assert bed.version >= NEWER
            assert repr(place) in answer["text"]
        else:
            assert answer["exit_code"] == 0


@case("hive-5.7")
def test_a_path_that_systemd_cannot_take_is_refused_before_anything_runs(bed: Bed) -> None:
    program = (
        "import os; os.makedirs(b'odd-\\xff'); os.chdir(b'odd-\\xff'); from corral import *\n"
        "try: open_jail('systemd-run').run(RunOpts(None, ['true']))\nexcept PolicyError as e: print(e)"
    )
    done = bed.python(program)
    bed.sh("rm -rf ~/odd-*")
    assert "UTF-8" in done.stdout


# ---- the channel that the verdict came by ----


def test_a_command_has_its_three_streams_and_nothing_of_ours(bed: Bed) -> None:
    look = (
        "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], os.readlink('/proc/self/fd/0'))\n"
        "for name in range(10):\n"
        " try: print('open', os.open(f'/proc/{os.getppid()}/fd/{name}', os.O_RDWR))\n"
        " except OSError as e: print(e.strerror)"
    )
    streams, *launchers = bed.jail(["/usr/bin/python3", "-c", look])["stdout"].splitlines()
    assert streams == "[0, 1, 2] /dev/null"
    assert set(launchers) == {"Permission denied"}


# ---- what is shared ----


@case("hive-5.9")
def test_shared_memory_is_private_and_processes_outside_cannot_be_signalled(bed: Bed) -> None:
    bed.sh("echo host > /dev/shm/of-the-host-60999")
    try:
        with bed.testbed.start("sh", "-c", "echo $$; exec sleep 60") as victim:
            assert victim.stdout is not None
            pid = victim.stdout.readline().strip()  # as its own PID namespace, the testbed's, counts
            answer = bed.script(f"ls -A /dev/shm; kill -TERM {pid}; kill -0 $$ && echo controls")
            assert answer["stdout"] == "controls\n"
            assert "not permitted" in answer["stderr"]
            assert victim.poll() is None
            bed.sh(f"kill {pid}")
    finally:
        bed.sh("rm /dev/shm/of-the-host-60999")


@case("hive-5.11")
def test_a_program_of_the_system_finds_no_token_of_the_user(bed: Bed) -> None:
    bed.sh("mkdir -p ~/.config/gh && echo 'oauth_token: gho-9' > ~/.config/gh/hosts.yml")
    try:
        answer = bed.script(
            "cat ~/.config/gh/hosts.yml; ls -A ~ ~/.config; env | grep -i -e token -e gh_ ; true"
        )
    finally:
        bed.sh("rm -r ~/.config/gh")
    assert "gho-9" not in answer["stdout"]
    assert answer["stdout"].startswith(f"{HOME}:\nwork\n")


def test_the_host_keeps_nothing_of_a_run(bed: Bed) -> None:
    listed = "ls -A ~ /tmp /dev/shm ~/.cache 2>/dev/null | sort"
    bed.script("true")
    before = bed.sh(listed)
    assert bed.script("touch /tmp/x ~/x /dev/shm/x")["exit_code"] == 0
    assert bed.sh(listed) == before


def test_what_is_read_only_in_the_workspace_cannot_be_moved_away_with_what_it_lies_in(bed: Bed) -> None:
    work = bed.sh("cd ~/work && pwd").strip()
    bed.sh(f"cd {work} && mkdir -p deep/kept && echo real > deep/kept/file")
    grant = [[f"{work}/deep/kept", "ro"]]
    line = "mv deep moved; mkdir -p deep/kept; echo false > deep/kept/file; touch beside; cat deep/kept/file"
    answer = bed.script(line, policy={"grants": grant})
    assert answer["stdout"] == "real\n"
    assert bed.sh(f"cd {work} && cat deep/kept/file && ls beside") == "real\nbeside\n"
