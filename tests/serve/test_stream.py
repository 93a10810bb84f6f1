"""`corral tool --stream`: concurrent, in the order of completion, cancelled by id, and never without an answer."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jail.world import carrying, new_mark
from serve.talk import Caller, call, shell, soon

pytestmark = pytest.mark.jail


def test_answers_come_in_the_order_of_completion(caller: Caller) -> None:
    os.mkfifo(caller.workspace / "gate")
    with caller.stream() as talk:
        talk.send(shell("read x < gate; echo late", "slow"), shell("echo early", "quick"))
        assert talk.receive()["request_id"] == "quick"
        talk.send(shell("echo go > gate", "opener"))
        assert {talk.receive()["request_id"] for _ in range(2)} == {"slow", "opener"}


def test_a_request_is_cancelled_by_its_id_and_its_processes_are_gone(caller: Caller) -> None:
    mark = new_mark()
    with caller.stream() as talk:
        talk.send(shell(f"exec -a {mark} sleep 60", "a"), shell("echo other", "b"))
        assert talk.receive()["request_id"] == "b"
        assert soon(lambda: bool(carrying(mark)))
        talk.send({"cancel": "a", "request_id": "c"})
        answers = {one["request_id"]: one for one in (talk.receive(), talk.receive())}
        assert answers["c"]["ok"]
        assert (answers["a"]["ok"], answers["a"]["error_code"]) == (False, "canceled")
        assert answers["a"]["risk"]
        assert soon(lambda: not carrying(mark))
        assert not talk.asks({"cancel": "a"})["ok"]
        assert not talk.asks({"cancel": "a", "colour": "red"})["ok"]
        assert not talk.asks({"cancel": 7})["ok"]
        assert talk.asks(shell("echo alive", "a"))["ok"]
    assert [r["decision"] for r in caller.records() if r.get("request_id") == "a"] == ["canceled", "allowed"]


def test_a_malformed_line_gets_one_error_and_the_stream_goes_on(caller: Caller) -> None:
    lines = [
        b"{bad",
        b"[]",
        b"\xff\xfe",
        b'{"tool":1}',
        b'{"tool":"list_tools","tool":"undo"}',
        b'{"a":' * 9999,
    ]
    with caller.stream() as talk:
        for line in lines:
            answer = talk.asks(line)
            assert (answer["ok"], answer["error_code"]) == (False, "invalid_args")
        talk.send(b"", b"  ", call("list_tools", "after"))
        assert talk.receive()["request_id"] == "after"
        bad = talk.asks({"tool": "read_file", "args": {"colour": "red"}, "request_id": "known"})
        assert bad["request_id"] == "known"


def test_a_line_that_is_too_long_is_answered_with_its_id_and_not_kept(caller: Caller) -> None:
    with caller.stream() as talk:
        assert talk.asks(call("list_tools"))["ok"]  # it is up
        before = resident(talk.process.pid)
        talk.send(b'{"request_id":"first","tool":"x","args":{"a":"' + b"x" * 60_000_000 + b'"}}')
        talk.send(b'{"tool":"x","args":{"a":"' + b"x" * 60_000_000 + b'"},"request_id":"last"}')
        talk.send(b'"' + rb"\"request_id\":\"no\"" * 1_000_000 + b'"')
        answers = [talk.receive() for _ in range(3)]
        assert [one.get("request_id") for one in answers] == ["first", "last", None]
        assert {one["error_code"] for one in answers} == {"resource_limit"}
        assert resident(talk.process.pid) - before < 40_000
        assert talk.asks(call("list_tools"))["ok"]


def test_the_same_id_cannot_be_under_way_twice(caller: Caller) -> None:
    os.mkfifo(caller.workspace / "gate")
    with caller.stream() as talk:
        talk.send(shell("read x < gate", "one"), call("list_tools", "one"))
        answer = talk.receive()
        assert (answer["ok"], answer["request_id"]) == (False, "one")
        assert "under way already" in answer["error"]
        talk.send(shell("echo > gate"))
        assert {talk.receive().get("request_id") for _ in range(2)} == {"one", None}
        assert talk.asks(call("list_tools", "one"))["ok"]


def test_many_at_once_all_get_their_own_answer(caller: Caller) -> None:
    with caller.stream() as talk:
        talk.send(*(shell(f"echo number {n}", str(n)) for n in range(50)))
        talk.send(*(call("write_file", f"w{n}", path=f"f{n}", content=str(n)) for n in range(50)))
        answers = {one["request_id"]: one for one in (talk.receive() for _ in range(100))}
    assert all(f"number {n}\n" in answers[str(n)]["result"] for n in range(50))
    assert all((caller.workspace / f"f{n}").read_text() == str(n) for n in range(50))


def test_more_than_can_wait_is_refused_at_once(caller: Caller) -> None:
    os.mkfifo(caller.workspace / "gate")
    with caller.stream() as talk:
        talk.send(*(shell("read x < gate", f"w{n}") for n in range(64)))
        talk.send(*(call("list_tools", f"q{n}") for n in range(1100)))
        assert talk.receive()["error_code"] == "resource_limit"
        talk.process.send_signal(signal.SIGKILL)


def test_after_the_end_of_input_what_runs_is_answered_and_then_it_ends(caller: Caller) -> None:
    os.mkfifo(caller.workspace / "gate")
    with caller.stream() as talk:
        talk.send(shell("read x < gate; echo done", "slow"))
        talk.ends_input()
        (caller.workspace / "gate").write_text("go\n")
        assert "done" in talk.receive()["result"]
        assert talk.process.wait(20) == 0


@pytest.mark.parametrize("input_too", [False, True])
def test_when_nobody_reads_the_answers_everything_ends(caller: Caller, input_too: bool) -> None:
    mark = new_mark()
    with caller.stream() as talk:
        talk.send(shell(f"exec -a {mark} sleep 60"))
        assert soon(lambda: bool(carrying(mark)))
        talk.stops_reading()
        if input_too:
            talk.ends_input()
        talk.process.wait(20)
        assert soon(lambda: not carrying(mark))


def test_killed_in_the_middle_it_leaves_nothing_running(caller: Caller) -> None:
    mark = new_mark()
    with caller.stream() as talk:
        talk.send(shell(f"exec -a {mark} sleep 60"))
        assert soon(lambda: bool(carrying(mark)))
        talk.process.kill()
        assert soon(lambda: not carrying(mark))


def flat(caller: Caller, calls: int, allowed_kb: int) -> None:
    (caller.workspace / "a.txt").write_text("line\n" * 50)
    mixed = [
        call("read_file", path="a.txt"),
        call("edit_file", path="a.txt", old_text="nothing like it", new_text="x"),
        call("list_dir"),
        call("search_files", pattern="line", max_matches=3),
        call("read_file", path="../outside"),
        b"{bad",
    ]
    with caller.stream() as talk:

        def rounds(count: int) -> None:
            for start in range(0, count, 60):
                talk.send(*(mixed[n % len(mixed)] for n in range(start, start + 60)))
                for _ in range(60):
                    talk.receive()

        rounds(600)
        before = resident(talk.process.pid)
        rounds(calls)
        assert resident(talk.process.pid) - before < allowed_kb


def test_memory_stays_flat_over_2000_calls(caller: Caller) -> None:
    flat(caller, 2000, 4096)


@pytest.mark.soak
def test_memory_stays_flat_over_100000_calls(caller: Caller) -> None:
    flat(caller, 100_000, 8192)


def resident(pid: int) -> int:
    """In kB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def test_arguments_nested_as_deep_as_they_can_be_are_answered_and_recorded(caller: Caller) -> None:
    with caller.stream() as talk:
        for depth in (99, 101, 400, 900, 990, 1500):
            value = b"[" * depth + b"]" * depth
            assert not talk.asks(b'{"tool":"list_dir","args":{"path":' + value + b"}}")["ok"]
    assert len(caller.records()) == 6
