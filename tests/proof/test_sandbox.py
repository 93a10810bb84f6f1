"""The jail as a prefix: the seed's vocabulary, its texts, and commands that somebody else spawns."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import Grant, NotEnforceable, Policy, PolicyError
from corral.config import load_policy
from corral.denials import WRITE_JAIL_HINT, attribute
from corral.jail import host as host_module
from corral.jail import memory, probe
from corral.jail.host import Host, launcher_path
from corral.jail.proofs import Proof
from corral.sandbox import Sandbox
from corral.state import state_directory
from corral.variables import EnvRule
from hostfacts import skip_unless_host
from jail.world import ENVIRONMENT, World, carrying, eventually, fingerprint, new_mark, python
from leaks import no_leaks

pytestmark = pytest.mark.jail

NOTICE = (
    "OS write-sandbox unavailable on this host (no Landlock/Seatbelt); shell writes are NOT OS-confined. "
    "Approval prompts + the hardline floor are the only boundary. See sandbox.mode."
)
REFUSAL = "sandbox required but unavailable on this host — set sandbox.require=false to run unconfined"


def sandbox_of(world: World, backend: str = "auto", mode: str = "workspace-write", **fields: Any) -> Sandbox:
    return Sandbox(Policy(mode=mode, backend=backend, **fields), world.workspace)  # type: ignore[arg-type]


@pytest.fixture
def no_mechanism(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the launcher would find it on a kernel without either; tests/proof/test_hosts.py makes such hosts for real."""
    real = host_module.find_host

    def find_host(home: str) -> Host:
        return real(home).replace(abi=0, no_namespaces="namespaces: Operation not permitted")

    monkeypatch.setattr(host_module, "find_host", find_host)
    shutil.rmtree(state_directory(), ignore_errors=True)
    memory.forget()


def run(sandbox: Sandbox, argv: list[str], cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    """As any program would: the prefix before the words, the variables on top of its own."""
    wrapped = sandbox.wrap_argv(argv, cwd)
    return subprocess.run(
        wrapped,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        env={**os.environ, **sandbox.wrap_env()},
    )


# ---- what is there ----


@case("rubino-1")
def test_in_mode_off_nothing_is_put_before_a_command(world: World) -> None:
    with sandbox_of(world, mode="off") as sandbox:
        assert sandbox.command_prefix() == []
        assert sandbox.wrap_env() == sandbox.extra_env() == {}
        assert sandbox.wrap_argv(["ruby", "-e", "1"]) == ["ruby", "-e", "1"]
        assert sandbox.mode == "off"
        assert sandbox.is_writable("/etc/passwd")


@case("rubino-2")
@pytest.mark.usefixtures("no_mechanism")
def test_without_a_mechanism_it_is_off_and_degraded_and_says_so(world: World) -> None:
    with sandbox_of(world, require=False) as sandbox:
        assert sandbox.available_mechanism == "none"
        assert (sandbox.mode, sandbox.active, sandbox.degraded) == ("off", False, True)
        assert sandbox.degradation_notice == NOTICE
        assert "NOT OS-confined" in NOTICE
        assert sandbox.command_prefix() == []
        assert sandbox.wrap_argv(["true"]) == ["true"]


@pytest.mark.usefixtures("no_mechanism")
def test_without_a_mechanism_and_unless_told_otherwise_there_is_no_prefix_but_a_refusal(world: World) -> None:
    """Ours: the seed's empty prefix would run the command bare."""
    with sandbox_of(world) as sandbox:
        with pytest.raises(NotEnforceable, match="this host cannot hold the policy"):
            sandbox.command_prefix()
        with pytest.raises(NotEnforceable, match="this host cannot hold the policy"):
            sandbox.wrap_argv(["true"])


@case("rubino-3")
@pytest.mark.usefixtures("no_mechanism")
def test_who_asked_for_no_jail_is_not_degraded_where_there_is_none(world: World) -> None:
    with sandbox_of(world, mode="off") as sandbox:
        assert not sandbox.degraded
        assert sandbox.degradation_notice is None
        assert sandbox.refusal_reason is None


@case("rubino-4")
def test_the_prefix_is_the_launcher_and_ends_in_two_dashes(backend: str, world: World) -> None:
    with sandbox_of(world, backend) as sandbox:
        prefix = sandbox.command_prefix()
        assert prefix[0] == launcher_path()
        assert prefix[-1] == "--"
        assert sandbox.wrap_argv(["ruby", "-e", "1"]) == [*prefix, "ruby", "-e", "1"]
        with pytest.raises(PolicyError, match="at least one word"):
            sandbox.wrap_argv([])


@case("rubino-5")
def test_the_prefix_grants_the_real_path_of_the_workspace(backend: str, world: World) -> None:
    (world.home / "link").symlink_to(world.workspace)
    with Sandbox(Policy.workspace_write(backend=backend), world.home / "link") as sandbox:
        assert str(world.workspace) in sandbox.command_prefix()
        assert str(world.home / "link") not in sandbox.command_prefix()
        assert run(sandbox, ["sh", "-c", "echo x > made"]).returncode == 0
    assert (world.workspace / "made").exists()


@case("rubino-6")
def test_seatbelt_is_refused_where_there_is_none(world: World) -> None:
    """Its profile has tests of its own (tests/seatbelt); off macOS nothing of it can run."""
    sandbox = Sandbox(Policy.workspace_write(backend="seatbelt"), world.workspace)
    with pytest.raises(NotEnforceable, match=r"seatbelt: macOS only\. Remedy: that tier is macOS's own"):
        sandbox.command_prefix()
    with pytest.raises(PolicyError, match="unknown backend 'sandbox-exec'"):
        Policy.workspace_write(backend="sandbox-exec")


# ---- places ----


@case("rubino-7")
def test_writable_are_the_workspace_and_a_temp_of_its_own_and_neither_a_neighbour_nor_our_own_home(
    backend: str, world: World
) -> None:
    own = [world.home / ".config/corral", world.home / ".local/state/corral"]
    with sandbox_of(world, backend) as sandbox:
        roots = sandbox.writable_roots()
        assert roots == [str(world.workspace)]
        assert not any(sandbox.is_writable(path / "x") for path in (world.outside, world.home, *own))
        script = f"t=${{TMPDIR:-/tmp}}; echo x > $t/made && cat $t/made && ! echo x > {world.outside}/made"
        done = run(sandbox, ["sh", "-c", script])
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert not (world.outside / "made").exists()


@case("rubino-8")
def test_what_the_config_makes_writable_besides_is_if_it_is_there(backend: str, world: World) -> None:
    (world.home / "link").symlink_to(world.granted)
    config = world.home / ".config/corral/corral.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[sandbox]\nextra_writable = ["{world.home}/link", "{world.home}/missing"]\n')
    with Sandbox(load_policy().replace(backend=backend), world.workspace) as sandbox:
        assert sandbox.writable_roots() == sorted([str(world.workspace), str(world.granted)])
        assert sandbox.is_writable(world.granted / "made")
        assert not sandbox.is_writable(world.home / "missing/made")
        assert run(sandbox, ["touch", f"{world.granted}/made"]).returncode == 0
        assert run(sandbox, ["touch", f"{world.outside}/made"]).returncode != 0
    assert (world.granted / "made").exists()


@case("rubino-9")
def test_in_mode_read_only_the_workspace_is_not_writable_and_the_temp_is(backend: str, world: World) -> None:
    with sandbox_of(world, backend, "read-only") as sandbox:
        assert sandbox.writable_roots() == []
        assert not sandbox.is_writable(world.workspace / "made")
        assert run(sandbox, ["touch", f"{world.workspace}/made"]).returncode != 0
        assert run(sandbox, ["sh", "-c", 'touch "$(mktemp)"']).returncode == 0
    assert list(world.workspace.iterdir()) == []


@case("rubino-10")
def test_a_path_counts_by_where_it_would_really_be(backend: str, world: World) -> None:
    (world.workspace / "out").symlink_to(world.outside)
    (world.outside / "in").symlink_to(world.workspace)
    (world.home / "work-too").mkdir()
    with sandbox_of(world, backend) as sandbox:
        writable = [".", "new", "not/there/yet", "a/../b", str(world.outside / "in/new")]
        closed = ["..", "../work-too/x", "out/new", "a/../../x", "/etc/passwd", "/"]
        assert [path for path in writable if not sandbox.is_writable(path)] == []
        assert [path for path in closed if sandbox.is_writable(path)] == []
        assert sandbox.is_writable("x", cwd=str(world.workspace / "sub"))
        assert not sandbox.is_writable("x", cwd=str(world.outside))


@case("rubino-11")
def test_the_launcher_is_the_one_of_the_package_wherever_another_is_planted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = []
    for place in (".config/corral", ".local/state/corral", ".local/bin", "bin"):
        path = world.home / place / "corral-launch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexit 0\n")
        path.chmod(0o755)
        planted.append(str(path.parent))
    monkeypatch.setenv("PATH", ":".join([*planted, os.environ["PATH"]]))
    import corral

    with sandbox_of(world) as sandbox:
        found = Path(sandbox.command_prefix()[0])
    assert found.parent == Path(str(corral.__file__)).parent / "_launcher"


@case("rubino-16")
def test_a_refusal_is_told_from_an_ordinary_error_and_only_where_it_is_proven_to_be_ours(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts of many tools stand in tests/denials; here is what they hang on."""
    policy = Policy.workspace_write(backend=backend)
    root = str(world.workspace)
    refused = f"bash: line 1: {world.outside}/made: Permission denied"
    denial = attribute(refused, policy, root)
    assert denial is not None
    assert "write-jail — sandbox" in WRITE_JAIL_HINT
    assert attribute(f"bash: line 1: {world.workspace}/made: Permission denied", policy, root) is None
    assert attribute("make: *** No rule to make target 'all'.  Stop.", policy, root) is None
    assert attribute("", policy, root) is None
    assert attribute(refused, Policy.off(), root) is None
    failed = Proof(False, backend, (), (("writes", "make-reg was not refused"),))
    monkeypatch.setattr(probe, "prove", lambda *_: failed)
    shutil.rmtree(state_directory())
    memory.forget()
    assert attribute(refused, policy, root) is None
    assert attribute(refused, policy.replace(require=False), root) is None


@case("rubino-17")
def test_a_directory_that_comes_later_counts_at_the_next_command(backend: str, world: World) -> None:
    """A new prefix: the old one is what it was, and does not widen."""
    later = world.home / "later"
    policy = Policy.workspace_write(backend=backend, grants=(Grant.rw(str(later), missing="skip"),))
    with Sandbox(policy, world.workspace) as sandbox:
        old = sandbox.wrap_argv(["touch", f"{later}/made"])
        assert not sandbox.is_writable(later / "made")
        later.mkdir()
        assert sandbox.is_writable(later / "made")
        assert subprocess.run(old, capture_output=True, timeout=20).returncode != 0
        assert run(sandbox, ["touch", f"{later}/made"]).returncode == 0
    assert (later / "made").exists()


ODD_NAMES = [
    "two words",
    "it's",
    'a "quote"',
    "(brackets)",
    "a\nnewline",
    "back\\slash",
    "comma,colon:",
    "*?[x]",
    "ü",
]


@case("rubino-19")
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_root_of_any_name_is_granted_and_the_rest_is_not(backend: str, world: World, name: str) -> None:
    """Ours: a name with a newline is one like any other. The seed drops it."""
    root = world.home / name
    root.mkdir()
    with Sandbox(Policy.workspace_write(backend=backend), root) as sandbox:
        assert sandbox.writable_roots() == [str(root)]
        done = run(sandbox, ["sh", "-c", "pwd; echo x > made; echo x > ../made"])
        assert done.stdout == f"{root}\n"
    assert (root / "made").exists()
    assert not (world.home / "made").exists()


# ---- texts ----

Fields = dict[str, Any]


@case("rubino-12")
@pytest.mark.parametrize(
    ("fields", "is_there", "text"),
    [
        ({"mode": "off"}, True, "off"),
        ({"mode": "off"}, False, "off"),
        ({"require": True}, False, "OFF (unavailable, required)"),
        ({"require": False}, False, "OFF (unavailable)"),
        ({"require": True, "backend": "landlock"}, True, "workspace-write (landlock, required)"),
        ({"require": False, "backend": "landlock"}, True, "workspace-write (landlock, best-effort)"),
        ({"mode": "read-only"}, True, "read-only (namespaces, required)"),
        ({"mode": "read-only", "require": False}, True, "read-only (namespaces, best-effort)"),
    ],
)
def test_the_status_in_one_line(
    world: World, request: pytest.FixtureRequest, fields: Fields, is_there: bool, text: str
) -> None:
    if not is_there:
        request.getfixturevalue("no_mechanism")
    with sandbox_of(world, **fields) as sandbox:
        assert sandbox.status_summary == text


@case("rubino-13")
def test_active_is_what_is_there_and_not_off(
    backend: str, world: World, request: pytest.FixtureRequest
) -> None:
    for mode, expected in (("workspace-write", True), ("read-only", True), ("off", False)):
        with sandbox_of(world, backend, mode) as sandbox:
            assert sandbox.active is expected
            assert sandbox.mode == mode
            assert sandbox.available_mechanism == backend
    request.getfixturevalue("no_mechanism")
    with sandbox_of(world, backend) as sandbox:
        assert not sandbox.active


@case("rubino-14")
def test_enforcing_is_only_what_was_tried_and_it_is_tried_once(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sandbox_of(world, backend, "off") as sandbox:
        assert not sandbox.enforcing
        assert not sandbox.present_but_not_enforcing
    tried = []

    def not_held(policy: Policy, backend: str, claims: tuple[str, ...]) -> Proof:
        tried.append(backend)
        return Proof(False, backend, (), (("writes", "make-reg was not refused"),))

    with monkeypatch.context() as patched:
        patched.setattr(probe, "prove", not_held)
        with sandbox_of(world, backend) as sandbox:
            assert sandbox.active
            assert not sandbox.enforcing
            assert sandbox.present_but_not_enforcing
            assert sandbox.degraded
            assert len(tried) == 1
    with sandbox_of(world, backend) as sandbox:
        assert sandbox.enforcing
        assert not sandbox.present_but_not_enforcing
        assert not sandbox.degraded
        assert sandbox.refusal_reason is None


@case("rubino-15")
def test_required_is_the_default_and_what_is_required_must_be_proven(
    world: World, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Ours: the seed's default is false, and it takes a helper that is there for one that works."""
    assert Policy().require
    failed = Proof(False, "landlock", (), (("writes", "make-reg was not refused"),))
    with monkeypatch.context() as patched:
        patched.setattr(probe, "prove", lambda *_: failed)
        with sandbox_of(world) as sandbox:
            assert sandbox.required
            assert "present but not enforcing: writes" in str(sandbox.refusal_reason)
            with pytest.raises(NotEnforceable):
                sandbox.wrap_argv(["true"])
        with sandbox_of(world, require=False) as sandbox:
            assert sandbox.refusal_reason is None
            assert sandbox.present_but_not_enforcing
    request.getfixturevalue("no_mechanism")
    with sandbox_of(world) as sandbox:
        assert sandbox.refusal_reason == REFUSAL
    with sandbox_of(world, require=False) as sandbox:
        assert sandbox.refusal_reason is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (True, "workspace-write")),
        ("[sandbox]\nrequire = false", (False, "workspace-write")),
        ("[sandbox]\nrequire = true\nmode = 'read-only'", (True, "read-only")),
        ("[sandbox]\nmode = 'off'", (True, "off")),
    ],
)
def test_the_keys_of_the_seed_are_read(world: World, text: str, expected: tuple[bool, str]) -> None:
    config = world.home / ".config/corral/corral.toml"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    policy = load_policy()
    assert (policy.require, policy.mode) == expected


@case("rubino-18")
@pytest.mark.parametrize("mode", ["workspace", "readonly", "Off", "false", ""])
def test_an_unknown_mode_is_refused_everywhere(world: World, mode: str) -> None:
    """Ours: the seed takes it for workspace-write."""
    with pytest.raises(PolicyError, match="unknown mode"):
        sandbox_of(world, mode=mode)
    config = world.home / ".config/corral/corral.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[sandbox]\nmode = "{mode}"\n')
    with pytest.raises(PolicyError, match=r"corral\.toml:2: "):
        load_policy()


# ---- spawned by somebody else ----

# Each is told what to run by a JSON list in its last argument, and spawns it as such programs do.
SPAWNERS: dict[str, Callable[[], list[str]]] = {
    "python": lambda: python(
        "import json, subprocess, sys; sys.exit(subprocess.call(json.loads(sys.argv[1])))"
    ),
    "node": lambda: [
        "node",
        "-e",
        """const [p, ...a] = JSON.parse(process.argv[1]);
        process.exit(require('child_process').spawnSync(p, a, {stdio: 'inherit'}).status)""",
    ],
}


def spawned_by(spawner: str, argv: list[str]) -> list[str]:
    if spawner == "sh":
        return ["sh", "-c", '"$@"', "sh", *argv]
    if spawner == "node":
        skip_unless_host("no-node")
    return [*SPAWNERS[spawner](), json.dumps(argv)]


WORK = """
import json, os, sys
def can(action):
    try: action(); return True
    except OSError: return False
print(json.dumps({
    "inside": can(lambda: open("made", "w")),
    "outside": can(lambda: open(sys.argv[1] + "/made", "w")),
    "names": sorted(os.environ),
    "arguments": sys.argv[2:],
}))
sys.exit(7)
"""


@pytest.mark.parametrize("spawner", ["python", "sh", "node"])
def test_the_prefix_works_from_any_spawner(
    backend: str, world: World, spawner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    monkeypatch.setenv("LD_LIBRARY_PATH_X", "/x")
    monkeypatch.setenv("PLAIN", "plain")
    words = ["--", "two words", "", "'\"\\", "$HOME"]
    with no_leaks(), sandbox_of(world, backend) as sandbox:
        argv = sandbox.wrap_argv(python(WORK, world.outside, *words))
        command = spawned_by(spawner, argv)
        done = subprocess.run(
            command,
            env={**os.environ, **sandbox.wrap_env()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert (done.returncode, done.stderr) == (7, "")
    said = json.loads(done.stdout)
    assert (said["inside"], said["outside"], said["arguments"]) == (True, False, words)
    assert {"PLAIN", "PATH", "HOME"} <= set(said["names"])
    assert not {"GITHUB_TOKEN", "LD_LIBRARY_PATH_X"} & set(said["names"])
    assert (world.workspace / "made").exists()
    assert not (world.outside / "made").exists()


def test_what_the_policy_sets_travels_beside_the_words_and_never_on_them(backend: str, world: World) -> None:
    """Everybody can read the words of a running program."""
    rules = (
        *Policy().environment,
        EnvRule("set", "DEPLOY_TOKEN", "hush-hush"),
        EnvRule("set", "COLOUR", "green"),
    )
    with sandbox_of(world, backend, environment=rules) as sandbox:
        argv = sandbox.wrap_argv(["sh", "-c", 'echo "$DEPLOY_TOKEN $COLOUR"'])
        assert not any("hush-hush" in word or "green" in word for word in argv)
        assert sandbox.wrap_env()["DEPLOY_TOKEN"] == "hush-hush"
        assert run(sandbox, ["sh", "-c", 'echo "$DEPLOY_TOKEN $COLOUR"']).stdout == "hush-hush green\n"


LOOK_AT_OTHERS = """
import glob
for name in sorted(glob.glob("/proc/[0-9]*/environ")):
    try: print(name, open(name, "rb").read())
    except OSError: pass
"""


def test_a_secret_of_the_spawner_is_in_no_environment_that_can_be_read_inside(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in PID 1's either, which the launcher becomes before it drops the names."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush-" * 3)
    monkeypatch.setenv("PLAIN", "plain")
    with sandbox_of(world, backend) as sandbox:
        done = run(sandbox, python(LOOK_AT_OTHERS))
    assert done.returncode == 0
    assert "PLAIN=plain" in done.stdout
    assert "hush-hush-" not in done.stdout


def test_the_end_of_the_spawner_ends_all_of_it(backend: str, world: World) -> None:
    mark = new_mark()
    with sandbox_of(world, backend) as sandbox:
        script = "sleep 300 & setsid sleep 300 & echo up; wait"
        argv = sandbox.wrap_argv(["sh", "-c", script, mark])
        with subprocess.Popen(
            python("import subprocess, sys; subprocess.call(sys.argv[1:])", *argv),
            stdout=subprocess.PIPE,
            env={**os.environ, **sandbox.wrap_env()},
        ) as spawner:
            assert spawner.stdout is not None
            assert spawner.stdout.readline() == b"up\n"
            assert carrying(mark)
            spawner.send_signal(signal.SIGKILL)
            assert spawner.stdout.read() == b""  # whoever is left would hold it
    assert eventually(lambda: not carrying(mark))


def test_a_prefix_is_refused_once_its_root_is_another_directory(backend: str, world: World) -> None:
    with sandbox_of(world, backend) as sandbox:
        argv = sandbox.wrap_argv(["touch", "made"])
        world.workspace.rename(world.home / "moved")
        world.workspace.symlink_to(world.outside)
        before = fingerprint(world.outside)
        done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, timeout=20)
        world.workspace.unlink()
        world.workspace.mkdir()
        again = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, timeout=20)
    assert (done.returncode, again.returncode) == (125, 125)
    assert done.stderr.count("\n") == 1
    assert fingerprint(world.outside) == before
    assert list(world.workspace.iterdir()) == []


def test_a_command_runs_where_it_was_said_to(backend: str, world: World) -> None:
    (world.workspace / "sub").mkdir()
    with sandbox_of(world, backend) as sandbox:
        assert run(sandbox, ["pwd"], "sub").stdout == f"{world.workspace}/sub\n"
        assert run(sandbox, ["pwd"]).stdout == f"{world.workspace}\n"
        with pytest.raises(PolicyError, match="missing"):
            sandbox.wrap_argv(["pwd"], "missing")


def test_the_network_is_closed_through_the_prefix_too(backend: str, world: World) -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with sandbox_of(world, backend) as sandbox:
            assert run(sandbox, python(connect, port)).returncode != 0
        with sandbox_of(world, backend, network="open") as sandbox:
            assert run(sandbox, python(connect, port)).returncode == 0


def test_a_temporary_file_can_be_made_whatever_the_spawner_calls_its_temp_directory(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.home / "tmp").mkdir()
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(world.home / "tmp"))
    with sandbox_of(world, backend) as sandbox:
        done = run(sandbox, python("import tempfile; tempfile.TemporaryFile(); print(tempfile.gettempdir())"))
        assert done.returncode == 0, done.stderr
        assert run(sandbox, ["mktemp"]).returncode == 0
    assert done.stdout.strip() not in (str(world.home / "tmp"), str(world.workspace))
    assert list((world.home / "tmp").iterdir()) == [] or backend == "landlock"


def test_the_temp_directory_of_a_prefix_is_gone_with_the_sandbox(world: World) -> None:
    with no_leaks(), sandbox_of(world, "landlock") as sandbox:
        done = run(sandbox, ["sh", "-c", "echo x > $TMPDIR/made; echo $TMPDIR"])
        temp = Path(done.stdout.strip())
        assert (temp / "made").exists()
        assert temp.stat().st_mode & 0o077 == 0
    assert not temp.exists()


def test_it_imports_neither_asyncio_nor_the_parser() -> None:
    names = ("asyncio", "tree_sitter", "argparse")
    loaded = f"import sys, corral.sandbox; print([name for name in {names} if name in sys.modules])"
    variables = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", loaded]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=20)
    assert done.stdout == "[]\n"
