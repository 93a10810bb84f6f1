"""What runs later, outside: start-up files, Corral's own config and state, the project's policy."""

from __future__ import annotations

import os

from corral.selftest.case import inside, must_fail, must_work, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.case import Given

ADD = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@must_fail("writes", "add to a start-up file of the shell")
def shell_start(given: Given) -> None:
    write(os.path.join(given["home"], ".bashrc"), ADD)
    if not given["home_is_real"]:
        raise OSError("home is not the real one")


@must_fail("writes", "plant a program that starts with the desktop")
def autostart(given: Given) -> None:
    os.makedirs(os.path.join(given["home"], ".config/autostart"), exist_ok=True)
    write(os.path.join(given["home"], ".config/autostart/x.desktop"), ADD)
    if not given["home_is_real"]:
        raise OSError("home is not the real one")


@must_fail("", "change Corral's config")
def own_config(given: Given) -> None:
    write(os.path.join(given["config"], "corral.toml"), ADD)


@must_fail("", "change Corral's state")
def own_state(given: Given) -> None:
    write(os.path.join(given["state"], "planted"), ADD)


@must_fail("project-config", "change the project's policy")
def project_policy(given: Given) -> None:
    write(inside(given, "corral.toml"), os.O_WRONLY | os.O_APPEND)


@must_fail("project-config", "put another file in place of the project's policy")
def replaced_policy(given: Given) -> None:
    write(inside(given, "other.toml"))
    os.rename(inside(given, "other.toml"), inside(given, "corral.toml"))


@must_work("read the project's policy")
def read_policy(given: Given) -> None:
    os.stat(inside(given, "corral.toml"))
