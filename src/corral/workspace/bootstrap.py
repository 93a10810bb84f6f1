"""The few lines of shell that run inside before the agent does: PATH, who commits, trust for its tools, directory."""

from __future__ import annotations

import os
import re

from corral.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corral.workspace.metadata import Workspace

SHELL = "/bin/bash"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# git inside, by variables, which count more than any file: what it would fail at, because packs, other branches and
# keys are out of its reach, it does not try.
GIT_SETTINGS: dict[str, str] = {
    "gc.auto": "0",
    "maintenance.auto": "false",
    "rerere.enabled": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "fetch.unpackLimit": "2147483647",
    "transfer.unpackLimit": "2147483647",
}


def bootstrap(workspace: Workspace, command: Sequence[str], variables: Iterable[tuple[str, str]] = ()) -> str:
    """A script for ``bash -c``. Every value is one shell word whatever is in it; a variable that cannot be one is a
    PolicyError. It stands on a command line, which all users can read: no secrets."""
    words = [os.fspath(word) for word in command]
    if not words or not words[0]:
        raise PolicyError("a command is at least one word")
    identity = workspace.identity
    lines = (
        [f'export PATH={quoted(":".join(workspace.path_prepend))}:"$PATH"'] if workspace.path_prepend else []
    )
    for role in ("AUTHOR", "COMMITTER"):
        lines.append(_export(f"GIT_{role}_NAME", identity.name))
        lines.append(_export(f"GIT_{role}_EMAIL", identity.email))
    settings = {"user.name": identity.name, "user.email": identity.email, **GIT_SETTINGS}
    lines.append(_export("GIT_CONFIG_COUNT", str(len(settings))))
    for number, (key, value) in enumerate(settings.items()):
        lines += [_export(f"GIT_CONFIG_KEY_{number}", key), _export(f"GIT_CONFIG_VALUE_{number}", value)]
    lines.append("export MISE_YES=1")
    lines.append(_export("MISE_TRUSTED_CONFIG_PATHS", workspace.path))
    lines += [_export(name, value) for name, value in variables]
    lines.append(f"cd -- {quoted(workspace.path)} || exit 125")
    dashes = "-- " if words[0].startswith("-") else ""
    lines.append(f"exec {dashes}{' '.join(map(quoted, words))}")
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    """In single quotes, where the shell leaves everything as it is."""
    if "\0" in word:
        raise PolicyError(f"a NUL byte cannot be passed to a program: {word!r}")
    return "'" + word.replace("'", "'\\''") + "'"


def _export(name: str, value: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise PolicyError(f"not a variable name: {name!r}")
    return f"export {name}={quoted(value)}"
