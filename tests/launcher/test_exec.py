"""The last steps: chdir, session, finding the program, and the codes for one that cannot be run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.jail.host import launcher_path
from hostfacts import skip_unless_host
from launcher.driver import (
    KEEPERS,
    NOT_EXECUTABLE,
    NOT_FOUND,
    Finished,
    Watched,
    launch,
    namespaces,
    opened,
    python,
    refused_step,
)

pytestmark = pytest.mark.jail

EPERM, ENOENT, ENOEXEC, EACCES, ENOTDIR = 1, 2, 8, 13, 20


@pytest.fixture(params=["in place", *KEEPERS])
def keeper(request: pytest.FixtureRequest) -> list[object]:
    if request.param == "init":
        skip_unless_host("user-namespaces")
    plan: list[object] = list(KEEPERS.get(request.param, []))
    return plan


def program(directory: Path, name: str, *, mode: int = 0o755, content: str = "#!/bin/sh\necho $0\n") -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text(content)
    file.chmod(mode)
    return file


def lookup(name: str, *directories: Path | str, **options: object) -> Finished:
    return launch([], [name], env={"PATH": ":".join(map(str, directories))}, **options)


# ---- codes ----


@pytest.mark.parametrize("code", [0, 1, 2, 42, 125, 126, 127, 255])
def test_the_exit_code_is_the_commands_own(code: int, keeper: list[object]) -> None:
    done = launch(keeper, ["sh", "-c", f"exit {code}"])
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_command_that_is_not_there_is_127_and_one_line(keeper: list[object]) -> None:
    for name in ("no-such-program", "/no/such/program", "./no-such-program"):
        done = launch(keeper, [name])
        assert (done.returncode, done.stdout) == (NOT_FOUND, b"")
        assert done.stderr == f"corral: {name}: not found\n".encode()


def test_a_command_that_cannot_be_run_is_126_and_one_line(keeper: list[object], tmp_path: Path) -> None:
    plain = program(tmp_path, "plain", mode=0o644)
    done = launch(keeper, [plain])
    assert (done.returncode, done.stderr) == (NOT_EXECUTABLE, f"corral: {plain}: not executable\n".encode())
    assert launch(keeper, [tmp_path]).returncode == NOT_EXECUTABLE
    nonsense = program(tmp_path, "nonsense", content="\x7fELF nonsense")
    done = launch(keeper, [nonsense])
    assert (done.returncode, done.stderr) == (NOT_EXECUTABLE, f"corral: {nonsense}: cannot be run\n".encode())


@pytest.mark.parametrize("kind", list(KEEPERS))
def test_an_exec_that_failed_is_the_step_after_the_last(kind: str, tmp_path: Path) -> None:
    if kind == "init":
        skip_unless_host("user-namespaces")
    keeper = KEEPERS[kind]
    count = {"supervise": 1, "unscoped": 1, "init": 6}[kind]
    for command, error in (
        ("no-such-program", ENOENT),
        (str(program(tmp_path, "plain", mode=0o644)), EACCES),
    ):
        with Watched(keeper, [command]) as run:
            assert run.lines() == [f"fail {2 + count} {error}"]
            assert run.process.wait(10) == 125


def test_an_empty_command_name_is_not_found(keeper: list[object]) -> None:
    assert launch(keeper, [""]).returncode == NOT_FOUND


def test_a_script_whose_interpreter_is_missing_is_not_found(tmp_path: Path) -> None:
    script = program(tmp_path, "script", content="#!/no/such/interpreter\n")
    assert launch([], [script]).returncode == NOT_FOUND


# ---- PATH ----


def test_directories_are_searched_in_order(tmp_path: Path) -> None:
    for name in ("first", "second"):
        program(tmp_path / name, "tool")
    assert (
        lookup("tool", tmp_path / "first", tmp_path / "second").stdout.decode() == f"{tmp_path}/first/tool\n"
    )
    assert (
        lookup("tool", tmp_path / "second", tmp_path / "first").stdout.decode() == f"{tmp_path}/second/tool\n"
    )


def test_a_file_that_is_not_executable_does_not_end_the_search(tmp_path: Path) -> None:
    program(tmp_path / "first", "tool", mode=0o644)
    (tmp_path / "second" / "tool").mkdir(parents=True)
    program(tmp_path / "third", "tool")
    found = lookup("tool", tmp_path / "first", tmp_path / "second", tmp_path / "third")
    assert found.stdout.decode() == f"{tmp_path}/third/tool\n"
    assert lookup("tool", tmp_path / "first", tmp_path / "empty").returncode == NOT_EXECUTABLE
    assert lookup("tool", tmp_path / "empty").returncode == NOT_FOUND


def test_what_is_no_directory_is_passed_over(tmp_path: Path) -> None:
    file = program(tmp_path, "file")
    program(tmp_path / "bin", "tool")
    assert lookup("tool", file, "/no/such/directory", "x" * 5000, tmp_path / "bin").returncode == 0


def test_an_empty_element_is_the_working_directory(tmp_path: Path) -> None:
    program(tmp_path, "tool")
    for path in ("", ":/nowhere", "/nowhere:", "/nowhere::/nowhere2"):
        assert launch([], ["tool"], env={"PATH": path}, cwd=tmp_path).returncode == 0, path
    assert launch([], ["tool"], env={"PATH": "/nowhere"}, cwd=tmp_path).returncode == NOT_FOUND


def test_a_name_with_a_slash_is_not_searched_for(tmp_path: Path) -> None:
    program(tmp_path, "tool")
    assert launch([], ["./tool"], env={"PATH": "/nowhere"}, cwd=tmp_path).returncode == 0
    assert launch([], ["./tool"], env={"PATH": str(tmp_path)}, cwd="/").returncode == NOT_FOUND


def test_without_a_path_the_usual_places_are_searched() -> None:
    assert launch([], ["true"], env={}).returncode == 0


def test_the_search_takes_place_inside(tmp_path: Path) -> None:
    """A directory that is covered inside is searched as the jail shows it."""
    skip_unless_host("user-namespaces")

    program(tmp_path / "bin", "tool")
    cover = ["mount", 0, "tmpfs", "", 0, *opened(1, tmp_path / "bin"), "attach", 0, 1]
    env = {"PATH": str(tmp_path / "bin")}
    assert launch([*namespaces("mnt"), "init"], ["tool"], env=env).returncode == 0
    assert launch([*namespaces("mnt"), *cover, "init"], ["tool"], env=env).returncode == NOT_FOUND


def test_the_command_is_called_by_the_name_it_was_given(tmp_path: Path) -> None:
    assert launch([], ["sh", "-c", "tr '\\0' '|' < /proc/$$/cmdline", "a b", ""]).stdout.endswith(b"|a b||")


# ---- chdir, session, signals ----


def test_the_command_works_in_the_directory_of_the_slot(tmp_path: Path, keeper: list[object]) -> None:
    done = launch([*opened(0, tmp_path), *keeper, "chdir", 0], ["sh", "-c", "pwd; touch made"])
    assert done.stdout.decode().strip() == str(tmp_path)
    assert (tmp_path / "made").exists()
    assert launch([], ["pwd"]).stdout.decode().strip() == os.getcwd()


def test_a_working_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = launch([*opened(0, tmp_path / "file", 0o100000), "chdir", 0], ["true"])
    assert refused_step(done) == (1, ENOTDIR)


def test_a_session_of_its_own_is_not_the_callers() -> None:
    show = python("import os; print(os.getsid(0))")
    ours = str(os.getsid(0)).encode()
    assert launch([], show).stdout.strip() == ours
    assert launch(["session"], show).stdout.strip() != ours
    assert launch(["session", "supervise", 0], show).stdout.strip() != ours


def test_a_leader_of_a_group_cannot_begin_a_session() -> None:
    assert refused_step(launch(["session"], ["true"], start_new_session=True)) == (0, EPERM)


def test_the_command_gets_the_signal_mask_the_launcher_was_started_with(keeper: list[object]) -> None:
    show = python("import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))")
    assert launch(keeper, show).stdout == b"[]\n"
    masked = python(
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [10, 12])\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )

    done = launch([], [*masked, launcher_path(), *map(str, keeper), "--", *show])
    assert done.stdout == b"[10, 12]\n"
