"""The record of calls and runs: whole, chained, bounded, shared by processes, and out of every jail's reach."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral import LocalEnvironment, Policy, PolicyError
from corral.audit import Audit
from corral.audit.log import GENESIS, Log, segment_numbers, segment_path
from corral.audit.reading import last_records, verify
from corral.environment.base import Posture
from jail.world import BACKENDS, PYTHON, new_world

POSTURE = Posture("workspace-write", "namespaces", "off", True, (), (), (), True)


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "state/audit")


def filled(directory: str, count: int = 10, **bounds: int) -> Log:
    log = Log(directory, **bounds)
    for number in range(count):
        log.append("call", {"tool": f"tool{number}"})
    return log


def only_segment(directory: str) -> Path:
    (number,) = segment_numbers(directory)
    return Path(segment_path(directory, number))


# ---- what is recorded ----


def test_a_call_is_one_line_with_a_digest_in_place_of_its_arguments(directory: str) -> None:
    audit = Audit(Log(directory))
    request = {"tool": "run_shell", "args": {"command": "rm x", "force": True}, "request_id": "r1"}
    response = {"ok": True, "result": "[exit: 0]", "risk": "dangerous", "meta": {"exit_code": 0}}
    audit.record_call(request, response, POSTURE, front="tool", size=42)
    audit.close()
    text = only_segment(directory).read_text()
    assert text.count("\n") == 1
    assert "rm x" not in text
    record = json.loads(text)
    assert len(record.pop("arguments")) == 64
    assert record.pop("time").endswith("Z")
    assert record == {
        "n": 1,
        "kind": "call",
        "tool": "run_shell",
        "risk": "dangerous",
        "decision": "forced",
        "posture": "workspace-write namespaces network-off enforcing",
        "exit": 0,
        "bytes": 42,
        "front": "tool",
        "request_id": "r1",
        "previous": GENESIS,
    }


@pytest.mark.parametrize(
    ("response", "decision"),
    [
        ({"ok": True}, "allowed"),
        ({"ok": False, "error_code": "path_outside_sandbox"}, "refused"),
        ({"ok": False, "error_code": "command_blocked", "risk": "dangerous"}, "refused"),
        ({"ok": False, "error_code": "canceled"}, "canceled"),
        ({"ok": False, "error_code": "edit_not_found"}, "failed"),
        ({"ok": False}, "failed"),
    ],
)
def test_what_was_decided_is_one_word(directory: str, response: dict[str, Any], decision: str) -> None:
    audit = Audit(Log(directory))
    audit.record_call({"tool": "x", "args": {}}, response, None, front="tool", size=0)
    assert last_records(directory, 1)[0]["decision"] == decision
    audit.close()


def test_a_run_is_recorded_with_its_program_and_a_digest_of_the_rest(directory: str) -> None:
    audit = Audit(Log(directory))
    for word in ("a", "b"):
        audit.record_run(["/usr/bin/make", word], POSTURE, cwd="/w", exit_code=2, size=7)
    audit.record_run(["true"], None, cwd="/w")
    one, two, three = last_records(directory, 3)
    assert (one["kind"], one["tool"], one["exit"], one["bytes"]) == ("run", "make", 2, 7)
    assert one["arguments"] != two["arguments"]
    assert "exit" not in three
    audit.close()


def test_the_order_of_arguments_does_not_change_their_digest_and_odd_ones_have_one(directory: str) -> None:
    audit = Audit(Log(directory))
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": "\ud800"}, "not an object", None):
        audit.record_call(
            {"tool": "\ud800" * 999, "args": arguments}, {"ok": False}, None, front="tool", size=0
        )
    one, two, *_ = last_records(directory, 5)
    assert one["arguments"] == two["arguments"]
    assert len(one["tool"]) == 128
    assert verify(directory).whole
    audit.close()


def test_files_are_0600_in_a_directory_of_0700_whatever_the_umask(directory: str) -> None:
    before = os.umask(0)
    try:
        filled(directory, 1).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    for name in os.listdir(directory):
        assert stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode) == 0o600, name


def test_a_record_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    audit = Audit(Log(str(tmp_path / "file/audit")))
    for _ in range(3):
        audit.record_run(["true"], None, cwd="/")
    assert capsys.readouterr().err.count("the audit is not written") == 1
    Audit(None).record_run(["true"], None, cwd="/")


# ---- what verify finds ----


def swap(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


TAMPERINGS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a changed line": lambda lines: [*lines[:4], lines[4].replace(b"tool4", b"toolX"), *lines[5:]],
    "the last line changed": lambda lines: [*lines[:-1], lines[-1].replace(b"tool9", b"toolX")],
    "the first line changed": lambda lines: [lines[0].replace(b"tool0", b"toolX"), *lines[1:]],
    "a line removed": lambda lines: [*lines[:4], *lines[5:]],
    "the first line removed": lambda lines: lines[1:],
    "the last line removed": lambda lines: lines[:-1],
    "two lines exchanged": swap,
    "cut to half": lambda lines: lines[:5],
    "cut in a line": lambda lines: [*lines[:-1], lines[-1][:20]],
    "cut to nothing": lambda lines: [],
    "a line said twice": lambda lines: [*lines[:5], lines[4], *lines[5:]],
    "a line that is no record": lambda lines: [*lines[:5], b"[]\n", *lines[5:]],
    "two lines more": lambda lines: [*lines, lines[-1], lines[-1]],
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_verify_finds(directory: str, tampering: str) -> None:
    filled(directory).close()
    assert verify(directory).whole
    path = only_segment(directory)
    path.write_bytes(b"".join(TAMPERINGS[tampering](path.read_bytes().splitlines(keepends=True))))
    report = verify(directory)
    assert not report.whole
    assert report.problems


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_after_it_the_record_goes_on_and_the_fault_stays_to_be_found(directory: str, tampering: str) -> None:
    filled(directory).close()
    path = only_segment(directory)
    path.write_bytes(b"".join(TAMPERINGS[tampering](path.read_bytes().splitlines(keepends=True))))
    log = Log(directory)
    log.append("call", {"tool": "after"})
    log.close()
    assert last_records(directory, 1)[0]["tool"] == "after"
    assert not verify(directory).whole


def test_a_file_of_the_log_or_its_head_that_is_gone_is_found(directory: str) -> None:
    filled(directory, 100, segment_bytes=2000, segments=100).close()
    numbers = segment_numbers(directory)
    assert len(numbers) > 3
    for victim in (segment_path(directory, numbers[0]), segment_path(directory, numbers[-1])):
        content = Path(victim).read_bytes()
        os.unlink(victim)
        assert not verify(directory).whole
        Path(victim).write_bytes(content)
    assert verify(directory).whole
    head = Path(directory, "head")
    content = head.read_bytes()
    for instead in (None, b"nonsense\n", b""):
        head.unlink() if instead is None else head.write_bytes(instead)
        assert not verify(directory).whole
        if instead is None:
            log = Log(directory)
            log.append("call", {"tool": "after"})
            log.close()
            assert not verify(directory).whole
            os.unlink(segment_path(directory, segment_numbers(directory)[-1]))
    head.write_bytes(content)
    assert verify(directory).whole


def test_a_head_noted_elsewhere_shows_that_the_whole_log_was_written_anew(directory: str) -> None:
    log = filled(directory, 5)
    noted = verify(directory).head
    log.append("call", {"tool": "more"})
    log.close()
    assert verify(directory, noted).whole
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    anew = Log(directory)
    anew.append("call", {"tool": "another story"})
    anew.close()
    assert verify(directory).whole
    assert not verify(directory, noted).whole


def test_an_empty_record_is_whole(directory: str) -> None:
    assert verify(directory).whole
    assert last_records(directory, 5) == []


def test_a_writer_that_was_ended_between_its_record_and_the_head_broke_nothing(directory: str) -> None:
    filled(directory, 5).close()
    head = Path(directory, "head")
    before = head.read_bytes()
    filled(directory, 1).close()
    head.write_bytes(before)
    assert verify(directory).whole
    filled(directory, 1).close()
    assert verify(directory).whole
    assert [record["n"] for record in last_records(directory, 99)] == list(range(1, 8))


# ---- bounds, and several at once ----


def test_the_oldest_go_when_there_are_too_many_and_the_rest_can_still_be_checked(directory: str) -> None:
    log = filled(directory, 300, segment_bytes=2000, segments=4)
    log.close()
    assert len(segment_numbers(directory)) == 4
    total = sum(os.path.getsize(segment_path(directory, n)) for n in segment_numbers(directory))
    assert total < 4 * 2300
    report = verify(directory)
    assert report.whole
    assert report.last == 300
    assert report.first > 200
    oldest = Path(segment_path(directory, segment_numbers(directory)[0]))
    oldest.unlink()
    assert not verify(directory).whole


WRITER = """
import sys
from corral.audit.log import Log
log = Log(sys.argv[1], segment_bytes=20000, segments=1000)
for number in range(int(sys.argv[2])):
    log.append("call", {"tool": sys.argv[3]})
"""


def test_many_processes_and_threads_keep_one_chain(directory: str) -> None:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, directory, "200", str(number)], env=environment)
        for number in range(4)
    ]
    log = Log(directory, segment_bytes=20000, segments=1000)
    threads = [
        threading.Thread(target=lambda: [log.append("call", {"tool": "t"}) for _ in range(100)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert [writer.wait(30) for writer in writers] == [0] * 4
    report = verify(directory)
    assert (report.problems, report.records) == ((), 1200)


def test_a_fork_keeps_the_chain(directory: str) -> None:
    log = filled(directory, 1)
    child = os.fork()
    if child == 0:
        try:
            for _ in range(200):
                log.append("call", {"tool": "child"})
        finally:
            os._exit(0)
    for _ in range(200):
        log.append("call", {"tool": "parent"})
    os.waitpid(child, 0)
    log.close()
    assert verify(directory).records == 401
    assert verify(directory).whole


@pytest.mark.jail
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_command_in_a_jail_cannot_touch_the_record_and_no_workspace_can_hold_it(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_world() as world:
        monkeypatch.setenv("HOME", str(world.home))
        state = world.home / ".local/state/corral"
        monkeypatch.setenv("CORRAL_STATE_DIR", str(state))
        audit = Audit.here()
        audit.record_run(["true"], None, cwd="/")
        segment = only_segment(str(state / "audit"))
        attack = f"echo in > {world.workspace}/in; echo x >> {segment}; : > {segment}; rm -rf {state}"
        with world.environment(backend) as environment:
            environment.run([PYTHON, "-c", f"import os; os.system({attack!r})"])
        with pytest.raises(PolicyError, match="cannot be writable"):
            LocalEnvironment(world.home, Policy(backend=backend))  # type: ignore[arg-type]
        audit.record_run(["true"], None, cwd="/")
        audit.close()
        assert (world.workspace / "in").read_text() == "in\n"
        report = verify(str(state / "audit"))
        assert (report.problems, report.records) == ((), 2)


# ---- the command ----


def test_corral_audit_shows_and_verifies(directory: str, tmp_path: Path) -> None:
    variables = {"PYTHONPATH": ":".join(sys.path), "CORRAL_STATE_DIR": os.path.dirname(directory)}

    def corral(*words: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; from corral.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "audit", *words]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=30)

    assert corral("verify").returncode == 0
    filled(directory, 30).close()
    assert len(corral().stdout.splitlines()) == 20
    assert [json.loads(line)["tool"] for line in corral("show", "-n", "2").stdout.splitlines()] == [
        "tool28",
        "tool29",
    ]
    done = corral("verify")
    found = json.loads(done.stdout)
    assert (done.returncode, found["whole"], found["records"]) == (0, True, 30)
    assert corral("verify", "--expect", found["head"]).returncode == 0
    assert corral("verify", "--expect", "f" * 64).returncode == 1
    path = only_segment(directory)
    path.write_bytes(path.read_bytes().replace(b"tool7", b"toolX"))
    done = corral("verify")
    assert (done.returncode, json.loads(done.stdout)["whole"]) == (1, False)
    for words in (("shw",), ("-n", "x"), ("-n",), ("show", "show")):
        done = corral(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert corral("--help").stdout.startswith("usage: corral audit")
