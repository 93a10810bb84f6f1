"""Every block that the documentation shows is run, or parsed, or says why not."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from corral.config import load
from docs.blocks import BLOCKS, LANGUAGES, PAGES, Block, commands_of, in_language
from docs.reader import Reader, objection
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail

# How many blocks are not run, and what each lacks here. Another one is a decision: count it in.
NOT_RUN = {
    "make install; `make stranger` runs it on a fresh Debian": 2,
    "a container engine": 2,
    "it asks, and writes to /etc/apparmor.d": 1,
    "sysctl of the host": 1,
    "a checkout": 3,
    "a systemd user manager": 1,
    "an overlay that the caller mounts": 1,
}
CONSOLE = sorted({block.page for block in in_language("console")})


def test_every_block_has_a_language_that_is_dealt_with() -> None:
    assert not [block.place for block in BLOCKS if block.language not in LANGUAGES]
    assert len(BLOCKS) == sum(page.read_text().count("\n```") for page in PAGES) / 2


def test_what_is_not_run_is_counted() -> None:
    assert Counter(block.not_run for block in BLOCKS if block.not_run) == NOT_RUN


@pytest.mark.parametrize("page", CONSOLE)
def test_every_shown_command_does_what_is_shown(page: str, reader: Reader) -> None:
    skip_unless_host("ordinary-user")
    blocks = [block for block in in_language("console") if block.page == page]
    for block in blocks:
        commands = commands_of(block)
        starts_above = any(command.line.startswith("cd project") for command in commands)
        outcomes = reader.types(commands, reader.home if starts_above else reader.project)
        assert len(outcomes) == len(commands), f"{block.place}: {outcomes}"
        for command, outcome in zip(commands, outcomes, strict=True):
            wrong = objection(command, outcome, str(reader.home))
            assert not wrong, f"{block.place}: {command.line}\n{outcome.said}\n{wrong}"


@pytest.mark.parametrize("block", in_language("python"), ids=lambda block: str(block.place))
def test_every_shown_piece_of_python_runs(block: Block, reader: Reader) -> None:
    done = reader.runs_python(block.text)
    assert done.returncode == 0, f"{block.place}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("block", in_language("toml"), ids=lambda block: str(block.place))
def test_every_shown_config_loads(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tomllib.loads(block.text)
    if block.file:
        return
    monkeypatch.setenv("CORRAL_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path / "state"))
    for name in ("config", "project"):
        (tmp_path / name).mkdir()
    is_project = block.text.startswith("# project")
    (tmp_path / ("project" if is_project else "config") / "corral.toml").write_text(block.text)
    load(project=str(tmp_path / "project"))
    for profile in tomllib.loads(block.text).get("profile", {}):
        load(profile=profile, project=str(tmp_path / "project"))


@pytest.mark.parametrize("block", in_language("json"), ids=lambda block: str(block.place))
def test_every_shown_json_is_json(block: Block) -> None:
    json.loads(block.text)
