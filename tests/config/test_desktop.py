"""The screen and the session bus: closed, and opened by name."""

from __future__ import annotations

from corral.config.desktop import apply_desktop, sockets
from corral.paths.sensitive import KEY_MATERIAL
from corral.policy import Grant, Policy
from corral.variables import DESKTOP, EnvRule, scrub

SESSION = {
    "DISPLAY": ":0",
    "WAYLAND_DISPLAY": "wayland-0",
    "XAUTHORITY": "/run/user/7/xauth",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/7/bus,guid=1;tcp:host=localhost,path=/no",
    "XDG_RUNTIME_DIR": "/run/user/7",
}


def test_they_are_closed_and_the_cookie_is_hidden() -> None:
    assert set(DESKTOP) == {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"}
    assert scrub(Policy().environment, SESSION).variables == {}
    assert {".Xauthority", ".ICEauthority"} <= set(KEY_MATERIAL)


def test_the_grant_opens_variables_cookie_and_sockets() -> None:
    policy = apply_desktop(Policy(grants=(Grant.rw("/x"),)), SESSION)
    assert scrub(policy.environment, {**SESSION, "SSH_AUTH_SOCK": "x"}).variables == SESSION
    assert policy.unhide == (".Xauthority", ".ICEauthority")
    assert [grant.path for grant in policy.grants] == [
        *("/tmp/.X11-unix", "/run/user/7/wayland-0", "/run/user/7/bus", "/run/user/7/xauth", "/x")
    ]
    assert all(grant == Grant.ro(grant.path, "skip") for grant in policy.grants[:-1])


def test_only_what_the_session_has_is_opened_and_a_rule_of_the_users_decides() -> None:
    assert sockets({}) == []
    assert sockets({"WAYLAND_DISPLAY": "wayland-0"}) == []
    assert sockets({"WAYLAND_DISPLAY": "/w"}) == ["/w"]
    assert sockets({"DBUS_SESSION_BUS_ADDRESS": "unix:abstract=/tmp/x"}) == []
    rules = (*Policy().environment, EnvRule("drop", "DISPLAY"))
    policy = apply_desktop(Policy(environment=rules), SESSION)
    assert "DISPLAY" not in scrub(policy.environment, SESSION).variables
    assert apply_desktop(Policy.off(), SESSION) == Policy.off()
