"""Jail: the same interface on every backend that this host has."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from corral import (
    CommandNotFound,
    Grant,
    Jail,
    NotEnforceable,
    Policy,
    PolicyError,
    RunOpts,
    Sandbox,
    open_jail,
)
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail


class InPlaceOfSandboxExec:
    """There is no Mac here: what follows the profile runs under a fence of this kernel instead."""

    def __init__(self) -> None:
        self.fences: list[Sandbox] = []

    def __call__(self, path: str, argv: Sequence[str], env: Mapping[str, str], /, **how: Any) -> int:
        words = list(argv)
        root, *others = [word.partition("=")[2] for word in words if word.startswith("-DWRITABLE_ROOT_")]
        grants = tuple(Grant.rw(place) for place in others)
        policy = Policy.workspace_write(backend="landlock", environment=(), network="open", grants=grants)
        fence = Sandbox(policy, root)
        self.fences.append(fence)
        fenced = fence.wrap_argv(words[words.index("--") + 1 :])
        return os.posix_spawn(fenced[0], fenced, env, **how)


@pytest.fixture(params=["namespaces", "landlock", "seatbelt"])
def jail(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jail]:
    if request.param == "namespaces":
        skip_unless_host("user-namespaces")
    home = Path.home() if os.access(Path.home(), os.W_OK) else tmp_path
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    stand_in = InPlaceOfSandboxExec()
    runner = stand_in if request.param == "seatbelt" else None
    # On a Mac what leaves its process group lives on, which a policy has to accept.
    policy = Policy.workspace_write(network="open", require=runner is None)
    yield open_jail(request.param, policy, runner=runner)
    for fence in stand_in.fences:
        fence.close()


def script(line: str, **fields: Any) -> RunOpts:
    return RunOpts(None, ["bash", "-c", line], **fields)


def test_output_is_captured_as_bytes_and_standard_error_is_ours(
    jail: Jail, capfd: pytest.CaptureFixture[str]
) -> None:
    result = jail.run_capture(script("printf 'a\\0b'; echo err >&2"))
    assert result.stdout_bytes == b"a\0b"
    assert capfd.readouterr() == ("", "err\n")


def test_output_of_a_plain_run_is_our_terminals(jail: Jail, capfd: pytest.CaptureFixture[str]) -> None:
    result = jail.run(script("echo out; echo err >&2; exit 3"))
    assert (result.exit_code, result.stdout_bytes) == (3, b"")
    assert capfd.readouterr() == ("out\n", "err\n")


def test_what_must_not_be_written_is_not_and_what_may_is(jail: Jail, tmp_path: Path) -> None:
    jail.run(script(f"echo x > inside; echo x > {tmp_path}/outside"))
    assert (tmp_path / "work/inside").exists()
    assert not (tmp_path / "outside").exists()


def test_exit_codes_signals_and_time(jail: Jail) -> None:
    assert jail.run_capture(script("exit 7")).exit_code == 7
    killed = jail.run_capture(script("kill -TERM $$"))
    assert (killed.exit_code, killed.signal) == (143, signal.SIGTERM)
    late = jail.run_capture(script("echo begun; sleep 60"), timeout=0.3)
    assert (late.timed_out, late.over, late.stdout_bytes) == (True, "deadline", b"begun\n")
    assert late.duration < 20


def test_input_is_nothing_unless_it_is_given(jail: Jail) -> None:
    assert jail.run_capture(script("cat; echo end")).stdout == "end\n"
    given = b"x" * 300_000
    assert jail.run_capture(script("cat | wc -c", stdin=given)).stdout.strip() == "300000"
    assert jail.run_capture(script("exec true", stdin=given)).exit_code == 0


def test_the_key_and_variables_arrive_and_an_empty_key_is_no_variable(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of the caller")
    shown = jail.run_capture(script("env", env=["FOO=bar baz", "NOEQ"], api_key="k-1")).stdout
    assert "FOO=bar baz\n" in shown
    assert "ANTHROPIC_API_KEY=k-1\n" in shown
    assert "NOEQ" not in shown
    assert "ANTHROPIC" not in jail.run_capture(script("env", env={"A": "b"})).stdout


def test_a_flood_is_kept_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    jail = open_jail("landlock", Policy.workspace_write(output_limit=1000))
    result = jail.run_capture(script("head -c 5000 /dev/zero"))
    assert (len(result.stdout_bytes), result.stdout_truncated, result.stdout_bytes_dropped) == (
        1000,
        True,
        4000,
    )


def test_cancelling_from_another_thread_ends_it(jail: Jail) -> None:
    results: list[Any] = []
    runner = threading.Thread(
        target=lambda: results.append(jail.run_capture(script("touch ready; sleep 60")))
    )
    runner.start()
    while not os.path.exists("ready"):
        threading.Event().wait(0.01)
    jail.cancel()
    runner.join(20)
    assert (results[0].over, results[0].signal) == ("cancel", signal.SIGKILL)
    assert jail.run_capture(script("echo again")).stdout == "again\n"


def test_a_program_that_is_not_there(jail: Jail) -> None:
    if jail.backend == "seatbelt":  # a shell is between
        assert jail.run_capture(RunOpts(None, ["nosuch-program"])).exit_code == 127
    else:
        with pytest.raises(CommandNotFound):
            jail.run_capture(RunOpts(None, ["nosuch-program"]))


def test_the_runner_sees_what_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started: list[Sequence[str]] = []

    def record(path: str, argv: Sequence[str], env: Mapping[str, str], /, **how: Any) -> int:
        started.append(argv)
        return os.posix_spawn(path, list(argv), env, **how)

    open_jail("landlock", Policy.workspace_write(), runner=record).run(script("true"))
    ((program, *_),) = started
    assert program.endswith("corral-launch")


@pytest.mark.parametrize("entry", ["=value", "A\0B=c"])
def test_a_variable_that_cannot_be_one_is_refused(jail: Jail, entry: str) -> None:
    with pytest.raises(PolicyError):
        jail.run(script("true", env=[entry]))


def test_a_sandbox_exec_that_holds_nothing_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands for one that is there and does not enforce: commands run as they are."""
    monkeypatch.chdir(tmp_path)

    def pass_through(path: str, argv: Sequence[str], env: Mapping[str, str], /, **how: Any) -> int:
        words = list(argv)[list(argv).index("--") + 1 :]
        return os.posix_spawn(words[0], words, env, **how)

    jail = open_jail("seatbelt", Policy.workspace_write(require=False), runner=pass_through)
    with pytest.raises(NotEnforceable, match="a write outside was not refused"):
        jail.run(script("touch ran"))
    assert not (tmp_path / "ran").exists()


def test_what_seatbelt_cannot_hold_is_refused_unless_the_policy_accepts_it() -> None:
    with pytest.raises(NotEnforceable, match="a process can outlive its run"):
        open_jail("seatbelt", Policy.workspace_write(), runner=InPlaceOfSandboxExec())
    with pytest.raises(NotEnforceable, match="seatbelt has no mode strict"):
        open_jail("seatbelt", Policy.strict(require=False), runner=InPlaceOfSandboxExec())


def test_the_names_are_there_without_being_paid_for() -> None:
    import subprocess

    line = "import sys, corral; assert 'corral.jails' not in sys.modules; corral.open_jail"
    subprocess.run([sys.executable, "-c", line], check=True)
