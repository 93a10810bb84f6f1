"""`corral tool`, one request at a time, as it is typed."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from cases import case
from cli.typed import CORRAL
from serve.talk import Caller, call, shell

pytestmark = pytest.mark.jail


@case("jinn-1")
def test_no_input_is_an_error_that_says_what_to_do(caller: Caller) -> None:
    for nothing in (b"", b" \n"):
        answer, code = caller.asks(nothing)
        assert (answer["ok"], code) == (False, 1)
        assert answer["error"].startswith("no input: pipe a JSON request to stdin")
    assert caller.tool().returncode == 1  # /dev/null


@case("jinn-2", "jinn-3")
@pytest.mark.parametrize(
    "text", [b"{bad", b"[]", b'"x"', b"null", b"{} {}", b"\xff", b'{"tool":"list_tools"', b"NaN"]
)
def test_what_is_no_request_is_one_clear_error(caller: Caller, text: bytes) -> None:
    answer, code = caller.asks(text)
    assert (answer["ok"], answer["error_code"], code) == (False, "invalid_args", 1)
    assert answer["error"]
    assert "Traceback" not in answer["error"]


@case("jinn-4", "jinn-9")
def test_an_unknown_tool_fails_with_1_and_a_known_one_succeeds_with_0(caller: Caller) -> None:
    answer, code = caller.asks(call("nope"))
    assert (answer["error"], code) == ("unknown tool: nope", 1)
    assert caller.asks(call("list_tools"))[1] == 0


@case("jinn-5")
def test_the_request_id_comes_back_with_success_and_with_failure(caller: Caller) -> None:
    (caller.workspace / "a").write_text("x\n")
    for path, ok in (("a", True), ("b", False)):
        answer, _ = caller.asks(call("read_file", "r1", path=path))
        assert (answer["ok"], answer["request_id"]) == (ok, "r1")


@case("jinn-6", "jinn-7", "jinn-8")
@pytest.mark.parametrize(
    "text",
    [
        b'{"tool":"list_tools"} x',
        b'{"tool":"list_tools"}{"tool":"list_tools"}',
        b'{"tool":"list_tools","tool":"undo"}',
        b'{"tool":"list_tools","args":{"include_schema":true,"include_schema":true}}',
        b'{"tool":"list_tools","args":{"colour":"red"}}',
        b'{"tool":"list_tools","argz":{}}',
        b'{"tool":"list_tools","args":{"include_schema":"yes"}}',
    ],
)
def test_what_is_given_twice_unknown_mistyped_or_left_over_is_refused(caller: Caller, text: bytes) -> None:
    answer, code = caller.asks(text)
    assert (answer["ok"], answer["error_code"], code) == (False, "invalid_args", 1)


@case("jinn-10")
def test_list_tools_has_the_schema_only_if_it_is_asked_for(caller: Caller) -> None:
    plain = json.loads(caller.asks(call("list_tools"))[0]["result"])
    full = json.loads(caller.asks(call("list_tools", include_schema=True))[0]["result"])
    assert "read_file" in plain["tools"]
    assert plain["features"]
    assert len(json.dumps(full)) > 3 * len(json.dumps(plain))


@case("jinn-11")
def test_schema_prints_functions_without_descriptions_of_their_parameters(caller: Caller) -> None:
    entries = json.loads(caller.tool("--schema").stdout)
    assert len(entries) == 19
    for entry in entries:
        assert entry["type"] == "function"
        assert entry["function"]["name"]
        properties = entry["function"]["parameters"]["properties"]
        assert not any(
            isinstance(p, dict) and isinstance(p.get("description"), str) for p in properties.values()
        )
    (only,) = json.loads(caller.tool("--schema", "--tools", "undo").stdout)
    assert only["function"]["name"] == "undo"


def test_list_prints_every_tool_with_the_size_of_its_schema(caller: Caller) -> None:
    lines = caller.tool("--list").stdout.decode().splitlines()
    assert len(lines) == 20
    sizes = {line.split()[0]: int(line.split()[1]) for line in lines[:-1]}
    entries = {e["function"]["name"]: e for e in json.loads(caller.tool("--schema").stdout)}
    assert sizes == {n: len(json.dumps(e, separators=(",", ":"))) for n, e in entries.items()}
    assert int(lines[-1].split()[2]) == sum(sizes.values())


def test_only_the_tools_that_are_named_are_offered(caller: Caller) -> None:
    answer, code = caller.asks(call("read_file", path="a"), "--tools", "list_dir,stat_file")
    assert (answer["error"], code) == ("unknown tool: read_file", 1)
    assert caller.asks(call("list_dir"), "--tools=list_dir")[1] == 0
    done = caller.tool("--tools", "list_dri", stdin=b"{}")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"did you mean list_dir?" in done.stderr


def test_the_request_may_be_an_argument(caller: Caller) -> None:
    done = caller.tool(json.dumps(shell("echo hi > made")))
    assert (done.returncode, (caller.workspace / "made").read_text()) == (0, "hi\n")
    assert caller.tool("{}").returncode == 1
    assert caller.tool("{}", "{}").returncode == 2


def test_the_options_of_a_policy_count(caller: Caller) -> None:
    write = call("write_file", path="x", content="x")
    answer, code = caller.asks(write, "-m", "read-only")
    assert (answer["ok"], code) == (False, 1)
    assert not (caller.workspace / "x").exists()
    assert caller.asks(write)[1] == 0
    other = caller.world.granted
    reads = shell(f"echo x > {other}/made")
    assert "Read-only" in caller.asks(reads)[0]["result"]
    assert caller.asks(reads, "--rw", str(other))[0]["ok"]
    assert (other / "made").exists()
    assert caller.asks(call("list_dir"), "--cd", str(other))[0]["result"].count("made") == 1
    done = caller.tool("--keep-fd", "3", "{}")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert caller.tool("--help").stdout.startswith(b"usage: corral tool")


def test_on_a_terminal_without_a_request_it_says_how(caller: Caller) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [CORRAL, "tool"], stdin=theirs, env=caller.variables, capture_output=True, timeout=30
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert done.stdout.startswith(b"usage: corral tool")


def test_a_request_that_is_too_large_is_refused_with_its_id_and_not_kept(caller: Caller) -> None:
    text = json.dumps(call("write_file", "big", path="x", content="x" * 20_000_000)).encode()
    answer, code = caller.asks(text)
    assert (answer["error_code"], answer["request_id"], code) == ("resource_limit", "big", 1)
    assert not (caller.workspace / "x").exists()


def test_every_call_is_recorded_with_what_was_decided(caller: Caller) -> None:
    (caller.workspace / "gone").write_text("")
    caller.asks(call("read_file", path="../x"))
    caller.asks(shell("rm gone"))
    caller.asks(shell("rm gone", force=True))
    caller.asks(shell("exit 3"))
    caller.asks(b"{bad")
    seen = [(r.get("tool"), r["decision"], r.get("risk"), r.get("exit")) for r in caller.records()]
    assert seen == [
        ("read_file", "refused", None, None),
        ("run_shell", "refused", "dangerous", None),
        ("run_shell", "forced", "dangerous", 0),
        ("run_shell", "allowed", seen[3][2], 3),
        (None, "failed", None, None),
    ]
    assert all(r["front"] == "tool" and "enforcing" in r["posture"] for r in caller.records())


# ---- the examples of the document that these tools go back to, typed as they stand there ----


def typed(caller: Caller, line: str) -> tuple[dict[str, object], int]:
    done = subprocess.run(
        ["bash", "-c", line], cwd=caller.workspace, env=caller.variables, capture_output=True, timeout=30
    )
    assert done.stderr == b""
    answer: dict[str, object] = json.loads(done.stdout)
    return answer, done.returncode


def test_a_sensitive_path_outside_is_blocked_as_documented(caller: Caller) -> None:
    answer, code = typed(
        caller, """echo '{"tool":"read_file","args":{"path":"../.ssh/id_rsa"}}' | corral tool"""
    )
    assert (answer["ok"], answer["error"], code) == (False, "blocked: sensitive path: ../.ssh/id_rsa", 1)


READ = """echo '{"tool":"read_file","args":{"path":"config.yaml"}}' | corral tool"""
EDIT = (
    """echo '{"tool":"edit_file","args":{"path":"config.yaml","old_text":"port: 8080","new_text":"port: 9090"}}'"""
    " | corral tool"
)


def test_read_and_edit_in_two_commands_as_documented(caller: Caller) -> None:
    config = caller.workspace / "config.yaml"
    config.write_text("host: a\nport: 8080\n")
    assert typed(caller, READ)[1] == 0
    assert typed(caller, EDIT)[1] == 0
    assert config.read_text() == "host: a\nport: 9090\n"


def test_a_change_between_the_two_commands_is_refused_as_documented(caller: Caller) -> None:
    config = caller.workspace / "config.yaml"
    config.write_text("host: a\nport: 8080\n")
    assert typed(caller, READ)[1] == 0
    config.write_text("host: b\nport: 8080\n")
    answer, code = typed(caller, EDIT)
    assert code == 1
    assert answer["error"] == (
        "file modified since last read (mtime changed). Re-read before writing: config.yaml"
    )
    assert config.read_text() == "host: b\nport: 8080\n"


def test_a_file_is_written_as_documented(caller: Caller) -> None:
    request = r"""{"tool":"write_file","args":{"path":"data.json","content":"{\"status\":\"ok\"}\n"}}"""
    line = f"echo '{request}' | corral tool"
    assert typed(caller, line)[1] == 0
    assert (caller.workspace / "data.json").read_text() == '{"status":"ok"}\n'


def test_a_dangerous_command_is_blocked_and_forced_as_documented(caller: Caller) -> None:
    (caller.workspace / "build-cache").mkdir()
    answer, code = typed(
        caller, """echo '{"tool":"run_shell","args":{"command":"rm -rf build-cache"}}' | corral tool"""
    )
    assert (answer["ok"], answer["risk"], code) == (False, "dangerous", 1)
    assert str(answer["error"]).startswith("blocked by risk classifier: dangerous — ")
    assert answer["suggestion"] == "pass force:true in args to override, or use a less-destructive command"
    assert (caller.workspace / "build-cache").exists()
    line = """echo '{"tool":"run_shell","args":{"command":"rm -rf /tmp/build-cache","force":true}}' | corral tool"""
    answer, code = typed(caller, line)
    assert (answer["ok"], answer["risk"], code) == (True, "dangerous", 0)
