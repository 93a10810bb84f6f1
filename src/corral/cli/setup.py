"""From the words after `run`, `sh` or `explain` to an enclosure and a command."""

from __future__ import annotations

import os

from corral.cli.options import Parsed, apply, config_file, directory_of, settings_of
from corral.config.settings import RunSettings
from corral.errors import NotEnforceable, PolicyError
from corral.jail.enclosure import Enclosure
from corral.jail.survey import PROJECT_CONFIG
from corral.record import Record
from corral.state import account_home, made_state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.config.agents import Agent
    from corral.config.loading import Loaded
    from corral.config.outfit import Outfit
    from corral.policy import Policy
    from corral.workspace.metadata import Workspace

# What `run` takes where nobody chose, best first.
DEFAULT_MODES = ("casual", "workspace-write")


class Ready(Record):
    """Everything a run needs. ``why_mode``: why the default mode is not casual, if it was not asked for. ``private``: a
    directory to be filled for the agent before the start. ``notes``: what its profile does."""

    enclosure: Enclosure
    argv: tuple[str, ...]
    why_mode: str
    settings: RunSettings = RunSettings()
    private: str = ""
    notes: tuple[str, ...] = ()


def prepare(subcommand: str, parsed: Parsed) -> Ready:
    mode = parsed.last("--mode")
    if os.getuid() == 0 and mode in (None, "casual", "bare"):
        from corral.cli.sudo import become_sudo_user

        become_sudo_user()
    workspace = _workspace(parsed)
    directory = directory_of(parsed) if workspace is None else workspace.path
    command = _command(subcommand, parsed)
    loaded = _load(parsed, directory, None if subcommand == "sh" else next(iter(parsed.words), None))
    chosen = mode or _mode_of_files(loaded, parsed)
    if chosen:
        return _ready(subcommand, parsed, loaded, workspace, directory, command, chosen)
    best, otherwise = DEFAULT_MODES
    if workspace is not None:
        return _ready(subcommand, parsed, loaded, workspace, directory, command, otherwise)
    try:
        return _ready(subcommand, parsed, loaded, workspace, directory, command, best)
    except NotEnforceable as error:
        text = str(error).removeprefix(f"this host cannot hold mode {best}: ").partition(". Remedy:")[0]
        ready = _ready(subcommand, parsed, loaded, workspace, directory, command, otherwise)
        return ready.replace(why_mode=f"not {best}: {text}")


def _load(parsed: Parsed, directory: str, word: str | None) -> Loaded:
    from corral.config import load
    from corral.jail.named import default_name

    return load(
        profile=parsed.last("--profile"),
        project=directory,
        user=config_file(parsed),
        command=word,
        jail=parsed.last("--jail"),
        default_jail=default_name(directory),
    )


def _mode_of_files(loaded: Loaded, parsed: Parsed) -> str:
    """The mode that a file sets, or that a named jail was made with; empty if nobody chose."""
    if "mode" in loaded.given:
        return loaded.policy.mode
    name = parsed.last("--jail") or loaded.policy.jail
    if not name:
        return ""
    from corral.jail import named

    jail = named.find(name, parsed.last("--storage") or loaded.policy.storage)
    known = named.recorded(jail) if jail is not None else None
    return known["mode"] if known is not None else ""


def _ready(
    subcommand: str,
    parsed: Parsed,
    loaded: Loaded,
    workspace: Workspace | None,
    directory: str,
    command: tuple[str, ...],
    mode: str,
) -> Ready:
    policy = loaded.policy
    if not parsed.has("--mode") and "mode" not in loaded.given:
        # Where nobody chose, `run` is for a person and their agent: the network is open.
        network = policy.network if "network" in loaded.given else "open"
        policy = policy.replace(mode=mode, network=network)
    settings = settings_of(parsed, loaded.settings)
    policy = apply(parsed, policy, account_home())
    argv, private, notes = command, "", []
    if workspace is not None:
        from corral.workspace.running import command_in, opened, policy_for

        policy = (opened if subcommand == "explain" else policy_for)(workspace, policy)
        argv = command_in(workspace, argv)
    if settings.desktop:
        from corral.config.desktop import WARNING, apply_desktop

        policy = apply_desktop(policy, os.environ)
        notes.append(WARNING)
    if settings.agent is not None:
        outfit = _outfit(policy, settings.agent, directory)
        policy, private = outfit.policy, outfit.private
        argv = (argv[0], *outfit.arguments, *argv[1:])
        notes += outfit.notes
    enclosure = Enclosure(
        directory,
        policy,
        inherits_streams=True,
        kept=tuple(_descriptor(value) for value in parsed.all("--keep-fd")),
        degraded=parsed.has("--degraded"),
    )
    _guard_project_config(directory, enclosure)
    return Ready(enclosure, _scripted(argv, settings), "", settings, private, tuple(notes))


def _outfit(policy: Policy, agent: Agent, directory: str) -> Outfit:
    """The policy with the profile of the agent that the command is."""
    from corral.config.outfit import apply_profile
    from corral.jail.host import this_host
    from corral.jail.named import default_name

    tier = policy.backend
    if tier == "auto":
        tier = "namespaces" if this_host(account_home(), made_state_directory()).namespaces else "landlock"
    return apply_profile(policy, agent, tier, jail=policy.jail or default_name(directory))


def _scripted(argv: tuple[str, ...], settings: RunSettings) -> tuple[str, ...]:
    """The command as bash code runs it: the scripts first, whose functions may stand for commands."""
    if not settings.scripts and settings.command is None:
        return argv
    parts = []
    for path in settings.scripts:
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                parts.append(file.read())
        except OSError as error:
            raise PolicyError(f"script {path}: {error.strerror}", path=path) from None
    code = settings.command if settings.command is not None else '"$0" "$@"'
    return ("bash", "-c", "\n".join([*parts, code]), *argv)


def _workspace(parsed: Parsed) -> Workspace | None:
    name = parsed.last("--workspace")
    if name is None:
        return None
    if parsed.has("--cd"):
        raise PolicyError("--workspace has a directory of its own; leave --cd out")
    from corral.workspace.life import load

    return load(name)


def _guard_project_config(directory: str, enclosure: Enclosure) -> None:
    """A jail that cannot protect the project's config could change it: the next run compares it with what it is now."""
    if "project-config" not in enclosure.choice.not_covered or enclosure.choice.backend == "none":
        return
    if os.path.exists(os.path.join(directory, PROJECT_CONFIG)):
        from corral.config import remember_project

        remember_project(directory)


def _descriptor(text: str) -> int:
    if not text.isdigit() or int(text) < 3:
        raise PolicyError(f"--keep-fd takes a descriptor from 3 on, not {text}")
    try:
        os.fstat(int(text))
    except OSError:
        raise PolicyError(
            f"--keep-fd {text}: no such descriptor; the shell opens one by {text}<FILE after the command"
        ) from None
    return int(text)


def _command(subcommand: str, parsed: Parsed) -> tuple[str, ...]:
    if subcommand == "sh":
        if len(parsed.words) != 1:
            raise PolicyError("corral sh takes one line, in a single argument: corral sh 'LINE'")
        return ("bash", "-c", parsed.words[0])
    if parsed.words:
        return parsed.words
    import pwd

    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        shell = ""
    return (shell or "/bin/sh",)
