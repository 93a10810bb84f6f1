"""Approval as a part of Policy: carried around, tightened, and cheap."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.approval import ANSWERS, LEVELS, Approval, RiskRow
from corral.errors import PolicyError
from corral.policy import Policy
from corral.risk import review

ROWS = (
    RiskRow(verb="frob", reason="production"),
    RiskRow(verb="make", options="-B", level="caution", reason="slow"),
    RiskRow(verb="curl", refuse=True, reason="no network"),
    RiskRow(exact="make deploy", level="safe"),
    RiskRow(exact="rm -rf build", level="caution"),
)
COMMANDS = [
    "ls",
    "cp a b",
    "rm x",
    "rm -rf build",
    "make deploy",
    "make -B",
    "curl x",
    "frob",
    "npm run a",
    "rm -rf /",
]
COMMANDS += ["sed -i s/a/b/ f", "bash -c ls", "npm run a; ls", "git push"]

answers = st.sampled_from(tuple(ANSWERS))
approvals = st.builds(
    Approval,
    *(answers, answers, answers, answers, st.booleans()),
    st.lists(st.sampled_from(("npm run", "cp", "git push")), unique=True, max_size=2).map(tuple),
    st.lists(st.sampled_from(ROWS), unique=True, max_size=4).map(tuple),
)
quick = settings(database=None, deadline=None)


def test_by_default_safe_and_caution_run_and_dangerous_is_refused() -> None:
    approval = Policy().approval
    assert [approval.at(level) for level in LEVELS] == ["allow", "allow", "refuse"]
    assert approval.allow_force


@quick
@given(approvals)
def test_a_policy_with_an_approval_survives_dict_json_and_pickle(approval: Approval) -> None:
    policy = Policy(approval=approval)
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert hash(copy) == hash(policy)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dangerouss": "ask"}, "'dangerouss' is no key"),
        ({"dangerous": "maybe"}, "must be allow, ask or refuse"),
        ({"allow_force": "yes"}, "true or false"),
        ({"allow": "git"}, "is a list"),
        ({"allow": ["git; ls"]}, "beginning of one plain command"),
        ({"allow": [3]}, "beginning of one plain command"),
        ({"rows": [{"verb": "x", "why": "y"}]}, "'why' is no key"),
        ({"rows": [{"verb": "x"}]}, "needs a reason"),
    ],
)
def test_a_wrong_approval_is_a_policy_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Policy.from_dict({"approval": fields})


@quick
@given(approvals, approvals)
def test_the_stricter_of_two_wins_at_every_level_from_both_sides(a: Approval, b: Approval) -> None:
    tight, other = a & b, b & a
    order = list(ANSWERS)
    for level in (*LEVELS, "flag_forms"):
        ours = getattr(tight, level)
        assert order.index(ours) == max(order.index(getattr(side, level)) for side in (a, b))
        assert ours == getattr(other, level)
    assert tight.allow_force <= (a.allow_force and b.allow_force)
    assert set(tight.allow) == set(a.allow) & set(b.allow)
    assert {row for row in tight.rows if row.verb} == {row for row in (*a.rows, *b.rows) if row.verb}
    assert set(tight.rows) == set(other.rows)
    assert (Policy(approval=a) & Policy(approval=b)).approval == tight


@quick
@given(approvals)
def test_an_approval_and_itself_is_itself(approval: Approval) -> None:
    same = approval & approval
    assert same.replace(rows=()) == approval.replace(rows=())
    assert set(same.rows) == set(approval.rows)


@quick
@given(approvals, approvals, st.sampled_from(COMMANDS), st.booleans(), st.booleans())
def test_nothing_runs_under_two_that_would_not_run_under_each(
    a: Approval, b: Approval, command: str, force: bool, somebody: bool
) -> None:
    def runs(approval: Approval) -> bool:
        return review(command, approval, (lambda r: r.allow()) if somebody else None, force).allowed

    assert not runs(a & b) or (runs(a) and runs(b))


def test_force_does_not_get_past_a_person_because_somebody_else_refuses() -> None:
    both = Approval(dangerous="ask") & Approval(dangerous="refuse")
    assert (both.dangerous, both.allow_force) == ("refuse", False)


def test_a_rule_of_one_side_takes_back_what_both_lower() -> None:
    lowered = Approval(rows=(RiskRow(exact="rm -rf build", level="caution"),))
    assert (lowered & lowered).rows == lowered.rows
    raised = lowered.replace(rows=(*lowered.rows, RiskRow(verb="rm", reason="no")))
    assert [row.exact for row in (lowered & raised).rows] == [""]


@quick
@given(approvals)
def test_a_level_is_never_treated_more_lightly_than_the_one_below(approval: Approval) -> None:
    order = list(ANSWERS)
    at = [order.index(approval.at(level)) for level in LEVELS]
    assert at == sorted(at)


def test_policy_pays_nothing_for_the_classifier() -> None:
    code = (
        "import sys; from corral.policy import Policy; Policy() & Policy()\n"
        "heavy = {'re', 'enum', 'hashlib', 'json', 'tree_sitter', 'corral.risk', 'corral.commands', 'typing'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
