"""What docs/configuration.md shows is valid, and it leaves no key out."""

from __future__ import annotations

from pathlib import Path

from config.desk import Desk
from corral.config.schema import ALIASES, KEYS, NEVER_IN_PROJECTS, SETTINGS

TEXT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_its_examples_load(desk: Desk) -> None:
    examples = [part.split("```")[0] for part in TEXT.split("```toml\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        (desk.theirs if example.startswith("# project") else desk.user)(example)
    assert desk.load().policy.mode == "read-only"
    assert desk.load("online").policy.network == "off"
    approval = desk.load().policy.approval
    assert (approval.caution, approval.dangerous, approval.allow_force) == ("ask", "refuse", False)
    assert [row.verb or row.exact for row in approval.rows] == ["terraform", "make", "rm -rf build"]


def test_its_table_has_every_key_and_says_which_a_project_may_have() -> None:
    rows = [line.split("|") for line in TEXT.splitlines() if line.startswith("| `")]
    for key in (*KEYS, *SETTINGS):
        if key in ALIASES:
            continue
        shown = {"agents": "`[agents.NAME]`"}.get(
            key, f"`[[{key}]]`" if key in ("grant", "risk") else f"`{key}`"
        )
        (row,) = (cells for cells in rows if shown in cells[1].split(", ") or shown in cells[1])
        assert row[-2].strip().startswith("no") == (key in NEVER_IN_PROJECTS) or key == "shared-memory"
