"""The selftest holds in a jail, and finds out whatever is none."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from cli.typed import Person
from corral import NotEnforceable
from corral.claims import CLAIMS
from corral.selftest import GROUPS
from corral.selftest.runner import Report, every_case, selftest
from jail.world import BACKENDS, new_world

pytestmark = pytest.mark.jail

# casual and bare do not run as root.
MODES = ("read-only", "workspace-write", "strict", *(() if os.getuid() == 0 else ("casual", "bare")))


@pytest.fixture(autouse=True)
def home_of_our_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with new_world() as world:
        monkeypatch.setenv("HOME", str(world.home))
        for name in (
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "CORRAL_CONFIG_DIR",
            "CORRAL_STATE_DIR",
        ):
            monkeypatch.delenv(name, raising=False)
        yield


def not_held(report: Report) -> list[str]:
    return [f"{r.group} {r.name}: {r.happened}" for r in report.results if r.verdict == "BROKEN"] + list(
        report.changed
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_holds_what_it_promises(mode: str) -> None:
    begun = time.monotonic()
    report = selftest(mode)
    assert not_held(report) == []
    assert report.holds
    assert len({r.group for r in report.results}) == len(GROUPS)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_tier_holds_what_it_promises(backend: str) -> None:
    report = selftest(backend=backend)
    assert report.backend == backend
    assert not_held(report) == []


def test_without_a_jail_every_promise_is_found_broken() -> None:
    report = selftest(front=lambda scene: [])
    tried = [r for r in report.results if r.must == "fail" and r.verdict not in ("impossible", "not covered")]
    assert len(tried) > 40
    assert [r.name for r in tried if r.verdict != "BROKEN"] == []
    assert report.changed
    assert not report.holds


def test_a_program_that_never_answers_holds_nothing() -> None:
    for front in (["false"], ["sh", "-c", "kill -9 $$"]):
        with pytest.raises(NotEnforceable, match="no case could be tried"):
            selftest(front=lambda scene, words=front: words)  # type: ignore[misc]
    with pytest.raises(NotEnforceable, match="mode off"):
        selftest("off")


def test_each_case_names_a_claim_that_there_is_and_every_group_has_both_kinds() -> None:
    cases = every_case()
    assert {one.claim for _, one in cases} - {""} <= set(CLAIMS)
    for group in GROUPS:
        assert {one.must for of, one in cases if of == group} == {"fail", "work"}
    names = [(group, one.name) for group, one in cases]
    assert len(names) == len(set(names))


def test_the_command_prints_a_table_or_json_and_its_exit_code_says_whether_all_holds() -> None:
    with new_world() as world:
        person = Person(world, world.home / ".local/state/corral")
        told = person.reads("selftest", "--mode", "read-only")
        assert told.startswith("mode read-only, held by ")
        assert "\nfiles\n  held         make a file outside: " in told
        assert " 0 BROKEN" in told.splitlines()[-1]
        facts = person.reads_json("selftest", "--json")
        assert (facts["mode"], facts["holds"], facts["changed"]) == ("workspace-write", True, [])
        assert {row["verdict"] for row in facts["cases"]} <= {"held", "not covered", "impossible"}
        assert "--nonsense" in person.is_refused("selftest", "--nonsense")
        assert "unknown mode" in person.is_refused("selftest", "--mode", "nonsense")
