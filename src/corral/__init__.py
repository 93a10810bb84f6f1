"""Corral: a fence for programs you do not fully trust. See README.md."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials import Denial, attribute
    from corral.environment.aio import AsyncLocalEnvironment as AsyncLocalEnvironment
    from corral.environment.aprocess import AsyncJob as AsyncJob
    from corral.environment.aprocess import AsyncProcess as AsyncProcess
    from corral.environment.base import CommandResult, ExecutionEnvironment, Posture
    from corral.environment.hooks import Command
    from corral.environment.jobs import Job
    from corral.environment.local import LocalEnvironment
    from corral.environment.process import PIPE, Output, Process
    from corral.environment.recording import RecordingEnvironment
    from corral.errors import (
        BadPath,
        CommandFailed,
        CommandNotExecutable,
        CommandNotFound,
        CommandTimeout,
        ConfigError,
        CorralError,
        FileTooLarge,
        HookError,
        InputClosed,
        JobExists,
        LandlockUnavailable,
        LaunchRefused,
        LinkLoop,
        NotAFile,
        NotEnforceable,
        PathEscape,
        PathNotAllowed,
        PolicyError,
        Refused,
        SensitivePath,
        StaleFile,
        StillRunning,
        UnknownBackend,
    )
    from corral.files.changing import open_for_write, remove_beneath
    from corral.files.stamps import Stamps
    from corral.jail.host import probe_landlock
    from corral.jail.plan import Plan
    from corral.jails import Jail, RunOpts, open_jail
    from corral.policy import Grant, Limits, Policy
    from corral.sandbox import Sandbox
    from corral.variables import EnvRule

__version__ = "0.1.0"

# Imported when first asked for: `corral run` must not pay for what it does not use.
_HOMES = {
    **dict.fromkeys(("Denial", "attribute"), "corral.denials"),
    **dict.fromkeys(("CommandResult", "ExecutionEnvironment", "Posture"), "corral.environment.base"),
    **dict.fromkeys(("Command",), "corral.environment.hooks"),
    **dict.fromkeys(("RecordingEnvironment",), "corral.environment.recording"),
    **dict.fromkeys(("Stamps",), "corral.files.stamps"),
    **dict.fromkeys(("open_for_write", "remove_beneath"), "corral.files.changing"),
    **dict.fromkeys(("LocalEnvironment",), "corral.environment.local"),
    **dict.fromkeys(("PIPE", "Output", "Process"), "corral.environment.process"),
    **dict.fromkeys(("Job",), "corral.environment.jobs"),
    **dict.fromkeys(("AsyncJob", "AsyncLocalEnvironment", "AsyncProcess"), "corral.environment.aio"),
    **dict.fromkeys(("Approval", "RiskRow"), "corral.approval"),
    **dict.fromkeys(("Sandbox",), "corral.sandbox"),
    **dict.fromkeys(("Plan",), "corral.jail.plan"),
    **dict.fromkeys(("probe_landlock",), "corral.jail.host"),
    **dict.fromkeys(("Jail", "RunOpts", "open_jail"), "corral.jails"),
    **dict.fromkeys(("Grant", "Limits", "Policy"), "corral.policy"),
    **dict.fromkeys(("EnvRule",), "corral.variables"),
    **dict.fromkeys(
        (
            *("CommandFailed", "CommandNotExecutable", "CommandNotFound", "CommandTimeout", "ConfigError"),
            *(
                "CorralError",
                "LandlockUnavailable",
                "LaunchRefused",
                "NotEnforceable",
                "PathEscape",
                "PathNotAllowed",
            ),
            *("InputClosed", "JobExists", "PolicyError", "Refused", "StillRunning", "UnknownBackend"),
            *("BadPath", "FileTooLarge", "HookError", "LinkLoop", "NotAFile", "SensitivePath", "StaleFile"),
        ),
        "corral.errors",
    ),
}

# The async names need anyio (`pip install corral[async]`), so a star does not import them.
__all__ = [
    "PIPE",
    "Approval",
    "BadPath",
    "Command",
    "CommandFailed",
    "CommandNotExecutable",
    "CommandNotFound",
    "CommandResult",
    "CommandTimeout",
    "ConfigError",
    "CorralError",
    "Denial",
    "EnvRule",
    "ExecutionEnvironment",
    "FileTooLarge",
    "Grant",
    "HookError",
    "InputClosed",
    "Jail",
    "Job",
    "JobExists",
    "LandlockUnavailable",
    "LaunchRefused",
    "Limits",
    "LinkLoop",
    "LocalEnvironment",
    "NotAFile",
    "NotEnforceable",
    "Output",
    "PathEscape",
    "PathNotAllowed",
    "Plan",
    "Policy",
    "PolicyError",
    "Posture",
    "Process",
    "RecordingEnvironment",
    "Refused",
    "RiskRow",
    "RunOpts",
    "Sandbox",
    "SensitivePath",
    "StaleFile",
    "Stamps",
    "StillRunning",
    "UnknownBackend",
    "attribute",
    "open_for_write",
    "open_jail",
    "probe_landlock",
    "remove_beneath",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'corral' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
