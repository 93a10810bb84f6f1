"""Requests made from the schemas: valid ones, ones that are almost valid, and noise."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from corral.tools.registry import load_all

# Paths that a hostile caller would try, beside some that are there.
PATHS = (
    *(
        "a.txt",
        "dir",
        "dir/b.txt",
        "new.txt",
        "new/deep/file",
        ".",
        "",
        "..",
        "../outside/victim",
        "/etc/passwd",
    ),
    *(
        "~/.profile",
        "link-out/victim",
        "link-file",
        ".env",
        ".git/config",
        "-delete",
        "--exec",
        "a\0b",
        "x" * 300,
    ),
    *(
        "dir/../../outside/victim",
        "\ud800",
        "fifo",
        "../../home/.ssh/id_test",
        "$(touch owned)",
        "*.txt",
        "[",
        "//",
    ),
)
COMMANDS = (
    *(
        "true",
        "echo hi",
        "cat a.txt",
        "exit 7",
        "echo x > made",
        "echo x > ../outside/victim",
        "rm -rf .",
        "ls ../.ssh",
    ),
    *("rm -rf ../outside", "touch ~/owned", "chmod 777 ~/.profile", "kill -9 1", "yes | head -c 200000", ""),
    *(":(){ :|:& };:", "cat < fifo & sleep 0.01", "ln -sf ../outside/victim l; echo x > l", "'", "\0"),
)
PATTERNS = ("line", ".", "(", "(a+)+$", "[", "", "\\", "a|b", "^$", "x{1,99999}")
OTHER_TEXTS = (
    *(
        "",
        "x",
        "one",
        "line",
        "\r\n",
        "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch",
        "é\u2028",
        "0",
    ),
    *("list", "save", "restore", "clear", "recall", "gc", "global", "task"),
)

texts = st.one_of(st.sampled_from((*PATHS, *PATTERNS, *OTHER_TEXTS)), st.text(max_size=12))
numbers = st.one_of(st.integers(-3, 40), st.sampled_from((2**31, 2**63, -(2**70), 10**30)))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def fitting(schema: dict[str, Any], name: str = "") -> st.SearchStrategy[Any]:
    """Values that the schema allows, and that mean something for an argument of that name."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*(fitting(one, name) for one in schema["anyOf"]))
    match schema.get("type"):
        case "string":
            named = {
                "command": COMMANDS,
                "pattern": PATTERNS,
                "path": PATHS,
                "path_a": PATHS,
                "path_b": PATHS,
            }
            return st.sampled_from(named[name]) if name in named else texts
        case "integer":
            return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 50), 50))
        case "number":
            return st.floats(schema.get("minimum", 0), schema.get("maximum", 50))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(fitting(schema["items"], name), min_size=schema.get("minItems", 0), max_size=3)
        case "object" if "properties" in schema:
            return _object(schema)
        case "object":
            inner = schema.get("additionalProperties")
            values = fitting(inner, name) if isinstance(inner, dict) else texts
            return st.dictionaries(texts, values, max_size=3)
        case "null":
            return st.none()
    return anything


def _object(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    parts = {name: fitting(inner, name) for name, inner in schema["properties"].items()}
    required = {name: part for name, part in parts.items() if name in schema.get("required", ())}
    optional = {name: part for name, part in parts.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def _calls(draw: st.DrawFn) -> dict[str, Any]:
    return draw(draw(st.sampled_from(_ways())))


@cache
def _ways() -> list[st.SearchStrategy[dict[str, Any]]]:
    """Each tool with arguments that fit, twice, and with some that do not."""
    tools = load_all()
    exact = [_call(tool.name, fitting(tool.schema)) for tool in tools]
    loose = [
        _call(
            tool.name,
            st.dictionaries(st.sampled_from((*tool.schema["properties"], "colour")), anything, max_size=4),
        )
        for tool in tools
        if tool.schema["properties"]
    ]
    return [*exact, *exact, *loose]


def _call(tool: str, args: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    if tool == "run_shell":  # not for long, whatever the command
        args = args.map(lambda given: {**given, "timeout": 2} if isinstance(given, dict) else given)
    further = {"client": texts, "compress": st.booleans()}
    return st.fixed_dictionaries({"tool": st.just(tool), "args": args}, optional=further)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line of a stream, never blank, with no line end in it, and no cancel."""
    line = encoded(draw(_calls()))
    match draw(st.integers(0, 9)):
        case 9:
            line = encoded(draw(anything))
        case 8:
            line = draw(st.binary(min_size=1, max_size=40))
        case 7:
            line = line[: max(1, len(line) - draw(st.integers(0, 60)))]
    assume(line.strip() and b"\n" not in line and b"cancel" not in line)
    return line
