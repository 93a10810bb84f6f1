"""The screen and the session bus, opened for a command that needs them. Closed unless a person asks by name."""

from __future__ import annotations

import os

from corral.config.outfit import beneath_own
from corral.policy import Grant
from corral.variables import DESKTOP, EnvRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.policy import Policy

X11_SOCKETS = "/tmp/.X11-unix"
MASKS = (".Xauthority", ".ICEauthority")
WARNING = (
    "desktop is open: a command that reaches the screen or the session bus can read your windows, type into them "
    "and start programs outside the jail"
)


def apply_desktop(policy: Policy, environ: Mapping[str, str]) -> Policy:
    """Variables, the cookie that lets in, and the sockets themselves, as far as this session has them."""
    if policy.mode == "off":
        return policy
    kept = tuple(EnvRule("keep", name) for name in (*DESKTOP, "XDG_RUNTIME_DIR", "ICEAUTHORITY"))
    grants = tuple(Grant.ro(path, "skip") for path in sockets(environ))
    return policy.replace(
        environment=beneath_own(policy.environment, kept),
        grants=(*grants, *policy.grants),
        unhide=tuple(dict.fromkeys((*policy.unhide, *MASKS))),
    )


def sockets(environ: Mapping[str, str]) -> list[str]:
    """What has to be seen inside: where X11, Wayland and the bus listen, and the cookie where it is not in home."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    paths = [X11_SOCKETS] if environ.get("DISPLAY") else []
    wayland = environ.get("WAYLAND_DISPLAY")
    if wayland and (runtime or os.path.isabs(wayland)):
        paths.append(os.path.join(runtime, wayland))
    for address in environ.get("DBUS_SESSION_BUS_ADDRESS", "").split(";"):
        kind, _, options = address.partition(":")
        places = [part.removeprefix("path=") for part in options.split(",") if part.startswith("path=")]
        paths += places if kind == "unix" else []
    if environ.get("DISPLAY") and environ.get("XAUTHORITY"):
        paths.append(environ["XAUTHORITY"])
    return [path for path in dict.fromkeys(paths) if os.path.isabs(path)]
