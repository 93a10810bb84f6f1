"""Whatever comes in, one well-formed response goes out, and nothing happens outside the workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral import LocalEnvironment, Policy
from corral.tools.engine import Engine
from corral.tools.envelope import encode
from corral.tools.registry import NAMES, load

# What runs commands has tests of its own; here everything is tried that touches files and state.
TRIED = [name for name in NAMES if name != "run_shell"]
RESPONSE = {
    *("ok", "result", "content", "meta", "error", "suggestion"),
    *("classification", "risk", "error_code", "request_id"),
}

PATHS = st.sampled_from(
    [
        *("a", "b", "sub/c", ".", "", "sub", "none", "new/file", "link", "loop", "out", "out/secret", "fifo"),
        *(
            "..",
            "../outside/secret",
            "/etc/passwd",
            "~",
            "~/x",
            ".env",
            ".git/config",
            "a\0",
            "x" * 300,
            "*",
            "-rf",
        ),
    ]
)
TEXTS = st.one_of(
    PATHS,
    st.text(max_size=20),
    st.sampled_from(
        ["one", "two\n", "(a|b)*", "$1", "\ud800", "\udcff", "é" * 10, "(", "{", "*** Begin Patch"]
    ),
)


def valid(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    if "anyOf" in schema:
        return st.one_of([valid(one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        if "properties" not in schema:
            return st.dictionaries(TEXTS, valid(schema.get("additionalProperties", {})), max_size=3)
        required = set(schema.get("required", ()))
        properties = {name: valid(one) for name, one in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: one for name, one in properties.items() if name in required},
            optional={name: one for name, one in properties.items() if name not in required},
        )
    if kind == "array":
        least, most = int(schema.get("minItems", 0)), int(schema.get("maxItems", 3))
        return st.lists(valid(schema["items"]), min_size=least, max_size=max(least, min(most, 3)))
    if kind == "integer":
        return st.integers(int(schema.get("minimum", -3)), int(schema.get("maximum", 5000)))
    return {"boolean": st.booleans(), "number": st.floats(allow_nan=False)}.get(str(kind), TEXTS)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)


def requests() -> st.SearchStrategy[Any]:
    calls = []
    for name in TRIED:
        args = valid(load(name).schema)
        calls.append(st.fixed_dictionaries({"tool": st.just(name), "args": args}))
        wrong = st.tuples(args, st.dictionaries(TEXTS, ANYTHING, max_size=2)).map(
            lambda pair: {**pair[0], **pair[1]}
        )
        calls.append(st.fixed_dictionaries({"tool": st.just(name), "args": wrong}))
    envelope = {
        "tool": TEXTS,
        "args": ANYTHING,
        "client": TEXTS,
        "compress": ANYTHING,
        "request_id": ANYTHING,
    }
    return st.one_of(*calls, st.fixed_dictionaries({}, optional=envelope), ANYTHING)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("any")
    (made / "outside").mkdir()
    (made / "outside/secret").write_text("outside")
    return made


def furnish(root: Path) -> None:
    for path, content in {"a": "one\ntwo\n", "b": "one\r\n", "sub/c": "two\n", ".env": "KEY=1"}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_dir():
            target.write_text(content)
    if not (root / "fifo").exists():
        import os

        os.mkfifo(root / "fifo")
        (root / "link").symlink_to("a")
        (root / "loop").symlink_to("loop")
        (root / "out").symlink_to(root.parent / "outside")


def all_below(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@settings(
    max_examples=2000,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(request=requests(), as_text=st.booleans())
def _try(engine: Engine, request: Any, as_text: bool) -> None:
    if as_text or not isinstance(request, dict):
        request = json.dumps(request)
    response = engine.call(request)
    assert set(response) <= RESPONSE
    assert response["ok"] is True or (
        response["ok"] is False and response["error"] and response["error_code"]
    )
    assert response.get("error_code") != "internal_error", response
    line = encode(response)
    assert b"\n" not in line
    assert json.loads(line) == response


def test_2000_requests_valid_and_not_have_one_response_each(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(place / "state"))
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(place / "config"))
    root = place / "work"
    root.mkdir()
    furnish(root)
    monkeypatch.chdir(root)
    with LocalEnvironment(root, Policy.off()) as environment, Engine(environment) as engine:
        _try(engine)
    assert all_below(place / "outside") == {str(place / "outside/secret"): b"outside"}
    assert (root / ".env").read_text() == "KEY=1"
    assert {path.name for path in place.iterdir()} <= {"outside", "work", "state", "config"}
    assert not list(place.rglob(".corral-*"))
