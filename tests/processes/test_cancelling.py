"""Cancelling ends the whole tree, and is over when that is gone. At any moment, on any loop, in either way."""

from __future__ import annotations

import asyncio
import random
import time

import anyio
import pytest

from corral import PIPE, AsyncLocalEnvironment, LocalEnvironment, Policy
from jail.world import World, carrying, new_mark
from leaks import no_leaks

pytestmark = pytest.mark.jail

TREE = (
    "sleep 300 & setsid sh -c 'sleep 300; :' \"$0\" & (sh -c 'sleep 300; :' \"$0\" &) ; echo up; sleep 300; :"
)
LONGEST = 0.02  # when a launch is long over


def policy_of(backend: str) -> Policy:
    return Policy(backend=backend)  # type: ignore[arg-type]


def cancel_at_random(loop: str, backend: str, world: World, times: int) -> None:
    moments = random.Random(7)
    begun = 0

    async def once(environment: AsyncLocalEnvironment, mark: str) -> None:
        nonlocal begun
        how = moments.choice(["run", "start", "read"])
        with anyio.move_on_after(moments.uniform(0, LONGEST)):
            if how == "run":
                await environment.run(["sh", "-c", TREE, mark])
            async with await environment.start(["sh", "-c", TREE, mark], stdin=PIPE) as process:
                begun += 1
                async for _ in process:
                    if how == "read":
                        await process.write("x" * 10)
        assert carrying(mark) == []

    async def body() -> None:
        async with AsyncLocalEnvironment(world.workspace, policy_of(backend)) as environment:
            mark = new_mark()
            for _ in range(times):
                await once(environment, mark)
            assert (await environment.run(["echo", "still well"])).stdout == "still well\n"

    with no_leaks(world.base):
        anyio.run(body, backend=loop)
    # Before the command began as well as afterwards, or only one half was tried.
    assert 0 < begun < times


def test_cancelled_at_random_moments_nothing_is_left(loop: str, backend: str, world: World) -> None:
    cancel_at_random(loop, backend, world, 125)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_cancelled_five_hundred_times_on_each_nothing_is_left(loop: str, backend: str, world: World) -> None:
    cancel_at_random(loop, backend, world, 500)


def test_asyncios_own_cancelling_waits_until_the_tree_is_gone_even_when_repeated(
    backend: str, world: World
) -> None:
    """task.cancel() passes through the shields of anyio."""
    moments = random.Random(11)

    async def body() -> None:
        async with AsyncLocalEnvironment(world.workspace, policy_of(backend)) as environment:
            for turn in range(60):
                mark = new_mark()
                task = asyncio.create_task(environment.run(["sh", "-c", TREE, mark]))
                await asyncio.sleep(moments.uniform(0, LONGEST))
                for _ in range(turn % 3 + 1):
                    task.cancel()
                    await asyncio.sleep(0)
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert carrying(mark) == []
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await environment.run(["sleep", "300"])

    with no_leaks(world.base):
        asyncio.run(body())


def test_a_group_of_commands_is_cancelled_at_once(loop: str, backend: str, world: World) -> None:
    mark = new_mark()

    async def run(environment: AsyncLocalEnvironment) -> None:
        await environment.run(["sh", "-c", TREE, mark])

    async def body() -> None:
        async with AsyncLocalEnvironment(world.workspace, policy_of(backend)) as environment:
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(run, environment)
                while len(carrying(mark)) < 40:
                    await anyio.sleep(0.01)
                started = time.monotonic()
                tasks.cancel_scope.cancel()
            assert carrying(mark) == []
            assert time.monotonic() - started < 10

    with no_leaks(world.base):
        anyio.run(body, backend=loop)


def test_cancelled_while_it_is_closed_the_environment_is_closed_all_the_same(
    loop: str, backend: str, world: World
) -> None:
    mark = new_mark()

    async def body() -> None:
        environment = AsyncLocalEnvironment(world.workspace, policy_of(backend))
        await environment.background("tree", ["sh", "-c", TREE, mark])
        await environment.start(["sh", "-c", TREE, mark])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await environment.close()
        assert carrying(mark) == []

    with no_leaks(world.base):
        anyio.run(body, backend=loop)


def test_cancelled_in_a_shared_jail_only_the_command_ends(loop: str, world: World) -> None:
    kept, ended = new_mark(), new_mark()
    leave = "setsid sh -c 'while :; do sleep 0.05; done' \"$0\" > /dev/null 2>&1 & echo up"

    async def body() -> None:
        policy = policy_of("namespaces")
        async with AsyncLocalEnvironment(world.workspace, policy, lifetime="environment") as environment:
            await environment.run(["sh", "-c", leave, kept])
            for _ in range(10):
                with anyio.move_on_after(0.1):
                    await environment.run(["sh", "-c", leave + "; sleep 300", ended])
                assert carrying(ended) == []
            assert len(carrying(kept)) >= 1
        assert carrying(kept) == []

    with no_leaks(world.base):
        anyio.run(body, backend=loop)


def test_an_interrupted_thread_leaves_nothing_at_random_moments(backend: str, world: World) -> None:
    """The sync side of the same: an exception out of a block at any moment."""
    moments = random.Random(13)
    with no_leaks(world.base), LocalEnvironment(world.workspace, policy_of(backend)) as environment:
        for _ in range(60):
            mark = new_mark()
            with environment.start(["sh", "-c", TREE, mark]):
                time.sleep(moments.uniform(0, LONGEST))
            assert carrying(mark) == []
