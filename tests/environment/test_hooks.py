"""What the host does itself: wrapping commands, opening files for writing, removing them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cases import case
from corral import (
    AsyncLocalEnvironment,
    Command,
    HookError,
    LocalEnvironment,
    PathEscape,
    PathNotAllowed,
    Policy,
    SensitivePath,
    open_for_write,
    remove_beneath,
)
from corral.files.atomic import Pending
from corral.paths.beneath import Anchor
from leaks import no_leaks

pytestmark = pytest.mark.jail

ECHO = ["echo", "plain"]

# Every way to start a command, each returning what it printed.
WAYS: dict[str, Callable[[LocalEnvironment], str]] = {
    "run": lambda env: env.run(ECHO).stdout,
    "shell": lambda env: env.shell("echo plain").stdout,
    "exec_command": lambda env: env.exec_command("echo", ["plain"]).stdout,
    "start": lambda env: _waited(env.start(ECHO)),
    "background": lambda env: env.background("job", ECHO).wait().stdout,
}


def _waited(process: Any) -> str:
    with process:
        return str(process.wait().stdout)


class Wrapper:
    """Puts `env` and a variable of its own before every command."""

    def __init__(self) -> None:
        self.seen: list[Command] = []

    def __call__(self, command: Command) -> Command:
        self.seen.append(command)
        command.argv = ["env", "WRAPPED=yes", *command.argv]
        command.env["ADDED"] = "by wrapper"
        return command


@pytest.fixture(params=["off", "namespaces", "landlock"])
def policy(request: pytest.FixtureRequest) -> Policy:
    return Policy.off() if request.param == "off" else Policy.workspace_write(backend=request.param)


@pytest.mark.parametrize("way", WAYS)
def test_the_wrapper_sees_every_command_however_it_is_started(
    way: str, policy: Policy, tmp_path: Path
) -> None:
    wrapper = Wrapper()
    with no_leaks(), LocalEnvironment(tmp_path, policy, command_wrapper=wrapper) as env:
        assert WAYS[way](env) == "plain\n"
    (command,) = wrapper.seen
    assert command.argv[-1].endswith("plain")
    assert command.cwd == os.path.realpath(tmp_path)
    assert "PATH" in command.env


def test_all_is_settled_when_the_wrapper_is_called_and_what_it_changes_counts(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    wrapper = Wrapper()
    with LocalEnvironment(tmp_path, command_wrapper=wrapper) as env:
        line = 'echo "$WRAPPED $ADDED $GIVEN $PWD"'
        done = env.shell(line, cwd="below", extra_env={"GIVEN": "x"}, timeout=30)
        assert done.stdout == f"yes by wrapper x {os.path.realpath(tmp_path)}/below\n"
        (command,) = wrapper.seen
        assert (command.cwd, command.timeout, command.terminal) == (
            os.path.realpath(tmp_path / "below"),
            30,
            False,
        )
        assert command.env["GIVEN"] == "x"
        with env.start(["true"], pty=True) as process:
            assert process.wait().exit_code == 0
        assert wrapper.seen[-1].terminal


def test_the_jail_holds_whatever_the_wrapper_does(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def elsewhere(command: Command) -> Command:
        command.argv = ["sh", "-c", f"echo x > {tmp_path}/outside; echo x > inside"]
        command.timeout = 1e9
        return command

    limited = Policy.workspace_write().replace(limits=Policy().limits.replace(wall=20))
    with LocalEnvironment(work, limited, command_wrapper=elsewhere) as env:
        env.run(["true"])
    assert (work / "inside").exists()
    assert not (tmp_path / "outside").exists()


@case("tracker-49")
@pytest.mark.parametrize("way", WAYS)
def test_another_command_object_from_the_wrapper_is_an_error_and_nothing_runs(
    way: str, tmp_path: Path
) -> None:
    def another(command: Command) -> Command:
        return Command(["touch", "ran"], command.cwd, command.env, None, terminal=False)

    with no_leaks(), LocalEnvironment(tmp_path, command_wrapper=another) as env:
        with pytest.raises(HookError, match="return the object it was given") as caught:
            WAYS[way](env)
        assert isinstance(caught.value, TypeError)
    assert os.listdir(tmp_path) == []


def test_the_async_twin_has_the_same_hooks(tmp_path: Path) -> None:
    wrapper, opened, removed = Wrapper(), [], []

    def opener(anchor: Anchor, path: str, mode: Any) -> Pending:
        opened.append((path, mode))
        return open_for_write(anchor, path, mode)

    def remover(anchor: Anchor, path: str) -> None:
        removed.append(path)
        remove_beneath(anchor, path)

    async def use() -> None:
        async with AsyncLocalEnvironment(
            tmp_path, command_wrapper=wrapper, opener=opener, remover=remover
        ) as env:
            assert (await env.run(ECHO)).stdout == "plain\n"
            async with await env.start(ECHO) as process:
                await process.wait()
            await (await env.background("job", ECHO)).wait()
            await env.write_file("f", "x")
            await env.remove_file("f")

    anyio.run(use)
    assert len(wrapper.seen) == 3
    assert (opened, removed) == ([("f", "w")], ["f"])


# ---- files ----


class Gatekeeper:
    """Opens and removes by the default functions, but only what is not called secret."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str, str]] = []
        self.removed: list[tuple[str, str]] = []

    def refuse(self, path: str) -> None:
        if "secret" in path:
            raise PathNotAllowed(f"{path} is the host's", path=path, rule="host")

    def open(self, anchor: Anchor, path: str, mode: Any) -> Pending:
        self.opened.append((anchor.path, path, mode))
        self.refuse(path)
        return open_for_write(anchor, path, mode)

    def remove(self, anchor: Anchor, path: str) -> None:
        self.removed.append((anchor.path, path))
        self.refuse(path)
        remove_beneath(anchor, path)


@pytest.fixture
def keeper() -> Gatekeeper:
    return Gatekeeper()


def guarded(root: Path, keeper: Gatekeeper, policy: Policy | None = None) -> LocalEnvironment:
    return LocalEnvironment(root, policy, opener=keeper.open, remover=keeper.remove)


def test_the_opener_is_told_anchor_path_and_mode_and_what_it_opens_is_put_in_place(
    tmp_path: Path, keeper: Gatekeeper
) -> None:
    root = os.path.realpath(tmp_path)
    with no_leaks(), guarded(tmp_path, keeper) as env:
        env.write_file("new/dir/f", "one")
        env.write_file(f"{root}/g", "two", existing="refuse")
        with env.open("h", "xb") as file:
            file.write(b"three")
        with pytest.raises(FileExistsError):
            env.write_file("g", "again", existing="refuse")
    assert keeper.opened == [
        (root, "new/dir/f", "w"),
        (root, "g", "x"),
        (root, "h", "x"),
        (root, "g", "x"),
    ]
    assert (tmp_path / "new/dir/f").read_text() + (tmp_path / "g").read_text() == "onetwo"
    assert sorted(os.listdir(tmp_path)) == ["g", "h", "new"]


def test_what_the_opener_refuses_leaves_not_even_a_directory(tmp_path: Path, keeper: Gatekeeper) -> None:
    with no_leaks(), guarded(tmp_path, keeper) as env:
        for write in (lambda: env.write_file("secret/f", "x"), lambda: env.open("secret/f", "w")):
            with pytest.raises(PathNotAllowed, match="the host's"):
                write()
    assert os.listdir(tmp_path) == []


def test_no_hook_is_asked_about_what_the_policy_refuses(tmp_path: Path, keeper: Gatekeeper) -> None:
    (tmp_path / ".env").write_text("x")
    with guarded(tmp_path, keeper, Policy.workspace_write(writable=["out/**"])) as env:
        for path, refusal in (
            ("other/f", PathNotAllowed),
            (".env", SensitivePath),
            ("../f", PathEscape),
            (".", PathEscape),
        ):
            with pytest.raises(refusal):
                env.write_file(path, "x")
            with pytest.raises(refusal):
                env.remove_file(path)
        env.write_file("out/f", "x")
    assert [path for _, path, _ in keeper.opened] == ["out/f"]
    assert keeper.removed == []


@pytest.mark.parametrize("answer", ["nothing", "elsewhere"])
def test_an_opener_that_opens_something_else_is_an_error_and_writes_nothing(
    answer: str, tmp_path: Path
) -> None:
    def opener(anchor: Anchor, _path: str, mode: Any) -> Any:
        return None if answer == "nothing" else open_for_write(anchor, "made/elsewhere", mode)

    with (
        no_leaks(),
        LocalEnvironment(tmp_path, opener=opener) as env,
        pytest.raises(HookError, match="did not open f"),
    ):
        env.write_file("f", "x")
    assert os.listdir(tmp_path) == []


def test_the_remover_removes_and_what_it_refuses_stays(tmp_path: Path, keeper: Gatekeeper) -> None:
    root = os.path.realpath(tmp_path)
    for name in ("f", "secret"):
        (tmp_path / name).write_text("x")
    with guarded(tmp_path, keeper) as env:
        env.remove_file("f")
        with pytest.raises(PathNotAllowed, match="the host's"):
            env.remove_file("secret")
        with pytest.raises(FileNotFoundError):
            env.remove_file("f")
    assert keeper.removed == [(root, "f"), (root, "secret"), (root, "f")]
    assert os.listdir(tmp_path) == ["secret"]


def test_no_other_method_goes_past_the_hooks(tmp_path: Path, keeper: Gatekeeper) -> None:
    for name in ("d/sub/f", "d/secret", "moving", "secret"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with guarded(tmp_path, keeper) as env:
        with pytest.raises(PathNotAllowed, match="the host's"):
            env.remove_tree("d")
        with pytest.raises(PathNotAllowed, match="the host's"):
            env.rename("moving", "secret-now")
        with pytest.raises(PathNotAllowed, match="the host's"):
            env.rename("secret", "open")
        with pytest.raises(IsADirectoryError):
            env.rename("d", "e")
        env.rename("moving", "moved")
        assert env.read_file("moved") == "moving"
    assert (tmp_path / "d/secret").exists()
    assert (tmp_path / "secret").exists()
    assert not (tmp_path / "moving").exists()
    assert not (tmp_path / "secret-now").exists()


def test_a_hook_that_cannot_be_called_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("command_wrapper", "opener", "remover"):
        options: dict[str, Any] = {name: "no"}
        with pytest.raises(HookError, match="something to call"):
            LocalEnvironment(tmp_path, **options)
