"""`corral run` and `corral sh`: what runs, what is refused, and what the caller gets back."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from cli.typed import CORRAL, Person
from jail.world import SECRET, carrying, eventually, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail


def test_a_write_in_the_project_lands_and_one_beside_it_does_not(backend: str, person: Person) -> None:
    script = f"echo x > made; echo x > {person.world.outside}/made; test -e made"
    done = person.types("sh", "-m", "workspace-write", "--backend", backend, script)
    assert done.returncode == 0
    assert f"{person.world.outside}/made" in done.stderr
    assert (person.project / "made").exists()
    assert not (person.world.outside / "made").exists()


def test_without_a_mode_a_write_beside_the_project_goes_to_a_copy_or_for_root_nowhere(person: Person) -> None:
    made = person.world.outside / "made"
    done = person.types("sh", f"echo x > made; echo x > {made}")
    if os.getuid() == 0:
        assert done.returncode == 1
        assert str(made) in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert person.reads("run", "cat", str(made)) == "x\n"
        assert person.reads("changes", "list") == "A outside/made  (2 bytes)\n"
    assert (person.project / "made").read_text() == "x\n"
    assert not made.exists()


def test_without_a_mode_and_with_a_tier_that_has_no_room_for_a_home_it_is_workspace_write(
    person: Person,
) -> None:
    facts = person.reads_json("explain", "--json", "--backend", "landlock", "true")
    assert (facts["mode"], facts["backend"], facts["network"]) == ("workspace-write", "landlock", "open")


def test_output_input_and_words_pass_through_as_they_are(backend: str, person: Person) -> None:
    show = "import sys; print(sys.argv[1:], sys.stdin.read()); print('err', file=sys.stderr)"
    words = ["--rw", "-m", "--", "", "two  words", "$HOME", "*", "ü"]
    command = [CORRAL, "run", "--backend", backend, *python(show, *words)]
    done = subprocess.run(
        command,
        input="text\n",
        capture_output=True,
        text=True,
        cwd=person.project,
        env=person.variables,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{words} text\n\n", "err\n")


def test_two_dashes_end_the_options(person: Person) -> None:
    assert person.reads("run", "-m", "read-only", "--", "printf", "%s", "--help") == "--help"
    assert person.reads("run", "printf", "%s", "-m") == "-m"
    assert person.reads("sh", "--", "echo -- $0") == "-- bash\n"


def test_a_line_for_the_shell_is_one_argument(person: Person) -> None:
    assert person.reads("sh", "echo a | tr a b && echo $((1 + 1))") == "b\n2\n"
    for words in ([], ["echo", "a"]):
        assert (
            person.is_refused("sh", *words)
            == "corral sh takes one line, in a single argument: corral sh 'LINE'"
        )


def test_without_a_command_it_is_your_shell(person: Person) -> None:
    done = person.types("run", input="echo from $0; exit 3\n", stdin=None)
    assert done.returncode == 3
    assert done.stdout.startswith("from ")


def test_the_shell_line_is_not_read_by_a_login_shell(person: Person) -> None:
    for name in (".profile", ".bash_profile", ".bashrc"):
        (person.world.home / name).write_text("echo $0 read me\n")
    assert person.reads("sh", "echo plain") == "plain\n"


# ---- exit codes ----

NOT_STARTED = {
    "not found": (127, ["no-such-program"], "not found"),
    "a path that is not there": (127, ["./no-such-program"], "not found"),
    "no program": (126, ["./data"], ""),
    "a directory": (126, ["/etc"], ""),
    "unknown option": (2, ["--colour", "true"], "unknown option --colour"),
    "a nearly right option": (2, ["--netwrok", "off", "true"], "did you mean --network?"),
    "option without value": (2, ["--rw"], "option --rw needs a value"),
    "switch with a value": (2, ["--quiet=yes", "true"], "takes no value"),
    "unknown short option": (2, ["-Z", "true"], "unknown option -Z"),
    "unknown mode": (2, ["-m", "workspace", "true"], "did you mean workspace-write?"),
    "unknown backend": (2, ["--backend", "bwrap", "true"], "unknown backend"),
    "unknown network": (2, ["--network", "on", "true"], "unknown network"),
    "missing directory": (2, ["--rw", "missing", "true"], "missing"),
    "missing read-only directory": (2, ["--ro", "missing", "true"], "missing"),
    "missing working directory": (2, ["--cd", "missing", "true"], "missing"),
    "a file as working directory": (2, ["--cd", "data", "true"], "data"),
    "unknown limit": (2, ["--limit", "memroy=1G", "true"], "did you mean memory?"),
    "limit without number": (2, ["--limit", "memory=much", "true"], "not a number of bytes"),
    "limit of nothing": (2, ["--limit", "processes=0", "true"], "above 0"),
    "timeout in words": (2, ["--timeout", "soon", "true"], "not a number of seconds"),
    "missing config": (2, ["-C", "missing.toml", "true"], "no such config file"),
    "a profile without config": (2, ["--profile", "careful", "true"], "profile 'careful'"),
    "a descriptor that is not open": (2, ["--keep-fd", "77", "true"], "no such descriptor"),
    "a standard descriptor": (2, ["--keep-fd", "1", "true"], "from 3 on"),
    "a bad variable": (2, ["--setenv", "=x", "true"], "not a variable name"),
    "hiding what is not below home": (2, ["--hide", "/etc/passwd", "true"], "--hide takes a path below home"),
    "hiding upwards": (2, ["--hide", "../x", "true"], "--hide takes a path below home"),
    "a glob that climbs": (2, ["--writable", "../**", "true"], ""),
    "a glob in read-only": (2, ["-m", "read-only", "--writable", "out/**", "true"], "read-only"),
    "all there is": (2, ["--rw", "/", "true"], "whole file system"),
    "a mode that this tier has no room for": (
        125,
        ["-m", "casual", "--backend", "landlock", "true"],
        "casual",
    ),
    "a review that this tier has no room for": (125, ["--review", "--backend", "landlock", "true"], "review"),
    "an empty command": (127, [""], ""),
}


@pytest.mark.parametrize("what", NOT_STARTED)
def test_what_cannot_start_is_one_line_and_its_code(backend: str, person: Person, what: str) -> None:
    code, words, text = NOT_STARTED[what]
    (person.project / "data").write_text("data")
    before = sorted(os.listdir(person.project))
    chosen = [] if "--backend" in words else ["--backend", backend]
    message = person.is_refused("run", *chosen, *words, code=code)
    assert text in message
    assert sorted(os.listdir(person.project)) == before


@pytest.mark.parametrize("code", [0, 1, 7, 124, 125, 126, 127, 255])
def test_the_commands_own_code_is_ours(backend: str, person: Person, code: int) -> None:
    done = person.types("run", "--backend", backend, "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_time_that_is_up_is_124_and_nothing_is_left(backend: str, person: Person) -> None:
    mark = new_mark()
    script = "trap '' TERM; sleep 300 & setsid sleep 300 & echo up; wait; sleep 300"
    with no_leaks(person.project):
        done = person.types("run", "--backend", backend, "--timeout", "0.5", "sh", "-c", script, mark)
        assert (done.returncode, done.stdout) == (124, "up\n")
        assert eventually(lambda: not carrying(mark))
    assert person.types("run", "--backend", backend, "--timeout", "20s", "true").returncode == 0


def test_a_working_directory_that_is_gone_is_said(person: Person) -> None:
    script = f'mkdir gone && cd gone && rmdir ../gone && exec {CORRAL} run "$@"'
    for words, code in ((["true"], 2), (["--cd", str(person.project), "pwd"], 0)):
        done = subprocess.run(
            ["sh", "-c", script, "sh", *words],
            cwd=person.project,
            env=person.variables,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == code, done.stderr
        if code:
            assert done.stderr.startswith("corral: the working directory is gone")
            assert done.stderr.count("\n") == 1
        else:
            assert done.stdout == f"{person.project}\n"


def test_whoever_reads_our_output_may_have_enough(person: Person) -> None:
    """As `corral explain … | head -1`."""
    done = subprocess.run(
        f"{CORRAL} explain true | head -1; {CORRAL} --help | true; {CORRAL} doctor --json | head -1",
        shell=True,
        cwd=person.project,
        env=person.variables,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stderr == ""
    taken = "workspace-write" if os.getuid() == 0 else "casual"
    assert done.stdout.splitlines()[0] == f"mode         {taken}"


# ---- options, each where it makes a difference ----


def run(person: Person, *words: str) -> int:
    return person.types("run", *words).returncode


def write(path: str | Path) -> list[str]:
    """Not `touch`: on a file that is there it only sets the time, which is not Landlock's to refuse."""
    return ["sh", "-c", ': > "$0"', str(path)]


def test_mode_chooses_what_is_writable(backend: str, person: Person) -> None:
    for words, code in ((["-m", "workspace-write"], 0), (["--mode=read-only"], 1), (["-mread-only"], 1)):
        assert (run(person, "--backend", backend, *words, *write("made")) != 0) == code
    assert run(person, "-m", "off", *write(person.world.outside / "made")) == 0


@pytest.mark.parametrize("option", ["--rw", "-d", "--dir", "--rw-create"])
def test_a_directory_can_be_made_writable(backend: str, person: Person, option: str) -> None:
    target = str(person.world.granted / "made")
    fenced = ["-m", "workspace-write", "--backend", backend]
    assert run(person, *fenced, "touch", target) != 0
    assert run(person, *fenced, option, str(person.world.granted), "touch", target) == 0
    assert run(person, *fenced, option, "../granted", "rm", target) == 0


@pytest.mark.parametrize("option", ["--rw", "-d", "--dir", "--rw-create"])
def test_without_a_mode_too_only_what_is_granted_is_the_real_one(person: Person, option: str) -> None:
    target = person.world.granted / "made"
    run(person, "touch", str(target))  # root is refused; for others it lands in a copy
    assert not target.exists()
    assert run(person, option, "../granted", "touch", str(target)) == 0
    assert target.exists()


def test_a_directory_that_is_missing_is_made_or_left_out_if_asked(backend: str, person: Person) -> None:
    new = person.world.home / "new/deep"
    assert run(person, "--backend", backend, "--rw-create", str(new), "touch", f"{new}/made") == 0
    assert (new / "made").exists()
    assert stat.S_IMODE(new.stat().st_mode) == 0o755
    assert run(person, "--backend", backend, "--ro-optional", "missing", "true") == 0
    assert not (person.project / "missing").exists()


@pytest.mark.parametrize("option", ["--ro", "-r", "--ro-optional"])
def test_a_directory_inside_can_be_made_read_only(person: Person, option: str) -> None:
    (person.project / "kept").mkdir()
    namespaces = ["--backend", "namespaces", option, "kept"]
    assert run(person, *namespaces, "touch", "kept/made") == 1
    assert run(person, *namespaces, "touch", "made") == 0
    message = person.is_refused("run", "--backend", "landlock", option, "kept", "true", code=125)
    assert "read-only-inside" in message


@pytest.mark.parametrize("option", ["--no-grant", "-x"])
def test_a_grant_can_be_taken_back(backend: str, person: Person, option: str) -> None:
    granted = str(person.world.granted)
    command = write(f"{granted}/made")
    fenced = ["-m", "workspace-write", "--backend", backend]
    assert run(person, *fenced, "--rw", granted, option, granted, *command) != 0
    person.configures(f'rw = ["{granted}"]\n')
    assert run(person, *fenced, *command) == 0
    assert run(person, *fenced, option, granted, *command) != 0


@pytest.mark.parametrize("option", ["--no-cwd", "-D"])
def test_the_working_directory_can_be_left_out(backend: str, person: Person, option: str) -> None:
    assert run(person, "--backend", backend, option, "touch", "made") != 0
    granted = str(person.world.granted)
    assert run(person, "--backend", backend, f"{option}", "-d", granted, "touch", f"{granted}/made") == 0
    assert run(person, "--backend", backend, "-Dd", granted, "touch", f"{granted}/made2") == 0


@pytest.mark.parametrize("option", ["--hide", "--mask"])
def test_a_path_can_be_hidden(person: Person, option: str) -> None:
    (person.project / "private").write_text(SECRET)
    (person.project / "plain").write_text("plain")
    namespaces = ["--backend", "namespaces", option, "./private"]
    assert SECRET not in person.types("run", *namespaces, "cat", "private").stdout
    assert person.reads("run", *namespaces, "cat", "plain") == "plain"
    assert "hidden" in person.is_refused(
        "run", "--backend", "landlock", option, "./private", "true", code=125
    )


@pytest.mark.parametrize("option", ["--unhide", "--unmask"])
def test_a_name_of_the_default_list_can_be_shown(person: Person, option: str) -> None:
    netrc = str(person.world.home / ".netrc")
    assert SECRET not in person.types("run", "--backend", "namespaces", "cat", netrc).stdout
    assert person.reads("run", "--backend", "namespaces", option, ".netrc", "cat", netrc) == SECRET


def test_only_globs_can_be_made_writable(backend: str, person: Person) -> None:
    words = ["--backend", backend, "--writable", "out/**", "--writable", "more/**"]
    assert run(person, *words, "sh", "-c", "touch out/a more/b && ! touch c") == 0
    assert sorted(os.listdir(person.project)) == ["more", "out"]


def test_variables_can_be_passed_set_and_dropped_and_the_last_word_counts(
    backend: str, person: Person
) -> None:
    person.variables |= {"A_TOKEN": "secret", "PLAIN": "plain", "PLAIN_TOO": "too"}

    def seen(*options: str) -> list[str]:
        script = 'echo "$A_TOKEN|$PLAIN|$PLAIN_TOO|$NEW|${HOME:+home}"'
        return person.reads("run", "--backend", backend, *options, "sh", "-c", script).strip().split("|")

    assert seen() == ["", "plain", "too", "", "home"]
    assert seen("--setenv", "A_TOKEN") == ["secret", "plain", "too", "", "home"]
    assert seen("--setenv", "NEW=a=b c", "--unsetenv", "PLAIN*") == ["", "", "", "a=b c", "home"]
    assert seen("--clean-env") == ["", "", "", "", "home"]
    assert seen("--clean-env", "--setenv", "PLAIN") == ["", "plain", "", "", "home"]
    assert seen("--setenv", "NEW=1", "--unsetenv", "N*") == ["", "plain", "too", "", "home"]
    assert seen("--unsetenv", "N*", "--setenv", "NEW=1") == ["", "plain", "too", "1", "home"]


def test_it_works_in_another_directory_if_told(backend: str, person: Person) -> None:
    granted = person.world.granted
    assert person.reads("run", "--backend", backend, "--cd", "../granted", "sh", "-c", "pwd; echo $PWD") == (
        f"{granted}\n{granted}\n"
    )
    assert run(person, "--backend", backend, "--cd", str(granted), "touch", "made") == 0
    fenced = ["-m", "workspace-write", "--backend", backend, "--cd", str(granted)]
    assert run(person, *fenced, "touch", "made") == 0
    assert run(person, *fenced, "touch", str(person.project / "made")) != 0


def test_the_network_is_open_for_a_person_unless_a_mode_or_they_say_otherwise(
    backend: str, person: Person
) -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = python(connect, str(server.getsockname()[1]))
        rows = {
            (): 0,
            ("--network", "off"): 1,
            ("-m", "workspace-write"): 1,
            ("-m", "workspace-write", "--network=open"): 0,
            ("-m", "read-only"): 1,
        }
        for words, code in rows.items():
            assert run(person, "--backend", backend, *words, *command) == code, words


def test_limits_are_held(backend: str, person: Person) -> None:
    def limited(limit: str, *command: str) -> subprocess.CompletedProcess[str]:
        return person.types("run", "--backend", backend, "--limit", limit, *command)

    assert limited("file-size=1K", "sh", "-c", "head -c 4096 /dev/zero > big").returncode != 0
    assert (person.project / "big").stat().st_size == 1024
    assert limited("open-files=20", "sh", "-c", "ulimit -n").stdout == "20\n"
    assert limited("cpu=9", "sh", "-c", "ulimit -t").stdout == "9\n"
    assert limited("wall=0.3", "sleep", "30").returncode == 124
    assert limited("memory=64M", *python("bytearray(256 << 20)")).returncode != 0
    assert limited("memory=256MiB", *python("bytearray(16 << 20)")).returncode == 0
    both = ["--limit", "processes=64", "--limit", "wall=20"]
    assert run(person, "--backend", "namespaces", *both, "true") == 0


def test_another_config_and_a_profile_of_it_can_be_named(person: Person, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('mode = "read-only"\n[profile.loose]\nmode = "workspace-write"\n')
    for option in (["-C", str(other)], ["--config", str(other)], [f"--config={other}"]):
        assert run(person, *option, "touch", "made") == 1
        assert run(person, *option, "--profile", "loose", "touch", "made") == 0
    assert "loose" in person.is_refused("run", "-C", str(other), "--profile", "lose", "true")


def test_a_descriptor_is_kept_only_if_asked(backend: str, person: Person) -> None:
    fd = os.open(person.world.home / ".profile", os.O_RDONLY)
    try:
        script = f"cat <&{fd}"
        words = ["run", "--backend", backend, "--keep-fd", str(fd), "bash", "-c", script]
        assert person.types(*words, pass_fds=[fd]).stdout == "plain"
        os.lseek(fd, 0, os.SEEK_SET)
        assert person.types("run", "--backend", backend, "bash", "-c", script, pass_fds=[fd]).returncode != 0
    finally:
        os.close(fd)


def test_quiet_help_and_json_are_taken_by_run_too(person: Person) -> None:
    assert person.reads("run", "-q", "--quiet", "echo", "a") == "a\n"
    assert person.reads("run", "--help").startswith("usage: corral run")
    assert person.reads("sh", "-h").startswith("usage: corral sh")


def test_degraded_accepts_the_best_tier_there_is_and_says_what_it_lacks(person: Person) -> None:
    person.configures('demand = ["keys", "metadata"]\n')
    landlock = ["--backend", "landlock"]
    message = person.is_refused("run", *landlock, "true", code=125)
    assert "(keys)" in message
    assert "(metadata)" in message
    outside = person.world.outside / "made"
    assert run(person, *landlock, "--degraded", *write("made")) == 0
    assert run(person, *landlock, "--degraded", *write(outside)) != 0
    lacks = person.reads_json("explain", "--json", *landlock, "--degraded", "true")["not_covered"]
    assert {"keys", "metadata"} <= set(lacks)
    assert person.reads("run", "--degraded", "echo", "ran") == "ran\n"


# ---- signals ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_sent_to_us_reaches_the_command(
    backend: str, person: Person, number: signal.Signals
) -> None:
    script = f"trap 'echo got; exit 9' {number.name[3:]}; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [CORRAL, "run", "--backend", backend, "sh", "-c", script],
        cwd=person.project,
        env=person.variables,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.read() == "got\n"
        assert process.wait(10) == 9


def test_when_we_are_killed_all_of_it_is_gone(backend: str, person: Person) -> None:
    mark = new_mark()
    script = "sleep 300 & setsid sleep 300 & echo up; wait"
    with subprocess.Popen(
        [CORRAL, "run", "--backend", backend, "sh", "-c", script, mark],
        cwd=person.project,
        env=person.variables,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.kill()
        assert process.stdout.read() == b""
    assert eventually(lambda: not carrying(mark), 2)
