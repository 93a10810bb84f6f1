"""From the words after `run`, `sh` or `explain` to an enclosure and a command."""

from __future__ import annotations

import os

from corral.cli.options import Parsed, apply
from corral.errors import PolicyError
from corral.jail.enclosure import PROJECT_CONFIG, Enclosure
from corral.record import Record
from corral.state import account_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.policy import Policy


class Ready(Record):
    """Everything a run needs. ``why_mode``: why the default mode is not casual, if it was not asked for."""

    enclosure: Enclosure
    argv: tuple[str, ...]
    why_mode: str


def prepare(subcommand: str, parsed: Parsed) -> Ready:
    directory = _directory(parsed)
    policy, why_mode = _policy(parsed, directory)
    enclosure = Enclosure(
        directory,
        policy,
        inherits_streams=True,
        kept=tuple(_descriptor(value) for value in parsed.all("--keep-fd")),
        degraded=parsed.has("--degraded"),
    )
    _guard_project_config(directory, enclosure)
    return Ready(enclosure, _command(subcommand, parsed), why_mode)


def _directory(parsed: Parsed) -> str:
    try:
        return os.path.abspath(parsed.last("--cd") or os.getcwd())
    except FileNotFoundError:
        raise PolicyError(
            "the working directory is gone; change to one that exists, or use --cd DIR"
        ) from None


def _guard_project_config(directory: str, enclosure: Enclosure) -> None:
    """A jail that cannot protect the project's config could change it: the next run compares it with what it is now."""
    if "project-config" not in enclosure.choice.not_covered or enclosure.choice.backend == "none":
        return
    if os.path.exists(os.path.join(directory, PROJECT_CONFIG)):
        from corral.config import remember_project

        remember_project(directory)


def _policy(parsed: Parsed, directory: str) -> tuple[Policy, str]:
    from corral.config import load

    loaded = load(profile=parsed.last("--profile"), project=directory, user=parsed.last("--config"))
    policy, why_mode = loaded.policy, ""
    if not parsed.has("--mode") and "mode" not in loaded.given:
        # Where nobody chose, `run` is for a person and their agent: the network is open.
        policy = policy.replace(network="open") if "network" not in loaded.given else policy
        why_mode = "casual is not part of this version"
    return apply(parsed, policy, account_home()), why_mode


def _descriptor(text: str) -> int:
    if not text.isdigit() or int(text) < 3:
        raise PolicyError(f"--keep-fd takes a descriptor from 3 on, not {text}")
    try:
        os.fstat(int(text))
    except OSError:
        raise PolicyError(f"--keep-fd {text}: no such descriptor") from None
    return int(text)


def _command(subcommand: str, parsed: Parsed) -> tuple[str, ...]:
    if subcommand == "sh":
        if len(parsed.words) != 1:
            raise PolicyError("corral sh takes one line, in a single argument")
        return ("bash", "-c", parsed.words[0])
    if parsed.words:
        return parsed.words
    import pwd

    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        shell = ""
    return (shell or "/bin/sh",)
