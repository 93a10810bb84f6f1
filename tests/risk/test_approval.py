"""What happens at each level, and answers that hold for one command only."""

from __future__ import annotations

import pickle

import pytest

from corral.risk import Approval, Decision, Level, Request, Rules, digest, review
from corral.risk.approval import Answer


def test_by_default_safe_and_caution_run_and_dangerous_is_refused_in_the_known_words() -> None:
    assert review("ls", Approval()).allowed
    assert review("sed -i s/a/b/ f", Approval()).allowed
    refused = review("rm -rf build", Approval())
    assert not refused.allowed
    assert refused.error.startswith("blocked by risk classifier: dangerous — ")
    assert refused.suggestion == "pass force:true in args to override, or use a less-destructive command"
    assert refused.code == "command_blocked"
    assert str(refused.verdict.level) == "dangerous"


def test_force_counts_where_the_host_allows_it_and_is_marked() -> None:
    forced = review("rm -rf build", Approval(), force=True)
    assert (forced.allowed, forced.forced, forced.by) == (True, True, "force")
    unforced = review("ls", Approval(), force=True)
    assert (unforced.allowed, unforced.forced) == (True, False)
    closed = review("rm -rf build", Approval(allow_force=False), force=True)
    assert (closed.allowed, closed.forced) == (False, False)
    assert "force" not in closed.suggestion


def test_force_never_lifts_a_hardline_refusal_nor_stands_in_for_a_person() -> None:
    assert not review("rm -rf /", Approval(), force=True).allowed
    assert not review("rm -rf /", Approval(dangerous="allow"), lambda r: r.allow(), force=True).allowed
    assert not review("rm x", Approval(dangerous="ask"), force=True).allowed


def test_an_approver_sees_exactly_what_will_run_and_its_answer_is_bound_to_it() -> None:
    seen: list[Request] = []

    def approve(request: Request) -> Answer:
        seen.append(request)
        return request.allow()

    asking = Approval(dangerous="ask")
    decision = review("rm x", asking, approve, cwd="/srv/project", extra={"mode": "strict"})
    assert decision.allowed
    assert decision.by == "approver"
    assert (seen[0].command, seen[0].cwd) == ("rm x", "/srv/project")
    assert decision.covers(digest("rm x", "/srv/project", {"mode": "strict"}))
    for other in (
        digest("rm y", "/srv/project", {"mode": "strict"}),
        digest("rm x", "/", {"mode": "strict"}),
        digest("rm x", "/srv/project"),
    ):
        assert not decision.covers(other)


def test_a_yes_to_another_command_a_no_and_a_bare_true_are_all_no() -> None:
    asking = Approval(dangerous="ask")
    other = Request("ls", "", digest("ls"), review("ls", Approval()).verdict)
    assert not review("rm x", asking, lambda _: other.allow()).allowed
    assert not review("rm x", asking, lambda r: r.deny()).allowed
    assert not review("rm x", asking, lambda _: True).allowed  # type: ignore[arg-type, return-value]
    refused = review("rm x", asking, lambda r: r.deny())
    assert (refused.code, refused.covers(refused.digest)) == ("approval_required", False)


def test_what_an_approver_raises_is_raised() -> None:
    def broken(_: Request) -> Answer:
        raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="terminal is gone"):
        review("rm x", Approval(dangerous="ask"), broken)


def test_digests_do_not_run_fields_together() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", "", {"b": "c"}) != digest("a", "b", {"c": ""})
    assert digest("a", "", {"x": "1", "y": "2"}) == digest("a", "", {"y": "2", "x": "1"})


def test_flag_forms_ask_only_where_the_host_wants_it() -> None:
    class Proven:
        enforcing = True

    careful = Approval(flag_forms="ask")
    assert not review("sed -i s/a/b/ f", careful).allowed
    assert review("sed -i s/a/b/ f", careful, posture=Proven()).allowed
    assert not review("bash -c ls", careful, posture=Proven()).allowed
    assert review("ls", careful).allowed


def test_every_level_can_be_refused_and_a_wrong_word_is_named() -> None:
    assert not review("ls", Approval(safe="refuse")).allowed
    assert not review("cp a b", Approval(caution="refuse")).allowed
    with pytest.raises(ValueError, match=r"approval\.caution is 'maybe'"):
        Approval(caution="maybe")  # type: ignore[arg-type]


def test_a_higher_level_is_at_least_as_strict_and_force_does_not_skip_a_person_below() -> None:
    assert not review("cp a b", Approval(safe="refuse")).allowed
    assert review("cp a b", Approval(safe="ask"), Request.allow).by == "approver"
    asked_below = Approval(caution="ask")
    refused = review("rm x", asked_below, Request.allow, force=True)
    assert (refused.allowed, refused.code) == (False, "command_blocked")
    assert "force" not in refused.suggestion
    forms = Approval(caution="ask", flag_forms="refuse")
    assert not review("bash -c 'cp a b'", forms, Request.allow, force=True).allowed


def test_approvals_and_decisions_are_values() -> None:
    assert pickle.loads(pickle.dumps(Approval())) == Approval()
    decision = review("ls", Approval())
    assert isinstance(decision, Decision)
    assert pickle.loads(pickle.dumps(decision)) == decision
    assert Approval().at(Level.SAFE) == "allow"
    with pytest.raises(AttributeError, match="frozen"):
        Approval().safe = "ask"  # type: ignore[misc]


def test_rules_of_the_user_reach_the_review() -> None:
    rules = Rules.from_rows([{"exact": "rm -rf build", "level": "caution", "reason": "my build directory"}])
    assert review("rm -rf build", Approval(), rules=rules).allowed
    assert not review("rm -rf build2", Approval(), rules=rules).allowed
