"""What holds for every test: no skip without an excuse, and the identity that run.py promised."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from hostfacts import objection_to_skip

# Ignored under nohup, or behind the `&` of a script. All that is started inherits that, and no shell can trap it then.
for _signal, _default in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, _default)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        fail_unless_excused(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        fail_unless_excused(report)
    return report


def fail_unless_excused(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    objection = objection_to_skip(reason)
    if objection is not None:
        report.outcome = "failed"
        report.longrepr = objection


@pytest.fixture(scope="session", autouse=True)
def promised_identity() -> None:
    """In the run as an ordinary user: we are that user, without privileges, and test the installed wheel."""
    if os.environ.get("CORRAL_TEST_IDENTITY") != "user":
        return
    uid = int(os.environ["CORRAL_TEST_UID"])
    assert os.getresuid() == (uid, uid, uid)
    assert set(os.getgroups()) <= {os.getgid()}
    assert held_capabilities() == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}

    import corral

    installed = Path(str(corral.__file__)).resolve()
    assert installed.is_relative_to(Path(sys.prefix).resolve())
    assert "site-packages" in installed.parts


def held_capabilities() -> dict[str, int]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
