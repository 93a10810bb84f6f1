"""What every environment must do, whatever stands behind it."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corral import (
    CommandFailed,
    CommandNotFound,
    CommandTimeout,
    ExecutionEnvironment,
    FileTooLarge,
    LocalEnvironment,
    PathEscape,
    PathNotAllowed,
    Policy,
    PolicyError,
    RecordingEnvironment,
    SensitivePath,
)
from corral.environment.files import Entry
from leaks import no_leaks

pytestmark = pytest.mark.jail

KINDS = {"local": LocalEnvironment, "recording": RecordingEnvironment}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[LocalEnvironment]:
    return KINDS[request.param]


@pytest.fixture
def env(kind: type[LocalEnvironment], tmp_path: Path) -> Iterator[ExecutionEnvironment]:
    root = tmp_path / "odd [name]*"  # its own characters are no pattern
    root.mkdir()
    with no_leaks(tmp_path), kind(root) as made:
        yield made
        for entry in made.list_dir():
            (made.remove_tree if entry.kind == "directory" else made.remove_file)(entry.name)


def test_it_is_an_execution_environment_and_says_where_it_works(env: ExecutionEnvironment) -> None:
    assert isinstance(env, ExecutionEnvironment)
    assert env.working_dir == env.run(["pwd"]).stdout.rstrip("\n")
    assert env.posture.mode == "workspace-write"


@pytest.mark.parametrize("content", ["text\r\nä\n", b"\xff\0bytes", bytearray(b"x"), memoryview(b"xyz")])
def test_what_is_written_is_read_back(env: ExecutionEnvironment, content: str | bytes) -> None:
    raw = content.encode() if isinstance(content, str) else bytes(content)
    assert env.write_file("new/dir/f", content) == len(raw)
    assert env.read_bytes("new/dir/f") == raw
    assert env.run(["cat", "new/dir/f"]).stdout_bytes == raw
    if isinstance(content, str):
        assert env.read_file("new/dir/f") == content


def test_content_may_be_something_to_read_from(env: ExecutionEnvironment) -> None:
    env.write_file("text", io.StringIO("täxt"), encoding="latin-1")
    env.write_file("bytes", io.BytesIO(b"\xff" * 3_000_000))
    assert env.read_bytes("text") == b"t\xe4xt"
    assert env.read_file("text", encoding="latin-1") == "täxt"
    assert env.stat("bytes").st_size == 3_000_000
    with env.open("bytes", "rb") as source:
        env.write_file("copy", source)
    assert env.read_bytes("copy") == b"\xff" * 3_000_000


def test_a_file_is_opened_for_reading_and_for_writing(env: ExecutionEnvironment) -> None:
    with env.open("f", "w", encoding="utf-16") as writing:
        writing.write("one\n")
        writing.writelines(["two\n", "three"])
        assert not os.path.exists(f"{env.working_dir}/f")
    with env.open("f", encoding="utf-16") as reading:
        assert reading.readlines() == ["one\n", "two\n", "three"]
    with env.open("f", "wb") as raw:
        raw.write(b"\0")
    with env.open("f", "rb") as back:
        assert back.read() == b"\0"
    with pytest.raises(ZeroDivisionError), env.open("f", "w") as broken:
        broken.write("half")
        raise ZeroDivisionError
    assert env.read_bytes("f") == b"\0"
    with pytest.raises(ValueError, match="mode 'a'"):
        env.open("f", "a")  # type: ignore[call-overload]


def test_a_write_can_be_asked_to_create_only(env: ExecutionEnvironment) -> None:
    env.write_file("f", "one", existing="refuse")
    with pytest.raises(FileExistsError):
        env.write_file("f", "two", existing="refuse")
    with pytest.raises(FileExistsError):
        env.open("f", "x")
    with env.open("g", "x") as handle:
        handle.write("two")
        env.run(["sh", "-c", "echo theirs > g"], check=True)
        with pytest.raises(FileExistsError):
            handle.close()
    assert (env.read_file("f"), env.read_file("g")) == ("one", "theirs\n")


def test_files_are_moved_listed_walked_found_and_removed(env: ExecutionEnvironment) -> None:
    for name in ("a/b/c.py", "a/d.py", "e.txt", ".hidden"):
        env.write_file(name, name)
    env.make_dir("empty/deep")
    env.make_dir("empty/deep")
    os.symlink("a", f"{env.working_dir}/link")
    assert env.list_dir() == [
        Entry(".hidden", "file"),
        Entry("a", "directory"),
        Entry("e.txt", "file"),
        Entry("empty", "directory"),
        Entry("link", "link"),
    ]
    assert env.glob("**/*.py") == ["a/b/c.py", "a/d.py"]
    assert env.glob("*.txt") == ["e.txt"]
    assert env.glob("[") == []
    walked = {top: (sorted(below), sorted(name for name, _ in files)) for top, below, files in env.walk("a")}
    assert walked == {"a": (["b"], ["d.py"]), "a/b": ([], ["c.py"])}
    assert stat.S_ISDIR(env.stat("link").st_mode)
    env.rename("e.txt", "a/e.txt")
    env.rename("a", "moved")
    assert env.read_file("moved/e.txt") == "e.txt"
    with pytest.raises(FileExistsError):
        env.rename("moved/e.txt", ".hidden", existing="refuse")
    env.remove_file("link")
    env.remove_tree("moved")
    assert env.glob("*") == [".hidden", "empty"]
    with pytest.raises(FileNotFoundError):
        env.remove_file("gone")
    with pytest.raises(FileNotFoundError):
        env.remove_tree("gone")


def test_refusals_are_typed_are_built_ins_and_leave_nothing(env: ExecutionEnvironment) -> None:
    os.symlink("/", f"{env.working_dir}/link")
    for path, refusal, built_in in (
        ("../f", PathEscape, PermissionError),
        ("/etc/f", PathEscape, PermissionError),
        ("link/f", PathEscape, PermissionError),
        ("new/.ssh/f", SensitivePath, PermissionError),
        ("", PathEscape, ValueError),
        ("corral.toml", PathNotAllowed, PermissionError),
    ):
        with pytest.raises(refusal) as caught:
            env.write_file(path, "x")
        assert isinstance(caught.value, built_in)
        assert caught.value.path == path
    env.make_dir("d")
    with pytest.raises(IsADirectoryError):
        env.write_file("d", "x")
    with pytest.raises(FileNotFoundError):
        env.read_file("missing")
    env.write_file("f", "12345")
    with pytest.raises(FileTooLarge):
        env.read_bytes("f", limit=4)
    assert [entry.name for entry in env.list_dir()] == ["d", "f", "link"]
    assert os.listdir(f"{env.working_dir}/d") == []


def test_a_file_that_is_not_for_writing_stays(env: ExecutionEnvironment) -> None:
    env.write_file("f", "old")
    os.chmod(f"{env.working_dir}/f", 0o444)
    with pytest.raises(PermissionError):
        env.write_file("f", "new")
    assert env.read_file("f") == "old"


def test_commands_run_there_and_their_end_is_a_result(env: ExecutionEnvironment) -> None:
    done = env.run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin="in")
    assert (done.stdout, done.stderr, done.exit_code, done.ok) == ("in", "err\n", 3, False)
    assert env.shell("echo $0 $X", extra_env={"X": "y"}).stdout == "bash y\n"
    assert env.exec_command("echo", ["a b"], env={"PATH": "/usr/bin:/bin"}).stdout == "a b\n"
    env.make_dir("below")
    assert env.run(["pwd"], cwd="below").stdout == f"{env.working_dir}/below\n"
    assert env.run(["sleep", "60"], timeout=0.1).timed_out
    flood = env.run(["sh", "-c", "yes | head -c 5000"], output_limit=1000, stderr="merged")
    assert (len(flood.stdout_bytes), flood.stdout_bytes_dropped) == (1000, 4000)
    calls: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: env.run(["false"], check=True), CommandFailed),
        (lambda: env.run(["sleep", "60"], timeout=0.1, check=True), CommandTimeout),
        (lambda: env.run(["no-such-program"]), CommandNotFound),
        (lambda: env.run("echo x"), TypeError),
        (lambda: env.run([]), PolicyError),
    ]
    for call, error in calls:
        with pytest.raises(error):
            call()


def test_nothing_works_after_it_is_closed(kind: type[LocalEnvironment], tmp_path: Path) -> None:
    env = kind(tmp_path, Policy.off())
    env.close()
    env.close()
    uses: list[Callable[[], object]] = [
        lambda: env.run(["true"]),
        lambda: env.read_file("x"),
        lambda: env.write_file("x", ""),
    ]
    for use in uses:
        with pytest.raises(PolicyError, match="closed"):
            use()
    assert os.listdir(tmp_path) == []


def test_the_recording_one_says_what_it_was_asked_and_what_came_of_it(tmp_path: Path) -> None:
    with RecordingEnvironment(tmp_path, Policy.off()) as env:
        env.write_file("f", "x", existing="refuse")
        env.shell("cat f", timeout=30)
        with pytest.raises(FileNotFoundError):
            env.read_file("missing")
        with env.start(["true"]) as process:
            process.wait()
        assert [call.name for call in env.calls] == ["write_file", "shell", "read_file", "start"]
        write, shell, read, _ = env.calls
        assert (write.args, write.options, write.result) == (("f", "x"), {"existing": "refuse"}, 1)
        assert shell.options == {"timeout": 30}
        assert getattr(shell.result, "stdout", None) == "x"
        assert isinstance(read.error, FileNotFoundError)
        assert env.called("shell") == [shell]
