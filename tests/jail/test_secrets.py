"""Secrets and injections in the environment, and Corral's own directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cases import case
from corral import EnvRule, Grant, LocalEnvironment, Policy, PolicyError
from corral.variables import default_rules, scrub
from jail.world import SECRET, World

pytestmark = pytest.mark.jail

# From jai.md 1.7, and the names that were added: one variable for each rule.
SECRETS = (
    *(
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "MY_APIKEY",
        "NPM_CONFIG__AUTH",
        "SOME_AUTH_TOKEN",
        "PB_TOKEN",
    ),
    *("AZURE_STORAGE_CONNECTION_STRING", "X_CREDENTIAL", "X_CREDENTIALS", "X_KEY", "X_PASSWD", "X_PASSWORD"),
    *(
        "X_PRIVATE_KEY",
        "X_PWD",
        "X_SECRET",
        "X_SECRET_KEY",
        "PGPASSWORD",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "APIKEY",
    ),
    *(
        "AZURE_CLIENT_ID",
        "AZURE_TENANT_ID",
        "BB_AUTH_STRING",
        "DATABASE_URL",
        "KUBECONFIG",
        "MAIL",
        "REDIS_URL",
    ),
    *("GOOGLE_APPLICATION_CREDENTIALS", "MONGODB_URI", "MONGO_URI", "SENTRY_DSN", "SLACK_WEBHOOK_URL"),
    *(
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "DBUS_SESSION_BUS_ADDRESS",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
    ),
)
INJECTIONS = (
    *(
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "PERL5OPT",
    ),
    *("GIT_SSH_COMMAND", "GIT_DIR", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_PAGER", "GIT_EXTERNAL_DIFF"),
    *("BASH_FUNC_ls%%", "RUBYOPT", "PROMPT_COMMAND"),
)
HARMLESS = (
    *(
        "LANG",
        "TERM",
        "EDITOR",
        "PATH",
        "HOME",
        "USER",
        "KEYBOARD",
        "MONKEY",
        "TOKENIZERS_PARALLELISM",
        "PWD",
    ),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "PYTHONPATH"),
)


@case("peers-E1", "peers-E3")
@pytest.mark.parametrize("names", [SECRETS, INJECTIONS], ids=["secrets", "injections"])
def test_variables_that_hold_secrets_or_inject_code_are_absent_and_named(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    for name in (*names, *HARMLESS):
        if name not in ("PATH", "HOME", "PYTHONPATH"):
            monkeypatch.setenv(name, SECRET if name in names else "plain")
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", "/nonexistent"))
    with world.environment(backend) as environment:
        done = environment.run(["env"])
    seen = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert seen & set(names) == set()
    assert SECRET not in done.stdout
    assert set(names) <= set(done.removed)
    assert set(HARMLESS) <= seen


def test_the_default_rules_drop_these_names_and_no_harmless_one() -> None:
    scrubbed = scrub(default_rules(), dict.fromkeys((*SECRETS, *INJECTIONS, *HARMLESS), "x"))
    assert set(scrubbed.removed) == {*SECRETS, *INJECTIONS}
    assert set(scrubbed.variables) == set(HARMLESS)


@case("peers-E3")
def test_a_start_up_file_is_not_run_by_the_shell(
    backend: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = world.workspace / "start"
    script.write_text("echo injected")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(script))
    (world.home / ".bashrc").write_text("echo rc")
    (world.home / ".bash_profile").write_text("echo profile")
    with world.environment(backend) as environment:
        assert environment.shell("echo plain").stdout == "plain\n"


def test_rules_are_one_ordered_list_and_the_last_that_matches_decides(
    world: World, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "kept")
    monkeypatch.setenv("OTHER_TOKEN", "x")
    monkeypatch.setenv("PLAIN", "x")
    rules = (
        *default_rules(),
        EnvRule("keep", "MY_*"),
        EnvRule("drop", "PLAIN"),
        EnvRule("set", "ADDED", "value"),
    )
    with world.environment(backend, environment=rules) as environment:
        done = environment.run(["env"])
    seen = set(done.stdout.splitlines())
    assert {"MY_TOKEN=kept", "ADDED=value"} <= seen
    assert {"OTHER_TOKEN", "PLAIN"} <= set(done.removed)
    assert "x" not in {line.partition("=")[2] for line in seen if line.startswith(("OTHER", "PLAIN"))}


@pytest.mark.parametrize("own", [".config/corral", ".local/state/corral"])
def test_corrals_own_directories_are_hidden_and_stay_as_they_are(world: World, own: str) -> None:
    path = world.home / own
    path.mkdir(parents=True, exist_ok=True)
    (path / "policy").write_text(SECRET)
    with world.environment("namespaces") as environment:
        assert SECRET not in environment.shell(f"cat {path}/*").stdout
        for line in (
            f"echo x > {path}/policy",
            f"mkdir -p {path}/new",
            f"rm -rf {path}",
            f"mv {path.parent} x",
        ):
            environment.shell(line)
        assert environment.shell("echo x > here").ok
    assert (path / "policy").read_text() == SECRET
    assert not (path / "new").exists()


def test_corrals_own_directories_cannot_be_changed_in_the_landlock_tier(world: World) -> None:
    path = world.home / ".config/corral"
    path.mkdir(parents=True)
    (path / "corral.toml").write_text("kept")
    with world.environment("landlock") as environment:
        for line in (f"echo x > {path}/corral.toml", f"rm -rf {path}", f"mkdir {path}/new"):
            assert not environment.shell(line).ok
    assert (path / "corral.toml").read_text() == "kept"
    assert os.listdir(path) == ["corral.toml"]


@pytest.mark.parametrize("variable", ["CORRAL_CONFIG_DIR", "CORRAL_STATE_DIR"])
def test_a_directory_of_corrals_that_was_moved_is_protected_where_it_is(
    world: World, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (world.outside / "own", world.base / "own"):
        place.mkdir()
        (place / "policy").write_text(SECRET)
        monkeypatch.setenv(variable, str(place))
        with world.environment("namespaces") as environment:
            assert SECRET not in environment.run(["cat", str(place / "policy")]).stdout
            assert not environment.shell(f"echo x > {place}/new").ok
        assert (place / "policy").read_text() == SECRET


def test_corrals_own_directories_cannot_be_granted_or_be_the_workspace(
    world: World, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = world.home / ".config/corral/below"
    own.mkdir(parents=True)
    for place in (own, own.parent):
        with pytest.raises(PolicyError, match="Corral's own"):
            world.environment(backend, grants=(Grant.rw(str(place)),))
        with pytest.raises(PolicyError, match="Corral's own"):
            LocalEnvironment(place, Policy.workspace_write(backend=backend))
    with pytest.raises(PolicyError, match="whole file system"):
        world.environment(backend, grants=(Grant.rw("/"),))


def test_the_projects_own_file_stays_as_it_is(world: World) -> None:
    project = world.workspace / "corral.toml"
    project.write_text("kept")
    with world.environment("namespaces") as environment:
        for line in (
            "echo x > corral.toml",
            "rm corral.toml",
            "mv corral.toml x",
            "echo > y; mv y corral.toml",
        ):
            assert not environment.shell(line).ok, line
        assert environment.shell("cat corral.toml; echo x > other").stdout == "kept"
    assert project.read_text() == "kept"
    with world.environment("landlock") as environment:
        assert "project-config" in environment.posture.not_covered


def test_root_of_the_temp_directory_is_private_to_its_user(world: World, backend: str) -> None:
    with world.environment(backend) as environment:
        environment.run(["true"])
        parent = Path("/tmp", f"corral-{os.getuid()}")
        assert parent.stat().st_mode & 0o077 == 0
        assert parent.stat().st_uid == os.getuid()
