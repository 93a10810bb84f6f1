"""Runs inside the testbed, as its user: one run in a jail, asked for and answered in JSON on the standard streams.

Programs that the jail starts are recorded on their way."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from corral import CorralError, Grant, Limits, Policy, RunOpts, open_jail

request: dict[str, Any] = json.loads(sys.stdin.readline())
started: list[dict[str, Any]] = []


def record(path: str, argv: Any, env: Any, /, **how: Any) -> int:
    started.append({"path": path, "argv": list(argv), "env": dict(env)})
    for dropped in request.get("drop", ()):
        argv = without(list(argv), dropped)
    return os.posix_spawn(request.get("instead", path), argv, env, **how)


def without(argv: list[str], dropped: str) -> list[str]:
    """The arguments less the properties that begin so: a manager that does not care for them."""
    at = [n for n, word in enumerate(argv) if argv[n - 1] == "-p" and word.startswith(dropped)]
    assert at, dropped
    return [word for n, word in enumerate(argv) if n not in at and n + 1 not in at]


def policy() -> Policy:
    fields = dict(request.get("policy", {}))
    fields["grants"] = tuple(Grant(*grant) for grant in fields.get("grants", ()))
    if "limits" in fields:
        fields["limits"] = Limits(**fields["limits"])
    return Policy(**fields)


def cancel_when_it_speaks(jail: Any, path: str) -> None:
    """A command says that it is under way by making a file."""
    while not os.path.exists(path):
        threading.Event().wait(0.01)
    jail.cancel()


def answer() -> dict[str, Any]:
    try:
        jail = open_jail(
            request.get("backend", "systemd-run"),
            policy(),
            runner=record,
            properties=request.get("properties", ()),
        )
        workspace = None
        if "workspace" in request:
            from corral.workspace import load

            workspace = load(request["workspace"])
        opts = RunOpts(
            workspace,
            request["command"],
            request.get("env", ()),
            request.get("api_key", ""),
            request.get("stdin"),
        )
        if "cancel" in request:
            threading.Thread(target=cancel_when_it_speaks, args=(jail, request["cancel"])).start()
        run = jail.run if request.get("attached") else jail.run_capture
        result = run(opts, timeout=request.get("timeout"))
    except CorralError as error:
        return {"error": type(error).__name__, "text": str(error), "rule": error.rule}
    told = ("exit_code", "signal", "timed_out", "over", "duration", "stdout", "stdout_bytes_dropped")
    return {name: getattr(result, name) for name in told}


if __name__ == "__main__":
    os.chdir(request.get("cwd", "work"))
    found = answer()
    line = json.dumps({**found, "started": started})
    with open(os.path.expanduser("~/answer"), "w") as file:
        file.write(line)
