"""One library in a process of its own.

    worker.py once ADAPTER WORKSPACE COMMAND…             its command line, where a package brings none
    worker.py serve ADAPTER WORKSPACE [WORDS…]            answers requests, one JSON line each

Requests, by "do": run (argv) · rate (seconds, threads) · crowd (count) · hold (count).
Nothing is imported before it is needed: `once` is a launch that is measured.
"""

from __future__ import annotations

import os
import sys

TRUE = ["true"]
SLEEP = ["sleep", "30"]


class Words:
    """Another program in front of the command: nothing at all, bwrap, firejail, …"""

    def __init__(self, workspace: str, words: list[str]) -> None:
        self.workspace, self.words = workspace, words

    def run(self, argv: list[str]) -> tuple[int, bytes]:
        import subprocess

        null = subprocess.DEVNULL
        done = subprocess.run([*self.words, *argv], cwd=self.workspace, capture_output=True, stdin=null)
        return done.returncode, done.stdout

    async def run_soon(self, argv: list[str]) -> int:
        import asyncio

        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        program, *rest = [*self.words, *argv]
        process = await asyncio.create_subprocess_exec(
            program, *rest, cwd=self.workspace, stdout=pipe, stderr=pipe, stdin=null
        )
        await process.communicate()
        return process.returncode or 0

    def hold(self) -> object:
        import subprocess

        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen([*self.words, *SLEEP], cwd=self.workspace, stdin=null, stdout=pipe)


class Corral:
    def __init__(self, workspace: str, words: list[str]) -> None:
        from corral import LocalEnvironment, Policy

        backend, network = words
        self.workspace = workspace
        self.policy = Policy.workspace_write(backend=backend, network=network)
        self.environment = LocalEnvironment(workspace, self.policy)
        self.twin: object = None

    def run(self, argv: list[str]) -> tuple[int, bytes]:
        done = self.environment.run(argv)
        return done.exit_code, done.stdout_bytes

    async def run_soon(self, argv: list[str]) -> int:
        from corral import AsyncLocalEnvironment

        if self.twin is None:
            self.twin = AsyncLocalEnvironment(self.workspace, self.policy)
        done = await self.twin.run(argv)  # type: ignore[attr-defined]
        code: int = done.exit_code
        return code

    def hold(self) -> object:
        return self.environment.start(SLEEP)


class InThreads:
    """A library whose one call waits: from a loop it is called in threads, as its users have to."""

    def run(self, argv: list[str]) -> tuple[int, bytes]:
        raise NotImplementedError

    async def run_soon(self, argv: list[str]) -> int:
        import asyncio

        code, _ = await asyncio.to_thread(self.run, argv)
        return code

    def hold(self) -> object:
        import threading

        waiting = threading.Thread(target=self.run, args=(SLEEP,), daemon=True)
        waiting.start()
        return waiting


class Sandlock(InThreads):
    def __init__(self, workspace: str, words: list[str]) -> None:
        import threading

        self.workspace, self.own = workspace, threading.local()
        self.run(TRUE)

    def run(self, argv: list[str]) -> tuple[int, bytes]:
        import sandlock

        if not hasattr(self.own, "box"):  # one holds at most one command at a time
            writable = [self.workspace, "/dev/null"]
            self.own.box = sandlock.Sandbox(fs_readable=["/"], fs_writable=writable, cwd=self.workspace)
        done = self.own.box.run(argv)
        return done.exit_code, done.stdout


class Nono(InThreads):
    def __init__(self, workspace: str, words: list[str]) -> None:
        import nono_py

        self.workspace, self.execute = workspace, nono_py.sandboxed_exec
        self.capabilities = nono_py.CapabilitySet()
        self.capabilities.allow_path("/", nono_py.AccessMode.READ)
        self.capabilities.allow_path(workspace, nono_py.AccessMode.READ_WRITE)
        self.capabilities.allow_file("/dev/null", nono_py.AccessMode.READ_WRITE)
        self.capabilities.block_network()

    def run(self, argv: list[str]) -> tuple[int, bytes]:
        done = self.execute(self.capabilities, argv, cwd=self.workspace, inherit_env=True)
        return done.exit_code, done.stdout


ADAPTERS = {"words": Words, "corral": Corral, "sandlock": Sandlock, "nono": Nono}


# ---- what is asked ----


def run(adapter, request):  # type: ignore[no-untyped-def]
    import time

    started = time.perf_counter()
    code, output = adapter.run(request["argv"])
    took = time.perf_counter() - started
    return {"seconds": took, "cpu": cpu_seconds(), "code": code, "output": output.decode(errors="replace")}


def cpu_seconds() -> float:
    """Ours and our reaped children's, since the start: the difference of two is what the runs between took."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def rate(adapter, request):  # type: ignore[no-untyped-def]
    from rates import finished_in

    def once() -> None:
        code, _ = adapter.run(TRUE)
        if code:
            raise RuntimeError(f"exit code {code}")

    return {"rate": finished_in(once, request["seconds"], request["threads"])}


def crowd(adapter, request):  # type: ignore[no-untyped-def]
    """All at once from an event loop: seconds in all, the longest stall of the loop, and how many went wrong."""
    import asyncio
    import time

    async def all_at_once() -> dict[str, float]:
        longest, over, failed = 0.0, False, 0

        async def tick() -> None:
            nonlocal longest
            while not over:
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                longest = max(longest, time.perf_counter() - before - 0.001)

        async def one() -> None:
            nonlocal failed
            try:
                failed += bool(await adapter.run_soon(TRUE))
            except Exception:  # noqa: BLE001 a peer's own kind: it counts as gone wrong
                failed += 1

        await one()
        failed = 0
        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.02)
        started = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(request["count"])))
        total = time.perf_counter() - started
        over = True
        await ticking
        if getattr(adapter, "twin", None) is not None:
            await adapter.twin.close()
            adapter.twin = None
        return {"total": total, "stall": longest, "failed": failed}

    return asyncio.run(all_at_once())


held: list[object] = []


def hold(adapter, request):  # type: ignore[no-untyped-def]
    while len(held) < request["count"]:
        held.append(adapter.hold())
    return {"held": len(held)}


def serve(adapter: object) -> None:
    import json

    answers = {"run": run, "rate": rate, "crowd": crowd, "hold": hold}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = answers[request["do"]](adapter, request)
        except Exception as error:  # noqa: BLE001 a peer's own kind: told to who asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def main() -> None:
    kind, name, workspace, *words = sys.argv[1:]
    if kind == "once":
        code, output = ADAPTERS[name](workspace, []).run(words)  # type: ignore[abstract]
        os.write(1, output)
        sys.exit(code)
    name, *options = name.split("-")
    serve(ADAPTERS[name](workspace, options or words))
    os._exit(0)  # a peer's waiting threads would keep us


if __name__ == "__main__":
    main()
