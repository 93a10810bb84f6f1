"""`[approval]` and `[[risk]]`: what a config says of commands, and how a project can only make it stricter."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from cases import case
from config.desk import Desk
from corral.approval import Approval, RiskRow
from corral.config import load_policy

BUILD = RiskRow(exact="rm -rf build", level="caution")
FROB = RiskRow(verb="frob", reason="production")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Approval()),
        ('[approval]\ncaution = "ask"\ndangerous = "ask"', Approval(caution="ask", dangerous="ask")),
        ('approval = {safe = "ask", allow-force = false}', Approval(safe="ask", allow_force=False)),
        ('approval.flag-forms = "ask"', Approval(flag_forms="ask")),
        ('approval.allow = ["npm run", "git status"]', Approval(allow=("npm run", "git status"))),
        ('[[risk]]\nexact = "rm -rf build"\nlevel = "caution"', Approval(rows=(BUILD,))),
        ('[[risk]]\nverb = "frob"\nreason = "production"', Approval(rows=(FROB,))),
        (
            'risk = [{verb = "cp", options = "-f", args = "*.env", level = "caution", reason = "x"}]',
            Approval(rows=(RiskRow(verb="cp", options="-f", args="*.env", level="caution", reason="x"),)),
        ),
    ],
)
def test_a_key_sets_its_part_of_the_approval(desk: Desk, text: str, expected: Approval) -> None:
    desk.user(text)
    assert load_policy().approval == expected
    assert ("approval" in desk.load().given) == bool(text)


def test_a_profile_changes_answers_adds_to_lists_and_replaces_rows_about_the_same(desk: Desk) -> None:
    desk.user(
        '[approval]\ncaution = "ask"\nallow = ["npm run"]\n'
        '[[risk]]\nverb = "frob"\nreason = "production"\n'
        '[[risk]]\nexact = "rm -rf build"\nlevel = "caution"\n'
        '[profile.x]\napproval.dangerous = "ask"\napproval.allow = ["npm run", "git"]\n'
        '[[profile.x.risk]]\nexact = "rm  -rf build"\nlevel = "safe"\n'
    )
    assert load_policy("x").approval == Approval(
        caution="ask",
        dangerous="ask",
        allow=("npm run", "git"),
        rows=(FROB, RiskRow(exact="rm  -rf build", level="safe")),
    )


# The text, the line that is wrong, and what the message must hold.
WRONG: list[tuple[str, int, tuple[str, ...]]] = [
    ('[approval]\ndangerus = "ask"', 2, ('"dangerus" in [approval]', "(did you mean dangerous?)")),
    ('[approval]\n\ndangerous = "asks"', 3, ('unknown answer "asks"', "(did you mean ask?)")),
    ("[approval]\nsafe = true", 2, ("approval.safe must be a string",)),
    ("[approval]\nallow-force = 1", 2, ("must be true or false",)),
    ("[approval]\nallow_force = false", 2, ("(did you mean approval.allow-force?)",)),
    ("force = true", 1, ("(did you mean approval.allow-force?)",)),
    ('approval = "ask"', 1, ("(did you mean [approval]?)",)),
    ('approval.allow = "git"', 1, ('(did you mean ["git"]?)',)),
    ('approval.allow = ["git",\n"git; ls"]', 2, ("not the beginning of one plain command",)),
    ('approval.allow = ["git",\n"env"]', 2, ("would allow everything",)),
    ('approval.allow = ["git",\n"git"]', 2, ("twice",)),
    ('[risk]\nverb = "x"', 1, ("(did you mean [[risk]]?)",)),
    ('risk = ["x"]', 1, ("risk must be a table",)),
    (
        '[[risk]]\nverb = "x"\nreason = "y"\n\n[[risk]]\nverb = "z"\nlevle = "caution"',
        7,
        ("(did you mean level?)",),
    ),
    (
        '[[risk]]\nverb = "x"\nreason = "y"\nlevel = "cautoin"',
        4,
        ("unknown level", "(did you mean caution?)"),
    ),
    ('[[risk]]\nverb = "x"\nreason = "y"\nlevel = 3', 4, ("risk level must be a string",)),
    ('[[risk]]\nverb = "x"\nreason = "y"\nlevel = "safe"', 4, ("can only raise", "exact")),
    ('[[risk]]\nverb = "x"\nreason = "y"\nlevel = "caution"\nrefuse = true', 4, ("above every level",)),
    ('[[risk]]\nverb = "x"\nreason = 3', 3, ("reason must be a text",)),
    ('[[risk]]\nverb = "x"\nreason = ""', 3, ("reason is empty",)),
    ('[[risk]]\nverb = "x"', 1, ("needs a reason",)),
    ('[[risk]]\nverb = "x"\nreason = "a\\nb"', 3, ("one line",)),
    ('[[risk]]\nverb = "a/b"\nreason = "y"', 2, ("bare name",)),
    ('[[risk]]\nverb = "x"\noptions = "force"\nreason = "y"', 3, ("names like -f",)),
    ('[[risk]]\nreason = "y"', 1, ("needs verb or exact",)),
    ('[[risk]]\nverb = "x"\nexact = "x y"\nlevel = "safe"', 3, ("not both",)),
    ('[[risk]]\nexact = "x $y"\nlevel = "safe"', 2, ("one plain command",)),
    ('[[risk]]\nexact = "x y"', 1, ("needs a level",)),
    ('[[risk]]\nexact = "x y"\nlevel = "safe"\nargs = "z"', 4, ("goes with verb",)),
    (
        '[[risk]]\nexact = "x y"\nlevel = "safe"\n[[risk]]\nexact = "x  y"\nlevel = "caution"',
        4,
        ("the same as row 1",),
    ),
    ('[profile.a]\n[[profile.a.risk]]\nverb = "x"', 2, ("needs a reason",)),
]


@case("peers-L5")
@pytest.mark.parametrize(("text", "line", "parts"), WRONG)
def test_a_wrong_line_is_refused_with_file_line_and_the_nearest_name(
    desk: Desk, text: str, line: int, parts: tuple[str, ...]
) -> None:
    desk.user(text)
    message = desk.refusal(desk.user_file, line)
    for part in parts:
        assert part in message


# ---- a project ----


@pytest.mark.parametrize(
    ("user", "theirs", "changed"),
    [
        ("", 'approval.caution = "ask"', {"caution": "ask"}),
        ('approval.dangerous = "allow"', 'approval.dangerous = "ask"', {"dangerous": "ask"}),
        (
            'approval.dangerous = "ask"',
            'approval.dangerous = "refuse"',
            {"dangerous": "refuse", "allow_force": False},
        ),
        ("", "approval.allow-force = false", {"allow_force": False}),
        ("", "approval.allow-force = true", {}),
        ("", 'approval.flag-forms = "ask"', {"flag_forms": "ask"}),
        ('approval.allow = ["npm run"]', 'approval.safe = "ask"', {"safe": "ask"}),
        ("", '[[risk]]\nverb = "frob"\nreason = "production"', {"rows": (FROB,)}),
        (
            '[[risk]]\nexact = "rm -rf build"\nlevel = "caution"',
            '[[risk]]\nverb = "frob"\nreason = "production"',
            {"rows": (FROB, BUILD)},
        ),
        (
            '[[risk]]\nexact = "rm -rf build"\nlevel = "caution"',
            '[[risk]]\nverb = "rm"\nreason = "ours"',
            {"rows": (RiskRow(verb="rm", reason="ours"),)},
        ),
    ],
)
def test_a_project_may_make_it_stricter(desk: Desk, user: str, theirs: str, changed: dict[str, Any]) -> None:
    desk.user(user)
    before = load_policy()
    desk.theirs(theirs)
    loaded = desk.load()
    assert loaded.policy == before.replace(approval=before.approval.replace(**changed))
    assert any("the project tightens" in notice for notice in loaded.notices) == (loaded.policy != before)


@case("peers-L5")
@pytest.mark.parametrize(
    ("user", "theirs", "line", "part"),
    [
        ("", '[approval]\ncaution = "ask"\ndangerous = "ask"', 3, 'approval.dangerous = "ask" would loosen'),
        ('approval.caution = "refuse"', 'approval.caution = "allow"', 1, 'would loosen the user\'s "refuse"'),
        ('approval.flag-forms = "ask"', 'approval.flag-forms = "allow"', 1, "would loosen"),
        ("approval.allow-force = false", "\napproval.allow-force = true", 2, "would loosen the user's false"),
        (
            "",
            '[[risk]]\nverb = "x"\nreason = "y"\n[[risk]]\nexact = "rm x"\nlevel = "safe"',
            5,
            "only the user's config may",
        ),
        ("", '[[risk]]\nexact = "ls"\nlevel = "dangerous"', 2, "only the user's config may"),
    ],
)
def test_a_project_that_would_make_it_lighter_is_refused(
    desk: Desk, user: str, theirs: str, line: int, part: str
) -> None:
    desk.user(user)
    desk.theirs(theirs)
    message = desk.refusal(desk.project_file, line)
    assert part in message
    assert "may only tighten" in message


def test_a_project_cannot_have_a_list_of_allowed_commands(desk: Desk) -> None:
    desk.theirs('[approval]\nallow = ["git"]')
    assert desk.refusal(desk.project_file, 2) == (
        "approval.allow cannot be set by a project's file; only the user's config may"
    )


def test_a_config_with_rows_is_read_without_the_classifier(desk: Desk) -> None:
    desk.user(
        '[approval]\nallow = ["git status"]\n[[risk]]\nverb = "x"\nargs = "*.env"\nreason = "y"\n'
        '[[risk]]\nexact = "rm x"\nlevel = "caution"\n'
    )
    load_policy()  # from now on the parsed form is kept
    code = (
        "import sys; from corral.config import load_policy\n"
        "assert len(load_policy().approval.rows) == 2\n"
        "heavy = {'re', 'enum', 'hashlib', 'tomllib', 'tree_sitter', 'corral.risk'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    environment = {
        "PYTHONPATH": ":".join(sys.path),
        "HOME": str(desk.home),
        "CORRAL_CONFIG_DIR": str(desk.config),
        "CORRAL_STATE_DIR": str(desk.state),
    }
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env=environment)
