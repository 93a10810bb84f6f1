"""The text of `corral init` says what is so."""

from __future__ import annotations

import pytest

from config.desk import Desk
from corral.approval import ANSWERS, LEVELS, RiskRow
from corral.claims import CLAIMS
from corral.config import DEFAULT_TEXT, default_text, load_policy
from corral.config.agents import AGENTS
from corral.config.schema import ALIASES, KEYS, SETTINGS
from corral.paths.sensitive import KEY_MATERIAL
from corral.policy import MODES, Grant, Policy
from corral.variables import default_rules


def with_settings(text: str) -> str:
    """The # taken off every setting, as a person would."""
    return "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in text.splitlines()
    )


def with_examples(text: str) -> str:
    """And off the examples too, which are no defaults."""
    starts = (
        *("# writable =", "# [", "# path =", "# access =", "# missing =", "# mode =", "# limits."),
        *(
            "# verb =",
            "# options =",
            "# reason =",
            "# refuse =",
            "# exact =",
            "# level =",
            "# jail =",
            "# agent =",
        ),
        *(
            "# commands =",
            "# own =",
            "# shared =",
            "# guarded =",
            "# state =",
            "# programs =",
            "# keep =",
            "# set =",
        ),
    )
    return "\n".join(line[2:] if line.startswith(starts) else line for line in text.splitlines())


def test_as_it_is_written_it_changes_nothing(desk: Desk) -> None:
    desk.user(DEFAULT_TEXT)
    assert load_policy() == Policy()
    assert desk.load().given == ()


def test_every_setting_uncommented_means_the_defaults(desk: Desk) -> None:
    desk.user(with_settings(default_text()))
    assert load_policy() == Policy()
    assert desk.load().given != ()


def test_the_examples_are_valid_too(desk: Desk) -> None:
    desk.user(with_examples(with_settings(default_text())))
    policy = load_policy()
    assert policy.writable == ("src/**", "out/*.md")
    assert policy.grants == (Grant.rw("~/.cache/pip", "create"),)
    assert policy.approval.rows == (
        RiskRow(verb="terraform", options="-destroy --destroy", reason="never from here", refuse=True),
        RiskRow(exact="rm -rf build", level="caution"),
    )
    loaded = desk.load()
    assert (loaded.policy.jail, loaded.settings.agent) == ("web", AGENTS["claude"])
    careful = load_policy("careful")
    assert (careful.mode, careful.limits.wall) == ("read-only", 600)


@pytest.mark.parametrize("key", [key for key in (*KEYS, *SETTINGS) if key not in ALIASES])
def test_no_key_is_left_out(key: str) -> None:
    name = key.partition(".")[2] or key
    lines = default_text().splitlines()
    assert any(line.lstrip("# ").startswith((f"{name} =", f"[[{name}]]", f"[{name}.")) for line in lines)


def test_it_names_all_that_is_hidden_dropped_or_can_be_demanded() -> None:
    words = set(default_text().replace("#", " ").replace(",", " ").replace(".", " .").split())
    assert words >= {*CLAIMS, *MODES, *ANSWERS, *LEVELS, *RiskRow._fields}
    words = set(default_text().replace("#", " ").replace(",", " ").split())
    assert words >= {*KEY_MATERIAL, *(rule.name for rule in default_rules())}
    for agent in AGENTS.values():
        assert words >= {*agent.own, *agent.shared, *agent.guarded, *agent.state, *agent.keep}


def test_no_line_is_too_long() -> None:
    assert max(map(len, default_text().splitlines())) <= 100
    assert default_text().endswith("\n")
