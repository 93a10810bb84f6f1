"""related_context: what is pointed to, in which order, and what never is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import Policy
from corral.config import load_policy
from corral.errors import ConfigError
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


def note(path: Path, body: str = "", **fields: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "".join(f"{key}: {value}\n" for key, value in fields.items())
    path.write_text(f"---\n{head}---\n{body}" if fields else body)
    return path


@pytest.fixture
def home(room: Room) -> Path:
    return room.root.parent


def found(room: Room, query: str, **args: Any) -> list[str]:
    return [one["name"] for one in room.json("related_context", query=query, **args)["results"]]


@case("jinn-106")
def test_the_best_match_comes_first_with_name_and_path_and_no_content(room: Room, home: Path) -> None:
    kb = home / ".claude/kb"
    best = note(kb / "go/testing.md", "# Testing in Go\nthe-body", name="go-testing", tags="[go, tests]")
    note(kb / "go/errors.md", "# Errors\nSometimes testing.", name="go-errors")
    note(kb / "cooking.md", "# Cooking\nsoup", name="cooking")
    answer = room.json("related_context", query="go testing")
    assert [one["name"] for one in answer["results"]] == ["go-testing", "go-errors"]
    first = answer["results"][0]
    assert first["path"] == str(best)
    assert (first["type"], first["title"], first["category"], first["tags"]) == (
        "kb",
        "Testing in Go",
        "go",
        ["go", "tests"],
    )
    assert found(room, "test") == ["go-testing"]  # by its plural among the tags
    assert found(room, "nothing-of-that") == []
    assert answer["index"]["entry_count"] == 3
    assert answer["warnings"] == []


@case("jinn-106")
def test_types_limits_and_clients(room: Room, home: Path) -> None:
    for number in range(8):
        note(home / f".claude/kb/n{number}.md", name=f"topic-{number}")
    note(home / ".claude/skills/topic/SKILL.md", name="topic-skill")
    note(home / ".claude/skills/topic/reference.md", name="topic-reference")
    note(home / ".claude/agents/topic.md", name="topic-agent")
    note(home / ".claude/commands/topic.md", name="topic-command")
    note(home / ".codex/skills/topic/SKILL.md", name="topic-codex")
    note(home / ".pi/agent/skills/topic/SKILL.md", name="topic-pi")
    kb = [f"topic-{number}" for number in range(5)]
    assert found(room, "topic") == kb
    assert found(room, "topic", limit=2) == kb[:2]
    assert len(found(room, "topic", limit=99)) == 8
    own = room.call(
        "related_context", client="claude-code", query="topic", types=["skill", "agent", "command"]
    )
    names = [one["name"] for one in json.loads(own["result"])["results"]]
    assert names == ["topic-agent", "topic-command", "topic-skill"]
    asked = {"types": ["skill"]}
    response = room.engine.call(
        {"tool": "related_context", "args": {"query": "topic", "client": "codex", **asked}}
    )
    assert [one["name"] for one in json.loads(response["result"])["results"]] == ["topic-codex"]
    everybody = room.engine.call(
        {"tool": "related_context", "args": {"query": "topic", "client": "all", **asked}}
    )
    assert len(json.loads(everybody["result"])["results"]) == 3


@case("jinn-106")
def test_the_index_is_kept_until_something_changes_each_client_its_own(
    room: Room, home: Path, tmp_path: Path
) -> None:
    target = note(home / ".claude/kb/a.md", name="topic")

    def rebuilt(**args: Any) -> bool:
        request = {"tool": "related_context", "args": {"query": "topic", **args}}
        return bool(json.loads(room.engine.call(request)["result"])["index"]["rebuilt"])

    assert rebuilt()
    assert not rebuilt()
    assert rebuilt(rebuild=True)
    assert rebuilt(client="pi")
    assert not rebuilt()
    caches = sorted(path for path in (tmp_path / "state").glob("context-index-*"))
    assert [path.name for path in caches] == ["context-index-none.json", "context-index-pi.json"]
    assert {path.stat().st_mode & 0o777 for path in caches} == {0o600}
    note(target, name="another-topic")
    assert rebuilt()
    assert found(room, "topic") == ["another-topic"]
    caches[0].write_text('{"signature": 1')
    assert rebuilt()


@case("jinn-106")
def test_configured_directories_count_and_those_that_cannot_be_used_are_told(
    room: Room, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    note(notes / "a.md", name="topic")
    note(tmp_path / "file", "x")
    note(tmp_path / "hidden/.ssh/notes/b.md", name="topic-secret")
    os.symlink(tmp_path / "hidden/.ssh/notes", tmp_path / "innocent")
    paths = [
        notes,
        tmp_path / "gone",
        tmp_path / "file",
        tmp_path / "hidden/.ssh/notes",
        tmp_path / "innocent",
    ]
    with open_room(room.root, Policy.off(related_context=tuple(map(str, paths)))) as configured:
        answer = configured.json("related_context", query="topic")
    assert [one["name"] for one in answer["results"]] == ["topic"]
    assert [warning.rpartition(": ")[2] for warning in answer["warnings"]] == [
        "is not there",
        "is not a directory",
        "sensitive path (.ssh), left out",
        "sensitive path (.ssh), left out",
    ]
    answer = room.json("related_context", query="topic")
    assert answer["results"] == []
    assert len(answer["warnings"]) == 1
    assert "no sources" in answer["warnings"][0]


@case("jinn-106")
def test_nothing_below_a_sensitive_name_and_nothing_behind_a_link_is_pointed_to(
    room: Room, home: Path, tmp_path: Path
) -> None:
    kb = home / ".claude/kb"
    note(kb / "plain.md", name="topic")
    for name in (".ssh", "deep/.git", ".env", ".env.d", "a/b/.aws", ".gnupg"):
        note(kb / name / "x.md", name="topic-secret", description="topic")
    note(tmp_path / "outside/x.md", name="topic-outside")
    os.symlink(tmp_path / "outside", kb / "link")
    os.symlink(tmp_path / "outside/x.md", kb / "link.md")
    os.link(kb / ".ssh/x.md", kb / "twin.md")
    os.mkfifo(kb / "fifo.md")
    note(home / ".claude/skills/.ssh/SKILL.md", name="topic-skill")
    assert found(room, "topic") == ["topic"]
    response = room.call("related_context", client="claude", query="topic")
    assert "secret" not in response["result"]
    assert "topic-skill" not in response["result"]


@case("jinn-106")
def test_a_path_that_is_told_gains_no_right(room: Room, home: Path) -> None:
    note(
        home / ".claude/kb/a.md", "# Topic\nthe-body-of-it, and more of it", name="topic", description="about"
    )
    answer = room.text("related_context", query="topic")
    assert "the-body-of-it" not in answer
    (result,) = json.loads(answer)["results"]
    for tool, args in (
        ("read_file", {"path": result["path"]}),
        ("search_files", {"pattern": "x", "path": result["path"]}),
    ):
        assert room.refused(tool, **args)[0] == "path_outside_sandbox"


def test_plugins_of_claude_count_if_they_lie_below_home(room: Room, home: Path, tmp_path: Path) -> None:
    note(home / ".claude/plugins/cache/one/skills/s/SKILL.md", name="topic-plugin")
    note(tmp_path / "elsewhere/skills/s/SKILL.md", name="topic-elsewhere")
    installed = {
        "plugins": {
            "one@x": [{"installPath": str(home / ".claude/plugins/cache/one")}],
            "two@x": {"installPath": str(tmp_path / "elsewhere")},
            "odd": 5,
        }
    }
    manifest = home / ".claude/plugins/installed_plugins.json"

    def names() -> list[str]:
        response = room.call("related_context", client="claude", query="topic")
        return [one["name"] for one in json.loads(response["result"])["results"]]

    manifest.write_text(json.dumps(installed))
    assert names() == []  # one entry is none, so none of them is believed
    del installed["plugins"]["odd"]
    manifest.write_text(json.dumps(installed))
    assert names() == ["topic-plugin"]


def test_notes_of_any_kind_are_no_trouble(room: Room, home: Path) -> None:
    kb = home / ".claude/kb"
    for number, content in enumerate(
        [
            b"",
            b"---\n",
            b"---\nname: x\n",
            b"\xff\xfe\x00",
            b"---\ntags:\n- a\n- b\n---\n",
            b"# \n",
            b"x" * 100_000,
        ]
    ):
        (kb / f"{number}.md").parent.mkdir(parents=True, exist_ok=True)
        (kb / f"{number}.md").write_bytes(content)
    note(kb / "long.md", description="topic " * 200, name="long")
    (only,) = room.json("related_context", query="topic")["results"]
    assert len(only["description"]) == 243


def test_the_directories_come_from_the_users_config_and_from_no_project(room: Room, tmp_path: Path) -> None:
    note(tmp_path / "config/corral.toml", f'[related_context]\npaths = ["~/notes", "{tmp_path}/more"]\n')
    assert load_policy().related_context == (f"{room.root.parent}/notes", f"{tmp_path}/more")
    note(room.root / "corral.toml", '[related_context]\npaths = ["/etc"]\n')
    with pytest.raises(ConfigError, match="only the user's config"):
        load_policy(project=room.root)
