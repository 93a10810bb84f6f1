"""An engine that is called for days stays as large as it was."""

from __future__ import annotations

import resource

import pytest

from tools.room import Room

CALLS = 100_000
GROWN_KB = 4096


@pytest.mark.soak
def test_a_hundred_thousand_calls_leave_nothing_behind(room: Room) -> None:
    room.file("f", "one\ntwo\n" * 50)
    requests = [
        b'{"tool":"read_file","args":{"path":"f"}}',
        b'{"tool":"read_file","args":{"path":"none"},"client":"%d"}',
        b'{"tool":"edit_file","args":{"path":"f","old_text":"none","new_text":"x"}}',
        b'{"tool":"list_tools"}',
        b"{bad",
    ]

    def call(times: int) -> None:
        for number in range(times):
            request = requests[number % len(requests)]
            room.engine.call(request % (number % 1000) if b"%d" in request else request)

    call(CALLS // 5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call(CALLS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWN_KB
