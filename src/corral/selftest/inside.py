"""The program inside: modules come as text on standard input, answers go as lines of JSON to standard output."""

from __future__ import annotations

import json
import os
import sys
import types


def load(name: str, text: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def main() -> None:
    sent = json.loads(sys.stdin.buffer.read())
    case = load("corral.selftest.case", sent["case"])
    for group, text in sent["groups"].items():
        for one in case.cases_of(load(f"corral.selftest.{group}", text)):
            try:
                one.action(sent["given"])
                said = ""
            except Exception as error:  # noqa: BLE001 - whatever stops an attempt is its answer
                said = f"{type(error).__name__}: {error}"
            os.write(1, json.dumps([group, one.name, said]).encode() + b"\n")


if __name__ == "__main__":
    main()
