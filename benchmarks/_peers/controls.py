"""Before anything is measured: does it confine at all, and does it still let work be done?

One shell line writes into the workspace, writes outside of it, and connects to a port of ours. Without a jail all
three come through, which shows that the line tries what it says; in a jail the first does and the others do not.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from .contestants import Place

Run = Callable[[list[str]], int]  # an argument list → its exit code
LONGEST_ARRIVAL = 0.3


def complaint(run: Run, place: Place, jailed: bool, network: str) -> str | None:
    """What is wrong with it, or nothing."""
    inside, outside = Path(place.workspace, "control-inside"), Path(place.outside, "control-outside")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONGEST_ARRIVAL)
        port = server.getsockname()[1]
        line = f"echo x > {inside}; echo x > {outside}; exec 3<>/dev/tcp/127.0.0.1/{port}"
        run(["bash", "-c", f"({line}) 2>/dev/null; test -r /etc/passwd && exit 7"])
        found = {
            "write in the workspace": (_gone(inside), True),
            "write outside of it": (_gone(outside), not jailed),
            "reach the network": (_arrived(server), not jailed or network == "open"),
        }
    wrong = [f"it {'cannot' if must else 'can'} {what}" for what, (did, must) in found.items() if did != must]
    codes = {0: run(["true"]), 7: run(["bash", "-c", "test -r /etc/passwd && exit 7"])}
    wrong += [f"exit code {got} for {meant}" for meant, got in codes.items() if got != meant]
    return "; ".join(wrong) or None


def _gone(path: Path) -> bool:
    """Whether it was there; it is not any more."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        return True
    return False


def _arrived(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True
