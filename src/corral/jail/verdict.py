"""The verdict on a unit, from what is seen inside before anything runs there. Less than all of it is a refusal."""

from __future__ import annotations

import os
import select
import tempfile

from corral.jail.properties import runtime_directory
from corral.jail.site import is_below
from corral.state import made_state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.jail.systemd import Carrier

READ_ONLY_INSIDE = ("/", "/usr", "/etc", "/var", "/home", "/root")
ENDING_SECONDS = 5.0

# What the exit status of systemd-run says about a unit that never got to its first program.
SETUP = {
    217: "the user manager cannot make a user namespace (217/USER)",
    226: "the user manager cannot make a mount namespace (226/NAMESPACE)",
    225: "the user manager cannot make a network namespace (225/NETWORK)",
    218: "the user manager cannot set capabilities (218/CAPABILITIES)",
    203: "the user manager cannot start /bin/bash (203/EXEC)",
}
REMEDY = (
    "allow user namespaces to the user manager (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone; on "
    "Ubuntu kernel.apparmor_restrict_unprivileged_userns)"
)


class Canary:
    """A directory of ours that a unit must not see, with a file in it; and room for one that must not appear."""

    def __init__(self, home: str) -> None:
        own = made_state_directory()
        beside = own if own is not None and is_below(os.path.realpath(own), home) else home
        try:
            self.path = tempfile.mkdtemp(prefix=".corral-canary-", dir=beside)
        except OSError:  # a home that we may not write in
            self.path = tempfile.mkdtemp(prefix="corral-canary-", dir=runtime_directory())
        with open(os.path.join(self.path, "alive"), "w"):
            pass

    @property
    def is_touched(self) -> bool:
        return os.path.lexists(os.path.join(self.path, "touched"))

    def remove(self) -> None:
        for name in ("alive", "touched"):
            try:
                os.unlink(os.path.join(self.path, name))
            except FileNotFoundError:
                continue
        os.rmdir(self.path)


def questions(carrier: Carrier, canary: str) -> dict[str, Any]:
    """What the warden is asked to look at."""
    directory = runtime_directory()
    buses = [os.path.join(directory, name) for name in ("bus", "systemd/private")]
    address = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    for part in address.replace(";", ",").split(","):
        kind, _, value = part.rpartition(":")[2].partition("=")
        if kind in ("path", "abstract"):
            buses.append(value if kind == "path" else f"\0{value}")
    return {
        "canary": canary,
        "read-only": list(READ_ONLY_INSIDE),
        "writable": list(carrier.writable),
        "buses": list(dict.fromkeys((*buses, "/run/dbus/system_bus_socket"))),
        "cgroup": [name for name, _ in carrier.limits],
    }


def problems(carrier: Carrier, seen: dict[str, Any], canary: Canary) -> list[str]:
    """What is not as it must be, in words; none means that the unit holds."""
    status, wrong = seen["status"], []

    def must(holds: bool, otherwise: str) -> None:
        if not holds:
            wrong.append(otherwise)

    for kind, name in (
        ("mnt", "mount"),
        ("user", "user"),
        *((("net", "network"),) if carrier.own_network else ()),
    ):
        own = os.stat(f"/proc/self/ns/{kind}").st_ino
        must(seen[f"{kind} namespace"] != own, f"it has no {name} namespace of its own")
    must(bool(seen["canary read"]), "the home directory is visible in it")
    must(bool(seen["canary write"]) and not canary.is_touched, "it can write in the home directory")
    for path, is_read_only in seen["read-only"].items():
        must(is_read_only, f"{path} is not read-only in it")
    for path in carrier.writable:
        must(seen["writable"].get(path, False), f"{path} is not writable in it")
    for address, why_not in seen["buses"].items():
        must(bool(why_not), f"it reaches {address.replace(chr(0), '@')}")
    must(status["NoNewPrivs"] == "1", "set-uid programs would gain privileges in it (no_new_privs is off)")
    must(int(status["CapEff"] or "1", 16) == 0, "it has capabilities")
    must(not carrier.filtered or status["Seccomp"] == "2", "the system call filter is not on")
    for name, value in carrier.limits:
        must(_is_limit(seen["cgroup"].get(name, ""), value), f"the limit {name} is not {value or 'there'}")
    return wrong


def _is_limit(found: str, wanted: str) -> bool:
    """Memory is counted in pages."""
    if not wanted:
        return found not in ("", "max")
    return found.isdigit() and int(found) <= int(wanted) < int(found) + (1 << 16)


def why_it_never_came(client: int, messages: int) -> str:
    """From the status of systemd-run, and its one line if it has something to say."""
    poll = select.poll()
    pidfd = os.pidfd_open(client)
    poll.register(pidfd, select.POLLIN)
    ended = bool(poll.poll(int(ENDING_SECONDS * 1000)))
    os.close(pidfd)
    text = os.pread(messages, 4096, 0).decode("utf-8", "replace").strip().replace("\n", "; ")
    if not ended:
        return "the unit gave no account of itself"
    told = os.waitid(os.P_PID, client, os.WEXITED | os.WNOWAIT)  # whoever gives up collects it
    code = told.si_status if told is not None and told.si_code == os.CLD_EXITED else -1
    if code in SETUP:
        return f"{SETUP[code]}; nothing was run. Remedy: {REMEDY}"
    said = f": {text}" if text else ""
    return f"the unit gave no account of itself (systemd-run ended with {code}{said}); nothing was run"
