"""Keys under home, and what the policy hides."""

from __future__ import annotations

import os

from corral.selftest.case import must_fail, must_work, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given


@must_fail("keys", "read a private key under home")
def private_key(given: Given) -> None:
    read(os.path.join(given["home"], ".ssh/id"))


@must_fail("keys", "read a token file under home")
def token_file(given: Given) -> None:
    read(os.path.join(given["home"], ".netrc"))


@must_fail("keys", "read a key by way of /proc/self/root")
def private_key_by_alias(given: Given) -> None:
    read("/proc/self/root" + os.path.join(given["home"], ".ssh/id"))


@must_fail("hidden", "read a file that the policy hides")
def hidden_file(given: Given) -> None:
    read(os.path.join(given["home"], "hidden"))


@must_work("list home")
def list_home(given: Given) -> None:
    os.listdir(given["home"])
