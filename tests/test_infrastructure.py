"""The rules of this test suite, each tried on a small suite that breaks it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostfacts import FACTS, listed_skips, skip_unless_host
from run import processes_of

TESTS = Path(__file__).resolve().parent

SKIPS = """
[excused]
reason = "always so"
fact = "not_root"
"""
HOST_IS = "import hostfacts, pytest\nhostfacts.FACTS['not_root'] = lambda: {value}\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A project with our rules, one listed skip, and no test yet."""
    tests = tmp_path / "tests"
    (tests / "conformance").mkdir(parents=True)
    for name in ("conftest.py", "hostfacts.py", "conformance/check_cases.py"):
        shutil.copy(TESTS / name, tests / name)
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    (tests / "skips.toml").write_text(SKIPS)
    return tests


def test_every_listed_skip_names_a_fact_that_can_be_checked() -> None:
    assert all(set(entry) == {"reason", "fact"} for entry in listed_skips().values())
    assert {entry["fact"] for entry in listed_skips().values()} <= set(FACTS)
    assert all(isinstance(fact(), bool) for fact in FACTS.values())


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        pytest.param(
            HOST_IS.format(value=True) + "def test_a():\n    hostfacts.skip_unless_host('excused')\n",
            "1 skipped",
            id="a listed skip whose fact holds",
        ),
        pytest.param(
            HOST_IS.format(value=False) + "def test_a():\n    hostfacts.skip_unless_host('excused')\n",
            "1 passed",
            id="a listed skip whose fact does not hold, so the test runs",
        ),
        pytest.param(
            HOST_IS.format(value=False) + "def test_a():\n    pytest.skip('[excused] but not here')\n",
            "the skip 'excused' needs the host fact 'not_root', which is false here",
            id="a listed id is no excuse on a host where its fact is false",
        ),
        pytest.param(
            HOST_IS.format(value=True) + "def test_a():\n    hostfacts.skip_unless_host('unheard')\n",
            "KeyError: 'unheard'",
            id="an id that is not listed",
        ),
        pytest.param(
            "import pytest\ndef test_a():\n    pytest.skip('[unheard] of')\n",
            "the skip 'unheard' does not stand in skips.toml",
            id="an id that is not listed, skipped by hand",
        ),
        pytest.param(
            "import pytest\ndef test_a():\n    pytest.skip('no time')\n",
            "only skip_unless_host may skip a test; this one skipped with: Skipped: no time",
            id="a plain skip",
        ),
        pytest.param(
            "import pytest\n@pytest.mark.skipif(True, reason='no time')\ndef test_a(): pass\n",
            "this one skipped with: Skipped: no time",
            id="a conditional mark",
        ),
        pytest.param(
            "import pytest\npytest.skip('no time', allow_module_level=True)\n",
            "this one skipped with: Skipped: no time",
            id="a whole module",
        ),
        pytest.param(
            "import pytest\npytest.importorskip('not_a_module')\ndef test_a(): pass\n",
            "this one skipped with: Skipped: could not import 'not_a_module'",
            id="a module that wants something missing",
        ),
    ],
)
def test_a_skip_fails_unless_its_listed_fact_holds(suite: Path, source: str, outcome: str) -> None:
    done = run_suite(suite, source)
    assert outcome in done.stdout
    assert (done.returncode == 0) == (outcome in ("1 skipped", "1 passed")), done.stdout


def test_an_expected_failure_is_not_taken_for_a_skip_and_must_fail(suite: Path) -> None:
    expected = "import pytest\n@pytest.mark.xfail\ndef test_a(): assert {value}\n"
    assert "1 xfailed" in run_suite(suite, expected.format(value=False)).stdout
    assert "1 failed" in run_suite(suite, expected.format(value=True)).stdout


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import warnings\ndef test_a(): warnings.warn('careful')\n", "UserWarning: careful"),
        ("import pytest\n@pytest.mark.jial\ndef test_a(): pass\n", "'jial' not found in `markers`"),
        (
            "import pytest, time\n@pytest.mark.timeout(0.1)\ndef test_a(): time.sleep(9)\n",
            "Timeout (>0.1s)",
        ),
    ],
)
def test_warnings_unknown_marks_and_hanging_tests_fail(suite: Path, source: str, complaint: str) -> None:
    done = run_suite(suite, source)
    assert done.returncode != 0
    assert complaint in done.stdout


@pytest.mark.parametrize(
    ("listed", "source", "complaints"),
    [
        ('a-1 = "one"', "@case('a-1')\ndef test_one(): pass", []),
        ('a-1 = "one"', "@pytest.mark.case('a-1')\ndef test_one(): pass", []),
        ('a-1 = "one"', "rows = [pytest.param(1, marks=case('a-1'))]", []),
        ('a-1 = "one"\na-2 = "two"', "@case('a-1', 'a-2')\nclass TestBoth: pass", []),
        ('a-1 = "one"', "def test_one(): pass", ["a-1: no test carries it (one)"]),
        ('a-1 = "one"', "@case('a-1')\ndef prepare(): pass", ["a-1: no test carries it (one)"]),
        ("", "@case('b-7')\ndef test_b(): pass", ["test_it.py:1: b-7 is not in cases.toml"]),
        (
            "",
            "@case(NAME)\ndef test_b(): pass",
            ["test_it.py:1: <NAME is not a literal> is not in cases.toml"],
        ),
    ],
)
def test_every_listed_case_has_a_test_and_every_carried_id_is_listed(
    suite: Path, listed: str, source: str, complaints: list[str]
) -> None:
    (suite / "conformance/cases.toml").write_text(listed)
    (suite / "test_it.py").write_text(source)
    checker = [sys.executable, str(suite / "conformance/check_cases.py")]
    done = subprocess.run(checker, stderr=subprocess.PIPE, text=True)
    assert done.stderr.splitlines() == complaints
    assert done.returncode == (1 if complaints else 0)


@pytest.mark.jail
def test_the_run_as_an_ordinary_user_is_refused_to_anybody_else(suite: Path) -> None:
    pretended = {"CORRAL_TEST_IDENTITY": "user", "CORRAL_TEST_UID": str(os.getuid() + 1)}
    done = run_suite(suite, "def test_a(): pass\n", pretended)
    assert done.returncode != 0
    assert "assert os.getresuid() == (uid, uid, uid)" in done.stdout


def test_the_throw_away_user_leaves_nothing_when_its_run_is_interrupted(tmp_path: Path) -> None:
    skip_unless_host("root-only")
    accounts = {entry.pw_name for entry in pwd.getpwall()}
    leave_things_and_stop = f"""
import run, subprocess, sys
from pathlib import Path
with run.throw_away_user(Path({str(tmp_path)!r}) / "home") as user:
    subprocess.Popen([*run.as_user(user), "setsid", "sleep", "60"])
    subprocess.run([*run.as_user(user), "mktemp", "-d", "/tmp/corral-left-XXXXXX"], check=True)
    print(user.pw_uid, flush=True)
    raise KeyboardInterrupt
"""
    command = [sys.executable, "-c", leave_things_and_stop]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    left_directory, uid = Path(done.stdout.split()[0]), int(done.stdout.split()[1])
    assert "left behind, removed" in done.stderr
    assert not left_directory.exists()
    assert list(processes_of(uid)) == []
    assert {entry.pw_name for entry in pwd.getpwall()} == accounts


def run_suite(
    suite: Path, source: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    (suite / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CORRAL_TEST_"))
    }
    return subprocess.run(
        command, cwd=suite.parent, env=clean | (environment or {}), capture_output=True, text=True
    )
