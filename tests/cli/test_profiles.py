"""Agents at the command line: stubs that log in, change their settings and leave state behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.typed import Person

pytestmark = pytest.mark.jail

# What every one of them does: it renews its token, plants a hook, leaves a log, and says what it was given.
STUB = """#!/usr/bin/python3
import json, os, sys
home = os.path.expanduser("~")
config = os.environ.get("CLAUDE_CONFIG_DIR") or home + "/.claude"
def put(path, text):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file: file.write(text)
        return "written"
    except OSError as error:
        return type(error).__name__
def get(path):
    try: return open(path).read()
    except OSError as error: return type(error).__name__
told = {"token": get(config + "/.credentials.json"), "settings": get(config + "/settings.json"),
        "ssh": get(home + "/.ssh/id_ed25519"), "other": get(home + "/.codex/auth.json"),
        "renewed": put(config + "/.credentials.json", "token 2"),
        "planted": put(config + "/settings.json", "hook"), "logged": put(config + "/statsig/log", "x"),
        "environment": dict(os.environ), "arguments": sys.argv[1:]}
print(json.dumps(told))
"""
# Home as a copy, or empty and one's own, is not for root.
OWN_HOMES = ("strict",) if os.geteuid() == 0 else ("casual", "bare", "strict")
HOME_SHOWN = "workspace-write" if os.geteuid() == 0 else "casual"
SECRETS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GITHUB_TOKEN": "g", "HTTPS_PROXY": "http://p"}


@pytest.fixture
def logged_in(person: Person) -> Person:
    home = person.world.home
    for name, text in {
        ".claude/.credentials.json": "token 1",
        ".claude/settings.json": "{}",
        ".codex/auth.json": "codex token",
    }.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    (home / ".local/bin").mkdir(parents=True)
    for name in ("claude", "codex", "wrapper", "mine"):
        (home / ".local/bin" / name).write_text(STUB)
        (home / ".local/bin" / name).chmod(0o755)
    person.variables |= {"PATH": f"{home}/.local/bin:{person.variables['PATH']}", **SECRETS}
    return person


def real(person: Person, name: str) -> str:
    return (person.world.home / name).read_text()


@pytest.mark.parametrize("mode", [*OWN_HOMES, "workspace-write", None])
def test_a_token_renewed_inside_is_renewed_outside_and_a_planted_hook_is_not(
    logged_in: Person, mode: str | None
) -> None:
    chosen = ["-m", mode] if mode else []
    told = json.loads(logged_in.reads("run", *chosen, "claude", "hello"))
    assert (told["token"], told["settings"], told["arguments"]) == ("token 1", "{}", ["hello"])
    assert (told["renewed"], told["planted"], told["logged"]) == ("written", "written", "written")
    assert real(logged_in, ".claude/.credentials.json") == "token 2"
    assert real(logged_in, ".claude/settings.json") == "{}"
    assert not (logged_in.world.home / ".claude/statsig").exists()
    assert (told["ssh"], told["other"]) == ("FileNotFoundError", "FileNotFoundError")


@pytest.mark.parametrize("mode", OWN_HOMES)
def test_it_gets_its_own_credentials_among_the_variables(logged_in: Person, mode: str) -> None:
    given = json.loads(logged_in.reads("run", "-m", mode, "claude"))["environment"]
    assert (given["ANTHROPIC_API_KEY"], given["HTTPS_PROXY"]) == ("a", "http://p")
    assert given["DISABLE_AUTOUPDATER"] == "1"
    assert not {"OPENAI_API_KEY", "GITHUB_TOKEN"} & given.keys()


def test_without_its_profile_it_is_a_command_like_any_other(logged_in: Person) -> None:
    for words in (["--no-profile", "claude"], ["wrapper"]):
        jail = ["-j", words[-1]]  # a home of its own: a command may make what is hidden from it
        told = json.loads(logged_in.reads("run", "-m", HOME_SHOWN, *jail, *words))
        assert (told["token"], told["settings"]) == ("FileNotFoundError", "FileNotFoundError")
        assert "ANTHROPIC_API_KEY" not in told["environment"]
        assert real(logged_in, ".claude/.credentials.json") == "token 1"


def test_without_namespaces_it_has_a_directory_of_its_own(logged_in: Person) -> None:
    words = ["run", "-m", "workspace-write", "--backend", "landlock", "--network", "open", "claude"]
    told = json.loads(logged_in.reads(*words))
    assert (told["token"], told["settings"], told["renewed"], told["planted"]) == (
        *("token 1", "{}"),
        *("written", "written"),
    )
    assert real(logged_in, ".claude/.credentials.json") == "token 2"
    assert real(logged_in, ".claude/settings.json") == "{}"
    private = Path(told["environment"]["CLAUDE_CONFIG_DIR"])
    assert private.is_relative_to(logged_in.world.home / ".local/share/corral/agents")
    assert told["environment"]["TMPDIR"]
    again = json.loads(logged_in.reads(*words))
    assert (again["token"], again["settings"]) == ("token 2", "hook")


def test_the_sandbox_of_codex_is_left_to_it_where_it_works(logged_in: Person) -> None:
    def arguments(*words: str) -> list[str]:
        told: list[str] = json.loads(logged_in.reads("run", *words, "codex", "exec"))["arguments"]
        return told

    for mode in OWN_HOMES[:-1]:
        assert arguments("-m", mode) == ["-c", "check_for_update_on_startup=false", "exec"]
    off = ["-c", "check_for_update_on_startup=false", "-c", 'sandbox_mode="danger-full-access"', "exec"]
    assert arguments("-m", "strict") == off
    assert arguments("-m", "workspace-write", "--backend", "landlock", "--network", "open") == off


def test_explain_shows_the_profile_and_warns_of_an_open_desktop(logged_in: Person) -> None:
    text = logged_in.reads("explain", "-m", HOME_SHOWN, "claude")
    assert "profile claude; leave it off with --no-profile" in text
    assert "~/.claude/.credentials.json" in text
    assert "profile claude" not in logged_in.reads("explain", "-m", HOME_SHOWN, "--no-profile", "claude")
    assert "desktop is open" not in text
    assert "desktop is open" in logged_in.reads("explain", "-m", HOME_SHOWN, "--desktop", "true")


def test_an_agent_of_ones_own_is_described_in_the_config(logged_in: Person) -> None:
    logged_in.configures(
        '[agents.mine]\nown = [".codex"]\nshared = [".codex/auth.json"]\nkeep = ["GITHUB_TOKEN"]'
    )
    told = json.loads(logged_in.reads("run", "-m", HOME_SHOWN, "mine"))
    assert (told["other"], told["environment"]["GITHUB_TOKEN"]) == ("codex token", "g")
    assert "OPENAI_API_KEY" not in told["environment"]
