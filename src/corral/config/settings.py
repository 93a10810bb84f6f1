"""What files and options say about one run that is no part of its policy, and which agent a command is."""

from __future__ import annotations

import os

from corral.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.config.agents import Agent
    from corral.config.schema import Layer

# Command → the profile that Corral ships for it, in agents.py. Here, so that other commands need not load that.
COMMANDS = {
    "claude": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "aider": "aider",
    "opencode": "opencode",
}
NO_AGENT = "none"


class RunSettings(Record):
    """``scripts``: sourced by bash before the command, absolute, in order. ``initjail``: a program that is run outside,
    once, when a jail's home was made. ``command``: bash code that runs the command. ``desktop``: the screen and the
    session bus are open. ``agent``: whose profile applies."""

    scripts: tuple[str, ...] = ()
    initjail: str | None = None
    command: str | None = None
    desktop: bool = False
    agent: Agent | None = None


def settings_from(layers: list[Layer], command: str | None) -> RunSettings:
    """Later layers decide; scripts add up, each once."""
    said: dict[str, Any] = {}
    scripts: dict[str, None] = {}
    for layer in layers:
        directory = os.path.dirname(layer.source.path)
        for path in layer.settings.get("scripts", ()):
            scripts[_beside(directory, path)] = None
        if "initjail" in layer.settings:
            program = layer.settings["initjail"]
            said["initjail"] = _beside(directory, program) if "/" in program else program or None
        if "command" in layer.settings:
            said["command"] = layer.settings["command"] or None
        if "desktop" in layer.settings:
            said["desktop"] = layer.settings["desktop"]
    return RunSettings(tuple(scripts), **said, agent=_agent(layers, command))


def _beside(directory: str, path: str) -> str:
    return os.path.normpath(os.path.join(directory, os.path.expanduser(path)))


def _agent(layers: list[Layer], command: str | None) -> Agent | None:
    """The one that a file names for this command, or the one that goes by the command's name."""
    tables: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for name, table in layer.settings.get("agents", {}).items():
            tables[name] = {**tables.get(name, {}), **table}
    named = next((layer for layer in reversed(layers) if "agent" in layer.settings), None)
    word = os.path.basename(command or "")
    chosen = named.settings["agent"] if named else COMMANDS.get(word)
    if named is None:
        for name, table in tables.items():
            if word in table.get("commands", (name,)):
                chosen = name
    if chosen is None or chosen == NO_AGENT:
        return None
    from corral.config.agents import AGENTS, Agent

    if chosen not in AGENTS and chosen not in tables:
        assert named is not None
        near = (chosen, (*AGENTS, *tables, NO_AGENT))
        raise named.source.refuse(named.setting_places["agent"], f"no agent is called {chosen!r}", near)
    fields = {name: value for name, value in tables.get(chosen, {}).items() if name != "commands"}
    return AGENTS.get(chosen, Agent(chosen)).replace(**fields)
