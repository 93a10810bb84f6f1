"""Running commands: results, time, input, environment, working directory, and what is still running at the end."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cases import case
from corral import (
    CommandFailed,
    CommandNotExecutable,
    CommandNotFound,
    CommandTimeout,
    LaunchRefused,
    LocalEnvironment,
    Policy,
    PolicyError,
)
from hostfacts import skip_unless_host
from jail.world import World, carrying, new_mark, python

pytestmark = pytest.mark.jail


@pytest.fixture(params=["namespaces", "landlock", "off"])
def environment(request: pytest.FixtureRequest, world: World) -> Iterator[LocalEnvironment]:
    """Both tiers, and mode off: what holds for results holds without a jail too."""
    policy = Policy.off() if request.param == "off" else Policy.workspace_write(backend=request.param)
    with LocalEnvironment(world.workspace, policy) as made:
        yield made


# ---- results ----


@case("tracker-50")
def test_a_status_is_a_result(environment: LocalEnvironment) -> None:
    done = environment.run(["sh", "-c", "echo out; echo err >&2; exit 42"])
    assert (done.exit_code, done.signal, done.ok, done.timed_out) == (42, None, False, False)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert environment.run(["true"]).ok


def test_a_signal_is_a_result_as_a_shell_shows_it(environment: LocalEnvironment) -> None:
    done = environment.run(["sh", "-c", "kill -TERM $$"])
    assert (done.exit_code, done.signal) == (128 + signal.SIGTERM, signal.SIGTERM)


def test_a_check_raises_what_would_be_a_result(environment: LocalEnvironment) -> None:
    with pytest.raises(CommandFailed) as failed:
        environment.run(["sh", "-c", "echo said; exit 3"], check=True)
    assert (failed.value.result.exit_code, failed.value.result.stdout) == (3, "said\n")
    with pytest.raises(CommandTimeout):
        environment.run(["sleep", "10"], timeout=0.1, check=True)
    assert environment.run(["true"], check=True).ok


@case("tracker-51")
def test_a_command_that_outlives_its_time_is_ended_and_what_it_said_is_kept(
    environment: LocalEnvironment,
) -> None:
    started = time.monotonic()
    done = environment.run(["sh", "-c", "echo said; sleep 10"], timeout=0.1)
    assert time.monotonic() - started < 2
    assert (done.timed_out, done.stdout, done.ok) == (True, "said\n", False)
    assert 0.1 <= done.duration < 2


def test_a_command_that_ignores_signals_is_ended_all_the_same(environment: LocalEnvironment) -> None:
    done = environment.run(["sh", "-c", "trap '' TERM INT HUP; sleep 10 & wait; sleep 10"], timeout=0.1)
    assert done.timed_out
    assert done.duration < 2


def test_a_stopped_command_does_not_hang_the_call(environment: LocalEnvironment) -> None:
    done = environment.run(["sh", "-c", "kill -STOP $$"], timeout=0.3)
    assert done.timed_out
    assert done.duration < 2


def test_times_and_memory_are_reported(environment: LocalEnvironment) -> None:
    done = environment.run(python("sum(i * i for i in range(10**6))"))
    assert 0 < done.cpu_seconds < 30
    assert done.max_rss_kb > 1000


# ---- what cannot be run ----


def test_a_program_that_is_not_there_is_an_error_and_not_a_status(environment: LocalEnvironment) -> None:
    for missing in ("no-such-program", "./no-such-program", "/no/such/program", ""):
        with pytest.raises(CommandNotFound):
            environment.run([missing])
    assert issubclass(CommandNotFound, FileNotFoundError)


def test_a_file_that_is_no_program_is_an_error(environment: LocalEnvironment, world: World) -> None:
    (world.workspace / "data").write_text("data")
    for program in ("./data", "/etc"):
        with pytest.raises(CommandNotExecutable):
            environment.run([program])


def test_one_string_is_refused_and_the_way_out_is_named(environment: LocalEnvironment) -> None:
    with pytest.raises(TypeError, match=r"\.shell\(line\)"):
        environment.run("echo hello")
    assert environment.shell("echo hello | tr a-z A-Z").stdout == "HELLO\n"


@pytest.mark.parametrize("argv", [[], ["echo", "a\0b"]])
def test_what_is_no_command_is_refused(environment: LocalEnvironment, argv: list[str]) -> None:
    with pytest.raises(PolicyError):
        environment.run(argv)


def test_words_reach_the_command_as_they_are(environment: LocalEnvironment) -> None:
    words = ["--", "-n", "", " two  words ", "$HOME", "`id`", "*", "line\nbreak", "ü", "'\"\\"]
    show = "import sys; print(sys.argv[1:])"
    assert environment.run(python(show, *words)).stdout == f"{words}\n"
    assert environment.exec_command("printf", ["%s", "-x"]).stdout == "-x"


# ---- time and space for input and arguments ----


def test_standard_input_is_empty_unless_given(environment: LocalEnvironment) -> None:
    assert environment.run(["cat"]).stdout == ""
    assert environment.run(["cat"], stdin="text ü").stdout == "text ü"
    assert environment.run(["cat"], stdin=b"\xff\x00").stdout_bytes == b"\xff\x00"


def test_fifty_mebibytes_of_input_arrive(environment: LocalEnvironment) -> None:
    block = os.urandom(1 << 20)
    done = environment.run(["sha256sum"], stdin=block * 50)
    assert done.stdout.split()[0] == hashlib.sha256(block * 50).hexdigest()


def test_input_that_nobody_reads_is_no_error(environment: LocalEnvironment) -> None:
    assert environment.run(["true"], stdin=b"x" * (4 << 20)).ok
    assert environment.run(["head", "-c1"], stdin=b"xyz" * (1 << 20)).stdout == "x"


def test_input_and_output_flow_at_the_same_time(environment: LocalEnvironment) -> None:
    block = b"0123456789abcdef" * (1 << 18)
    assert environment.run(["cat"], stdin=block).stdout_bytes == block


def test_a_mebibyte_of_arguments_arrives(environment: LocalEnvironment) -> None:
    words = ["x" * 65536] * 16
    done = environment.run(python("import sys; print(sum(map(len, sys.argv[1:])))", *words))
    assert done.stdout == f"{16 * 65536}\n"


# ---- environment ----


@case("tracker-56")
def test_an_environment_that_is_given_replaces_the_callers(
    environment: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_CALLER", "x")
    given = {"PATH": "/usr/bin:/bin", "ONLY": "this", "A_TOKEN": "passed as it is"}
    seen = environment.run(["env"], env=given).stdout
    assert sorted(seen.splitlines()) == sorted(f"{name}={value}" for name, value in given.items())


def test_variables_are_added_and_nothing_else_changes(
    environment: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_CALLER", "kept")
    seen = environment.run(["env"], extra_env={"MY_TOKEN": "asked for"}).stdout.splitlines()
    assert {"FROM_CALLER=kept", "MY_TOKEN=asked for"} <= set(seen)


def test_the_names_that_were_taken_out_are_reported(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "x")
    with world.environment(backend) as environment:
        assert "MY_TOKEN" in environment.run(["true"]).removed
        assert environment.run(["true"], env={"PATH": "/bin"}).removed == ()


# ---- where ----


def test_a_working_directory_is_relative_to_the_root_or_absolute(
    environment: LocalEnvironment, world: World
) -> None:
    (world.workspace / "a/b").mkdir(parents=True)
    assert environment.run(["pwd"]).stdout == f"{world.workspace}\n"
    for cwd in ("a/b", str(world.workspace / "a/b"), "./a/../a/b"):
        assert environment.run(["pwd"], cwd=cwd).stdout == f"{world.workspace}/a/b\n"
    assert environment.run(["pwd"], cwd="/usr").stdout == "/usr\n"


@pytest.mark.parametrize("cwd", ["missing", "file"])
def test_a_working_directory_that_is_none_is_refused_by_name(
    environment: LocalEnvironment, world: World, cwd: str
) -> None:
    (world.workspace / "file").touch()
    with pytest.raises(PolicyError, match=cwd):
        environment.run(["true"], cwd=cwd)


def test_a_workspace_below_tmp_is_visible_and_writable(backend: str, world: World, tmp_path: Path) -> None:
    with LocalEnvironment(tmp_path, Policy.workspace_write(backend=backend)) as environment:
        assert environment.shell("echo x > made; pwd").stdout == f"{tmp_path}\n"
    assert (tmp_path / "made").read_text() == "x\n"


def test_a_workspace_with_an_odd_name_works(backend: str, world: World) -> None:
    odd = world.workspace / "a b'\"$(x)\n(ü)"
    odd.mkdir()
    with LocalEnvironment(odd, Policy.workspace_write(backend=backend)) as environment:
        assert environment.shell("echo x > made").ok
        assert not environment.shell("echo x > ../made").ok
    assert (odd / "made").exists()


# ---- what is still running at the end ----


def test_a_background_child_that_holds_the_output_neither_hangs_nor_fails_the_call(
    environment: LocalEnvironment,
) -> None:
    mark = new_mark()
    started = time.monotonic()
    done = environment.run(["sh", "-c", "sh -c 'sleep 300; :' \"$0\" & echo said", mark], timeout=20)
    assert time.monotonic() - started < 5
    assert (done.exit_code, done.stdout, done.timed_out) == (0, "said\n", False)
    assert carrying(mark) == []


HIDE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(64):
            try:
                os.close(fd)
            except OSError:
                pass
        time.sleep(300)
    os._exit(0)
"""


def test_what_left_the_session_and_closed_its_pipes_is_gone_too(environment: LocalEnvironment) -> None:
    mark = new_mark()
    assert environment.run(python(HIDE, mark)).ok
    assert carrying(mark) == []


def test_commands_run_at_once_from_many_threads(environment: LocalEnvironment) -> None:
    barrier = threading.Barrier(8)

    def run(number: int) -> str:
        barrier.wait(10)
        return environment.run(["sh", "-c", 'echo "$0"; cat', str(number)], stdin=f"in {number}").stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(32))) == [f"{n}\nin {n}" for n in range(32)]


def test_a_closed_environment_runs_nothing_and_leaves_no_temp_directory(
    environment: LocalEnvironment,
) -> None:
    environment.run(["true"])
    environment.close()
    environment.close()
    with pytest.raises(PolicyError, match="closed"):
        environment.run(["true"])


def test_the_private_temp_directory_lives_as_long_as_the_environment(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        made = environment.shell("f=$(mktemp) && echo kept > $f && echo $f").stdout.strip()
        assert environment.run(["cat", made]).stdout == "kept\n"
        assert environment.shell("mkdir -p ${TMPDIR:-/tmp}/d/e; chmod 000 ${TMPDIR:-/tmp}/d").ok
        parent = Path(os.environ.get("TMPDIR", "/tmp"), f"corral-{os.getuid()}")
        assert len(list(parent.iterdir())) >= 1
        before = set(parent.iterdir())
    assert len(before - set(parent.iterdir())) == 1


@pytest.mark.parametrize("network", ["open", "off"])
def test_from_its_second_run_on_an_environment_keeps_its_scene(world: World, network: str) -> None:
    """Also where the package lies in a directory that the scene covers, as in the ordinary user's run."""
    skip_unless_host("user-namespaces")
    with world.environment("namespaces", network=network) as environment:
        enclosure = environment._gate.enclosure
        for kept in (0, 1, 1, 1):
            assert environment.run(["true"]).exit_code == 0
            assert len(enclosure.grounds.idle) == kept
        (world.home / ".new-secret").mkdir()
        (world.workspace / "made").mkdir()
        assert environment.shell("ls").stdout == "made\n"
        first = enclosure.grounds.idle[0]
        world.workspace.rename(world.base / "moved")
        world.workspace.mkdir()
        with pytest.raises(LaunchRefused):
            environment.run(["true"])
        assert first not in enclosure.grounds
