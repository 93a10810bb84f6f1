"""unset, retain: variables dropped by name, the last rule that matches decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.variables import EnvRule, name_matches, scrub
from launcher.driver import launch, refused_step
from launcher.patterns import MATCHES

pytestmark = pytest.mark.jail

E2BIG = 7


def left(plan: list[str], *names: str, **more: str) -> dict[str, str]:
    environment = {**dict.fromkeys(names, "x"), **more}
    done = launch(plan, ["/usr/bin/env", "-0"], env=environment)
    assert done.returncode == 0, done
    return dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)


def test_nothing_is_dropped_unless_asked_for() -> None:
    assert left([], "A", "B") == {"A": "x", "B": "x"}


def test_an_exact_name_is_dropped_and_its_neighbours_stay() -> None:
    assert set(left(["unset", "TOKEN"], "TOKEN", "TOKENS", "XTOKEN", "token", "TOKE")) == {
        "TOKENS",
        "XTOKEN",
        "token",
        "TOKE",
    }


def test_values_are_never_looked_at() -> None:
    assert left(["unset", "SECRET"], PATH="SECRET", X="=SECRET", Y="SECRET=1") == {
        "PATH": "SECRET",
        "X": "=SECRET",
        "Y": "SECRET=1",
    }


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (["unset", "GIT_*"], {"HOME"}),
        (["unset", "GIT_*", "retain", "GIT_AUTHOR_NAME"], {"HOME", "GIT_AUTHOR_NAME"}),
        (["retain", "GIT_AUTHOR_NAME", "unset", "GIT_*"], {"HOME"}),
        (["unset", "*"], set()),
        (["unset", "*", "retain", "HOME"], {"HOME"}),
        (["unset", "*", "retain", "*", "unset", "HOME"], {"GIT_DIR", "GIT_AUTHOR_NAME"}),
        (["retain", "NOTHING"], {"HOME", "GIT_DIR", "GIT_AUTHOR_NAME"}),
        (["unset", ""], {"HOME", "GIT_DIR", "GIT_AUTHOR_NAME"}),
    ],
)
def test_the_last_match_decides(rules: list[str], kept: set[str]) -> None:
    names = ("HOME", "GIT_DIR", "GIT_AUTHOR_NAME")
    assert set(left(rules, *names)) == kept
    verbs = {"unset": "drop", "retain": "keep"}
    same = [EnvRule(verbs[v], n) for v, n in zip(rules[::2], rules[1::2], strict=True) if n]  # type: ignore[arg-type]
    assert set(scrub(same, dict.fromkeys(names, "x")).variables) == kept


@pytest.mark.parametrize(("pattern", "name", "expected"), MATCHES)
def test_the_launcher_matches_as_python_does(pattern: str, name: str, expected: bool) -> None:
    assert ("KEPT" in left(["unset", pattern], name, "KEPT")) or name_matches(pattern, "KEPT")
    assert (name not in left(["unset", pattern], name)) is expected
    assert (name in left(["unset", "*", "retain", pattern], name)) is expected


def test_a_dropped_path_is_not_searched_for_the_command(tmp_path: Path) -> None:
    """The environment is filtered before the command is looked up: PATH inside is what counts."""
    tool = tmp_path / "corral-test-tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    assert launch([], [tool.name], env={"PATH": str(tmp_path)}).stdout == b"found\n"
    assert launch(["unset", "PATH"], [tool.name], env={"PATH": str(tmp_path)}).returncode == 127


def test_a_bound_number_of_rules_is_taken() -> None:
    assert set(left(["unset", "A"] * 511 + ["retain", "A"], "A", "B")) == {"A", "B"}
    assert refused_step(launch(["unset", "A"] * 513, ["true"])) == (512, E2BIG)


def test_a_pattern_full_of_stars_takes_no_time() -> None:
    assert left(["unset", "*a" * 200 + "b"], "a" * 5000) == {"a" * 5000: "x"}
