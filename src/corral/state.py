"""Where Corral keeps its own things: config and state. Both lie outside every writable root and are hidden inside."""

from __future__ import annotations

import os
import pwd


def account_home() -> str:
    """Home as the user database has it; ``$HOME`` can be anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME", "/")


def homes() -> tuple[str, ...]:
    """Every directory that is home to somebody's idea: the account's and ``$HOME``, canonical, once each."""
    found = []
    for path in (account_home(), os.environ.get("HOME", "")):
        real = os.path.realpath(path) if path else "/"
        if real != "/" and os.path.isdir(real) and real not in found:
            found.append(real)
    return tuple(found)


def _directory(variable: str, xdg: str, default: str) -> str:
    chosen = os.environ.get(variable)
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get(xdg) or os.path.join(os.environ.get("HOME") or account_home(), default)
    return os.path.join(os.path.abspath(base), "corral")


def config_directory() -> str:
    return _directory("CORRAL_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def state_directory() -> str:
    return _directory("CORRAL_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def data_directory() -> str:
    """For what jails may write, unlike config and state."""
    return _directory("CORRAL_DATA_DIR", "XDG_DATA_HOME", ".local/share")


def made_state_directory() -> str | None:
    """The state directory, made 0700 if it is not there; None where it cannot be (nested, read-only home)."""
    path = state_directory()
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError:
        return None
    return path if os.access(path, os.W_OK) else None
