"""Corral: a fence for programs you do not fully trust. See README.md."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.environment.base import CommandResult, Posture
    from corral.environment.local import LocalEnvironment
    from corral.errors import (
        CommandFailed,
        CommandNotExecutable,
        CommandNotFound,
        CommandTimeout,
        ConfigError,
        CorralError,
        LaunchRefused,
        NotEnforceable,
        PathEscape,
        PathNotAllowed,
        PolicyError,
        Refused,
    )
    from corral.jail.plan import Plan
    from corral.policy import Grant, Limits, Policy
    from corral.variables import EnvRule

__version__ = "0.1.0"

# Imported when first asked for: `corral run` must not pay for what it does not use.
_HOMES = {
    **dict.fromkeys(("CommandResult", "Posture"), "corral.environment.base"),
    **dict.fromkeys(("LocalEnvironment",), "corral.environment.local"),
    **dict.fromkeys(("Plan",), "corral.jail.plan"),
    **dict.fromkeys(("Grant", "Limits", "Policy"), "corral.policy"),
    **dict.fromkeys(("EnvRule",), "corral.variables"),
    **dict.fromkeys(
        (
            *("CommandFailed", "CommandNotExecutable", "CommandNotFound", "CommandTimeout", "ConfigError"),
            *("CorralError", "LaunchRefused", "NotEnforceable", "PathEscape", "PathNotAllowed"),
            *("PolicyError", "Refused"),
        ),
        "corral.errors",
    ),
}

__all__ = [
    "CommandFailed",
    "CommandNotExecutable",
    "CommandNotFound",
    "CommandResult",
    "CommandTimeout",
    "ConfigError",
    "CorralError",
    "EnvRule",
    "Grant",
    "LaunchRefused",
    "Limits",
    "LocalEnvironment",
    "NotEnforceable",
    "PathEscape",
    "PathNotAllowed",
    "Plan",
    "Policy",
    "PolicyError",
    "Posture",
    "Refused",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
