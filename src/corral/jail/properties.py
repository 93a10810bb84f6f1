"""Properties of a unit: how their values are written, which of them a user manager holds, and which it only takes."""

from __future__ import annotations

import os

from corral.errors import NotEnforceable, PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.jail.systemd import Carrier


def runtime_directory() -> str:
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"


# ---- words as systemd-run reads them ----

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+@=,~")


def word(text: str) -> str:
    """One word of a property's value. Outside quotes spaces and colons end it; a backslash takes the next character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(text).decode("utf-8", "backslashreplace")
        raise PolicyError(f"systemd-run takes only paths in UTF-8, not {shown}", path=text) from None
    if _PLAIN.issuperset(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_odd(path: str) -> bool:
    """Taken by systemd 252 and refused by 257, however it is quoted: what starts a unit there reads the path again."""
    return not path.isprintable() or "'" in path or '"' in path


def nested_word(path: str) -> str:
    """For a value that is taken apart twice, as words and then at its colons."""
    return word(path.replace("\\", "\\\\").replace(":", "\\:"))


def expansion_free(text: str) -> str:
    """An argument of the command: the manager replaces ``$NAME``, whatever the quotes, and makes one of two dollars."""
    return text.replace("$", "$$")


# ---- limits and properties that a caller asks for ----

# property: (control file, controller it needs)
CONTROLLED = {
    "MemoryMax": ("memory.max", "memory"),
    "MemoryHigh": ("memory.high", "memory"),
    "MemorySwapMax": ("memory.swap.max", "memory"),
    "TasksMax": ("pids.max", "pids"),
    "CPUQuota": ("cpu.max", "cpu"),
    "CPUWeight": ("cpu.weight", "cpu"),
    "IOWeight": ("io.weight", "io"),
}
# Seen to hold in a unit that has a user namespace.
ENFORCED = frozenset(
    [
        "SystemCallFilter",
        "SystemCallArchitectures",
        "RestrictNamespaces",
        "RestrictAddressFamilies",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "MemoryDenyWriteExecute",
        "LockPersonality",
        "PrivateDevices",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelTunables",
        "ProtectControlGroups",
        "InaccessiblePaths",
        "ReadOnlyPaths",
        "NoExecPaths",
        "RuntimeMaxSec",
        "Nice",
        "LimitCPU",
        "LimitFSIZE",
        "LimitDATA",
        "LimitSTACK",
        "LimitCORE",
        "LimitNOFILE",
        "LimitAS",
        "LimitNPROC",
        "LimitMEMLOCK",
    ]
)
# Taken without a word by a user manager, and then without effect.
IGNORED = frozenset(
    [
        "ProtectProc",
        "ProcSubset",
        "IPAddressDeny",
        "IPAddressAllow",
        "IPIngressFilterPath",
        "IPEgressFilterPath",
        "SocketBindDeny",
        "SocketBindAllow",
        "RestrictFileSystems",
        "RestrictNetworkInterfaces",
        "DeviceAllow",
        "DevicePolicy",
        "BPFProgram",
    ]
)


def delegated() -> frozenset[str]:
    """The controllers that the user's manager can give to a unit. The manager is who answers on its own socket."""
    import _socket

    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        client.connect(os.path.join(runtime_directory(), "systemd", "private"))
        manager = int.from_bytes(client.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[:4], "little")
        with open(f"/proc/{manager}/cgroup") as file:
            own = next((line.rstrip("\n")[3:] for line in file if line.startswith("0::")), "")
        with open(f"/sys/fs/cgroup{os.path.dirname(own)}/cgroup.controllers") as file:
            return frozenset(file.read().split())
    except OSError:
        return frozenset()
    finally:
        client.close()


def check_properties(properties: Iterable[str]) -> None:
    """Each is known to hold in a user manager, or refused by name."""
    for text in properties:
        name, given, _ = text.partition("=")
        if name in IGNORED:
            raise PolicyError(
                f"{name}: a user manager takes this property and ignores it; nothing would hold it", rule=name
            )
        if name in CONTROLLED:
            controller = CONTROLLED[name][1]
            if controller not in delegated():
                raise NotEnforceable(
                    f"{name}: the {controller} controller is not delegated to this user's manager, which would ignore "
                    "it",
                    rule=name,
                )
        elif name not in ENFORCED or not given:
            from corral.policy import nearest

            close = nearest(name, (*ENFORCED, *CONTROLLED))
            raise PolicyError(f"{name} is not a property that a unit may be given here{close}", rule=name)


def with_properties(carried: Carrier, properties: Iterable[str]) -> Carrier:
    """A caller's own properties on top, once they are checked."""
    added: list[str] = []
    limits = list(carried.limits)
    filtered = carried.filtered
    for text in properties:
        name, _, value = text.partition("=")
        added += ["-p", text]
        filtered = filtered or name == "SystemCallFilter"
        if name in CONTROLLED:
            limits.append((CONTROLLED[name][0], value if value.isdigit() else ""))
    at = carried.arguments.index("--")
    arguments = (*carried.arguments[:at], *added, *carried.arguments[at:])
    return carried.replace(arguments=arguments, limits=tuple(limits), filtered=filtered)
