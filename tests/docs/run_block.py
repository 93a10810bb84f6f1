"""Runs one Python block from standard input, with the names that the pages take for granted."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import signal
import sys

import corral
from corral import Grant, LocalEnvironment, Policy
from corral.risk.levels import Level
from corral.risk.table import Base, Sharp
from corral.selftest.case import must_fail, outside, write

policy = Policy.workspace_write()
env = LocalEnvironment("project", policy)
given = {
    "env": env,
    "policy": policy,
    "LocalEnvironment": LocalEnvironment,
    "Policy": Policy,
    "Grant": Grant,
    "PIPE": corral.PIPE,
    "signal": signal,
    "must_fail": must_fail,
    "outside": outside,
    "write": write,
    "Base": Base,
    "Sharp": Sharp,
    **dict(Level.__members__),
    "ask_a_person": lambda request: request.deny(),
}
code = compile(sys.stdin.read(), "<block>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
with contextlib.closing(env):
    answer = eval(code, given)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)
