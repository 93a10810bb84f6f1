"""inspect_ai's own checks of a sandbox (`inspect_ai.util._sandbox.self_check`), through a thin adapter.

Out is `test_exec_as_user` alone: it makes a user on the machine, and a jail that could do that would be none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from corral import AsyncLocalEnvironment, CommandNotFound, FileTooLarge

pytestmark = pytest.mark.anyio

OUT = ("test_exec_as_user",)
CHECKS = 44

for _name in OUT:
    del globals()[_name]


class Adapter(SandboxEnvironment):  # type: ignore[misc]
    def __init__(self, environment: AsyncLocalEnvironment) -> None:
        super().__init__()
        self._environment = environment

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> Any:
        if user is not None:
            raise SandboxUserUnsupportedError(f"cannot execute as {user!r}")
        try:
            done = await self._environment.run(cmd, cwd=cwd, extra_env=env, stdin=input, timeout=timeout)
        except CommandNotFound as missing:
            return ExecResult(False, 127, "", str(missing))
        if done.timed_out:
            raise TimeoutError(f"{cmd[0]} took longer than {timeout} s")
        return ExecResult(done.exit_code == 0, done.exit_code, done.stdout, done.stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        await self._environment.write_file(file, contents)

    async def read_file(self, file: str, text: bool = True) -> Any:
        try:
            content = await self._environment.read_bytes(
                file, limit=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
            )
        except FileTooLarge:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from None
        return content.decode() if text else content

    @classmethod
    async def sample_cleanup(cls, *_: Any) -> None:
        """Nothing of an evaluation is left: each check has an environment of its own."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_moment_to_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks wait for what a time-out should have ended. With us it is gone when the call returns."""
    monkeypatch.setattr(self_check, "anyio", SimpleNamespace(sleep=lambda _: anyio.sleep(0)))


@pytest.fixture
async def sandbox_env(tmp_path: Path) -> AsyncIterator[Adapter]:
    async with AsyncLocalEnvironment(tmp_path, files="view") as environment:
        yield Adapter(environment)


def test_all_checks_but_one_are_here() -> None:
    checks = {name for name in dir(self_check) if name.startswith("test_")}
    assert len(checks) == CHECKS
    assert checks - {name for name in globals() if name.startswith("test_")} == set(OUT)
