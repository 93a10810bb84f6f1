"""The same call again and again."""

from __future__ import annotations

import pytest

from corral.errors import PolicyError
from corral.risk import Approval, DoomLoop, review


def test_a_call_is_the_same_whatever_the_order_of_its_arguments() -> None:
    loop = DoomLoop(limit=1)
    assert not loop.note("read", {"a": 1, "b": [2]})
    assert loop.note("read", {"b": [2], "a": 1})
    assert not loop.note("write", {"a": 1, "b": [2]})
    assert not loop.note("read", {"a": 1, "b": [2]})


def test_an_edit_between_two_test_runs_is_no_loop() -> None:
    loop = DoomLoop(limit=2)
    assert not any(
        loop.note(tool, {"x": n if tool == "edit" else 0}) for n in range(9) for tool in ("edit", "run")
    )


def test_past_the_limit_a_call_is_refused_whatever_is_allowed_and_forced() -> None:
    loop = DoomLoop(limit=2)
    errors = []
    for expected in (True, True, False, False):
        loop.note("run", {"command": "ls"})
        decision = review("ls", Approval(), lambda r: r.allow(), force=True, repeated=loop)
        assert decision.allowed is expected
        assert (decision.code == "command_repeated") is not expected
        errors.append(decision.error)
    assert errors[-1] == "blocked: the same call 4 times in a row"


def test_a_loop_that_does_not_stop_warns() -> None:
    loop = DoomLoop(limit=1, stops=False)
    warnings = []
    for _ in range(3):
        loop.note("run", {"command": "ls"})
        decision = review("ls", Approval(), repeated=loop)
        assert decision.allowed
        warnings.append(bool(decision.warning))
    assert warnings == [False, True, True]


def test_the_floor_is_named_before_the_loop() -> None:
    loop = DoomLoop(limit=1)
    for _ in range(3):
        loop.note("run", {})
    assert review("rm -rf /", Approval(), repeated=loop).by == "hardline"


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(PolicyError, match="at least one call"):
        DoomLoop(limit=0)
