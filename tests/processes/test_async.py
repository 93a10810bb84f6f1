"""The async twin: the same names, awaited, on asyncio and on trio. Nothing is spawned on the loop."""

from __future__ import annotations

import functools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from corral import (
    PIPE,
    AsyncLocalEnvironment,
    CommandFailed,
    CommandNotFound,
    InputClosed,
    JobExists,
    LocalEnvironment,
    NotEnforceable,
    PathEscape,
    Policy,
    PolicyError,
    StillRunning,
)
from corral.environment import aio
from corral.jail.foreign import spawn
from jail.world import PYTHON, World, carrying, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

FLOOD = 100 << 20
TREE = (
    "sleep 300 & setsid sh -c 'sleep 300; :' \"$0\" & (sh -c 'sleep 300; :' \"$0\" &) ; echo up; sleep 300; :"
)


def on(loop: str, body: Callable[[], Awaitable[None]]) -> None:
    anyio.run(body, backend=loop)


def jailed(world: World, backend: str, **fields: Any) -> AsyncLocalEnvironment:
    return AsyncLocalEnvironment(world.workspace, Policy(backend=backend, **fields))  # type: ignore[arg-type]


async def eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    with anyio.move_on_after(seconds):
        while not holds():
            await anyio.sleep(0.01)
        return True
    return False


# ---- the same as the other ----


def test_a_command_runs_and_comes_back_with_the_same_result(loop: str, backend: str, world: World) -> None:
    async def body() -> None:
        async with jailed(world, backend) as environment:
            done = await environment.run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin="in")
            assert (done.exit_code, done.stdout, done.stderr) == (3, "in", "err\n")
            assert done.posture == environment.posture
            assert (await environment.shell("echo $((1 + 1))")).stdout == "2\n"
            assert (await environment.exec_command("echo", ["a", "b"])).stdout == "a b\n"
            assert (await environment.run(["sleep", "300"], timeout=0.2)).timed_out
            assert (await environment.plan(["true"])).backend == backend
            with pytest.raises(CommandFailed):
                await environment.run(["false"], check=True)
            with pytest.raises(CommandNotFound):
                await environment.run(["no-such-command"])
            with pytest.raises(TypeError, match="shell"):
                await environment.run("echo hi")
        with pytest.raises(PolicyError, match="closed"):
            await environment.run(["true"])

    with no_leaks(world.base):
        on(loop, body)


def test_every_public_name_of_the_one_is_a_name_of_the_other() -> None:
    names = {name for name in dir(LocalEnvironment) if not name.startswith("_")}
    assert names - {name for name in dir(AsyncLocalEnvironment) if not name.startswith("_")} == set()


def test_the_variables_are_those_that_a_command_gets(
    loop: str, backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN", "plain")
    monkeypatch.setenv("A_TOKEN", "secret")

    async def body() -> None:
        async with jailed(world, backend) as environment:
            offered = await environment.variables()
            assert (offered["PLAIN"], "A_TOKEN" in offered) == ("plain", False)
            seen = (await environment.run(["env", "-0"])).stdout
            assert dict(row.split("=", 1) for row in seen.split("\0") if row) == offered

    on(loop, body)


def test_files_are_the_same_for_both_halves_and_refused_alike(loop: str, backend: str, world: World) -> None:
    async def body() -> None:
        async with jailed(world, backend) as environment:
            assert await environment.write_file("a/note", "hello") == 5
            assert (await environment.run(["cat", "a/note"])).stdout == "hello"
            assert await environment.read_file("a/note") == "hello"
            assert [entry.name for entry in await environment.list_dir("a")] == ["note"]
            with pytest.raises(PathEscape):
                await environment.write_file("../out", "x")
            await environment.remove_tree("a")
            assert await environment.glob("**") == []

    on(loop, body)


def test_output_comes_as_it_is_printed_and_input_is_written(loop: str, backend: str, world: World) -> None:
    async def body() -> None:
        script = "echo one; read line; echo two >&2; read line; echo three"
        async with jailed(world, backend) as environment:
            async with await environment.start(["sh", "-c", script], stdin=PIPE) as process:
                assert await process.read(10) == ("stdout", b"one\n")
                with pytest.raises(StillRunning):
                    await process.read(0.05)
                await process.write("go\n")
                assert await process.read(10) == ("stderr", b"two\n")
                await process.write("go\n")
                assert [output async for output in process] == [("stdout", b"three\n")]
                assert (await process.wait()).exit_code == 0
            with pytest.raises(CommandNotFound):
                await environment.start(["no-such-command"])

    with no_leaks(world.base):
        on(loop, body)


def test_a_terminal_has_a_size_and_is_interrupted(loop: str, backend: str, world: World) -> None:
    async def body() -> None:
        async with jailed(world, backend) as environment:
            async with await environment.start(["sh", "-c", "stty size; exec cat"], pty=True) as process:
                assert await process.read(10) == ("stdout", b"24 80\r\n")
                await process.write("\x03")
                assert (await process.wait(10)).signal == signal.SIGINT
            async with await environment.start(["sh", "-c", "read x; stty size"], pty=True) as process:
                process.resize(10, 20)
                await process.write("\n")
                assert (await process.wait(10)).stdout.endswith("10 20\r\n")

    on(loop, body)


def test_one_task_may_write_without_end_while_another_reads(loop: str, backend: str, world: World) -> None:
    size, pieces = 1 << 20, 32

    async def body() -> None:
        async with (
            jailed(world, backend) as environment,
            await environment.start(["cat"], stdin=PIPE) as process,
        ):

            async def write_all() -> None:
                for _ in range(pieces):
                    await process.write(b"x" * size)
                await process.close_stdin()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write_all)
                assert sum([len(output.data) async for output in process]) == size * pieces

    with no_leaks():
        on(loop, body)


def test_a_command_that_never_reads_its_input_breaks_a_long_write_when_it_ends(
    loop: str, backend: str, world: World
) -> None:
    async def body() -> None:
        async with (
            jailed(world, backend) as environment,
            await environment.start(["sleep", "0.3"], stdin=PIPE) as process,
        ):
            with pytest.raises(InputClosed):
                await process.write(b"x" * (10 << 20))
            assert (await process.wait()).exit_code == 0

    with no_leaks(world.base):
        on(loop, body)


def test_a_flood_is_bounded_in_memory_and_other_tasks_run_meanwhile(
    loop: str, backend: str, world: World
) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.001)
            ticks += 1

    async def body() -> None:
        async with (
            jailed(world, backend, output_limit=1 << 20) as environment,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(tick)
            async with await environment.start(["head", "-c", str(FLOOD), "/dev/zero"]) as process:
                assert sum([len(output.data) async for output in process]) == FLOOD
            tasks.cancel_scope.cancel()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    on(loop, body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert ticks > 3


def test_fifty_streams_at_once_each_get_their_own(loop: str, backend: str, world: World) -> None:
    script = 'for n in 1 2 3; do echo "$0 $n"; read line; done'

    async def talk(environment: AsyncLocalEnvironment, number: int) -> None:
        async with await environment.start(["sh", "-c", script, str(number)], stdin=PIPE) as process:
            for turn in (1, 2, 3):
                assert await process.read(20) == ("stdout", f"{number} {turn}\n".encode())
                await process.write("on\n")
            assert (await process.wait()).exit_code == 0

    async def body() -> None:
        async with jailed(world, backend) as environment, anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(talk, environment, number)

    with no_leaks(world.base):
        on(loop, body)


# ---- jobs, and one jail for all ----


def test_jobs_run_in_the_background_and_end_with_the_environment(
    loop: str, backend: str, world: World
) -> None:
    mark = new_mark()

    async def body() -> None:
        async with jailed(world, backend) as environment:
            job = await environment.background("tree", ["sh", "-c", TREE, mark])
            assert await eventually(lambda: job.output == "up\n")
            with pytest.raises(JobExists):
                await environment.background("tree", ["true"])
            with pytest.raises(StillRunning):
                await job.wait(0.05)
            assert environment.jobs["tree"].is_running
            short = await environment.background("short", ["echo", "hi"])
            assert (await short.wait(10)).stdout == "hi\n"
            other = await environment.background("other", ["sleep", "300"])
            assert (await other.stop()).signal == signal.SIGKILL
        assert carrying(mark) == []
        assert not job.is_running

    with no_leaks(world.base):
        on(loop, body)


def test_a_server_is_reached_through_the_jail_they_share(loop: str, world: World) -> None:
    (world.workspace / "greeting").write_text("hello")
    server = [PYTHON, "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1"]
    fetch = (
        "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/greeting', timeout=10).read())"
    )

    async def body() -> None:
        policy = Policy.workspace_write(backend="namespaces")
        async with AsyncLocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
            job = await environment.background("web", server)
            assert await eventually(lambda: "Serving" in job.output)
            assert (await environment.run(python(fetch))).stdout == "b'hello'\n"

    with no_leaks(world.base):
        on(loop, body)


def test_what_the_host_cannot_hold_is_refused_when_it_is_entered(loop: str, world: World) -> None:
    async def body() -> None:
        policy = Policy.workspace_write(backend="landlock")
        environment = AsyncLocalEnvironment(world.workspace, policy, lifetime="environment")
        with pytest.raises(PolicyError, match="async with"):
            _ = environment.posture
        with pytest.raises(NotEnforceable):
            await environment.__aenter__()
        await environment.close()

    with no_leaks():
        on(loop, body)


# ---- threads ----


def test_nothing_is_spawned_on_the_loop_and_no_command_has_a_thread(
    loop: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawners: set[int] = set()

    def noting(*words: Any, **options: Any) -> int:
        spawners.add(threading.get_ident())
        return real(*words, **options)

    real = spawn
    monkeypatch.setattr(aio, "spawn", noting)

    def refuse(*_: Any, **__: Any) -> int:
        assert threading.current_thread() is not threading.main_thread(), "spawned on the loop"
        return posix_spawn(*_, **__)

    posix_spawn = os.posix_spawn
    monkeypatch.setattr(os, "posix_spawn", refuse)

    async def body() -> None:
        async with jailed(world, "auto") as environment, anyio.create_task_group() as tasks:
            before = threading.active_count()
            for _ in range(30):
                tasks.start_soon(functools.partial(environment.run, ["sleep", "0.5"]))
            await anyio.sleep(0.4)
            assert threading.active_count() - before <= aio.SPAWNING_THREADS

    on(loop, body)
    assert 0 < len(spawners) <= aio.SPAWNING_THREADS
    assert threading.main_thread().ident not in spawners


def test_the_sync_environment_imports_no_event_loop() -> None:
    source = "import sys, corral; corral.LocalEnvironment, corral.Process, corral.Job; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"anyio", "asyncio", "trio", "ctypes", "dataclasses", "typing"} & set(loaded) == set()


def test_without_anyio_it_says_what_to_install() -> None:
    source = "import sys; sys.modules['anyio'] = None; import corral; corral.AsyncLocalEnvironment"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert "pip install 'corral[async]'" in done.stderr.splitlines()[-1]


def test_a_loop_that_is_busy_elsewhere_does_not_lose_a_result(loop: str, world: World) -> None:
    async def body() -> None:
        async with jailed(world, "auto") as environment, await environment.start(["echo", "hi"]) as process:
            time.sleep(0.3)
            assert (await process.wait()).stdout == "hi\n"

    on(loop, body)
