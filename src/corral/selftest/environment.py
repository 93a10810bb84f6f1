"""Variables of the caller that hold secrets, lead outside, or make programs run something."""

from __future__ import annotations

import os

from corral.selftest.case import must_fail, must_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

# Set by whoever runs the cases.
SECRETS = {"SELFTEST_TOKEN": "x", "SELFTEST_API_KEY": "x", "DATABASE_URL": "x"}
HANDLES = {"SSH_AUTH_SOCK": "/nonexistent", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
INJECTION = {"BASH_ENV": "/nonexistent", "PERL5OPT": "-w", "GIT_SSH_COMMAND": "false", "NODE_OPTIONS": "--x"}


def expect_one_of(names: dict[str, str]) -> None:
    if not any(name in os.environ for name in names):
        raise OSError("none of them is there")


@must_fail("", "find a secret among the variables")
def secrets(given: Given) -> None:
    expect_one_of(SECRETS)


@must_fail("", "find the address of an agent or a bus among the variables")
def handles(given: Given) -> None:
    expect_one_of(HANDLES)


@must_fail("", "find a variable that makes a program run something")
def injection(given: Given) -> None:
    expect_one_of(INJECTION)


@must_work("find PATH and HOME")
def basics(given: Given) -> None:
    if not {"PATH", "HOME"} <= os.environ.keys():
        raise OSError("PATH or HOME is missing")
