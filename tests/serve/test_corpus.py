"""2,000 random requests: always one well-formed answer, never a traceback, never an effect outside the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jail.world import fingerprint
from serve.requests import lines
from serve.talk import Answer, Caller

pytestmark = pytest.mark.jail

KEYS = {
    *(
        "ok",
        "result",
        "content",
        "meta",
        "error",
        "suggestion",
        "classification",
        "risk",
        "error_code",
        "request_id",
    ),
}
BATCH = 20


def furnish(caller: Caller) -> None:
    workspace = caller.workspace
    (workspace / "dir").mkdir()
    (workspace / ".git").mkdir()
    (workspace / "a.txt").write_text("one\nline\n")
    (workspace / "dir/b.txt").write_text("two\n" * 50)
    (workspace / ".env").write_text("SECRET=the-secret-of-env\n")
    (workspace / "link-out").symlink_to("../outside")
    (workspace / "link-file").symlink_to("../outside/victim")
    os.mkfifo(workspace / "fifo")


def surroundings(caller: Caller) -> dict[str, object]:
    """Everything beside the workspace and the state: contents, modes, times."""
    found: dict[str, object] = {}
    for top in (caller.world.home, caller.world.base):
        for directory, names, files in os.walk(top):
            here = Path(directory)
            names[:] = [n for n in names if here / n not in (caller.workspace, caller.state)]
            for name in files:
                found[str(here / name)] = fingerprint(here / name)
            if here not in (caller.workspace.parent, caller.state.parent):
                found[str(here)] = sorted(os.listdir(here))
    found["home"] = sorted(os.listdir(caller.world.home))
    return found


def check(answer: Answer) -> None:
    assert set(answer) <= KEYS
    if answer["ok"]:
        assert "error" not in answer
    else:
        assert answer["error"]
        assert answer["error_code"]
        assert answer["error_code"] != "internal_error", answer
    text = str(answer)
    assert "Traceback" not in text
    assert "the-secret-of-env" not in text


def test_2000_random_requests_are_all_answered_and_nothing_outside_changes(caller: Caller) -> None:
    furnish(caller)
    before = surroundings(caller)
    sent = 0
    with caller.stream() as talk:
        # Nothing is made smaller: what came before is part of what a request finds.
        @settings(
            max_examples=2000 // BATCH,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(lines(), min_size=BATCH, max_size=BATCH))
        def batch(requests: list[bytes]) -> None:
            nonlocal sent
            talk.send(*requests)
            for _ in requests:
                check(talk.receive())
            sent += len(requests)

        batch()
        talk.ends_input()
        assert talk.process.wait(20) == 0
        assert talk.process.stderr is not None
        assert talk.process.stderr.read() == b""
    assert sent >= 2000
    assert surroundings(caller) == before
