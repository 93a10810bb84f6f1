"""A run fitted out for an agent: what its profile adds below what the user says, in this mode, on this mechanism."""

from __future__ import annotations

import os

from corral.config.agents import PRIVATE, RUNTIMES
from corral.paths.sensitive import KEY_MATERIAL
from corral.policy import Grant, Policy
from corral.record import Record
from corral.state import account_home, data_directory
from corral.variables import EnvRule, default_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corral.config.agents import Agent

# Modes whose home takes what is written, and those in which a sandbox can be made inside ours.
OWN_HOME = ("casual", "bare", "strict")
NESTING = ("casual", "bare")


class Outfit(Record):
    """``arguments`` come between the command and its own. ``private``: a directory for what the agent writes in home,
    to be filled by :func:`corral.config.seeding.seed_private` before the start; empty where home is its own.
    ``notes``: what the profile does, in a person's words."""

    policy: Policy
    arguments: tuple[str, ...] = ()
    private: str = ""
    notes: tuple[str, ...] = ()


def apply_profile(
    policy: Policy,
    agent: Agent,
    tier: str,
    *,
    jail: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Outfit:
    """The policy with the profile under it: whatever the user says of the same variable or place decides. ``tier``:
    the mechanism, namespaces or landlock. ``jail``: whose private directory it is."""
    if policy.mode == "off":
        return Outfit(policy)
    variables = os.environ if environ is None else environ
    own_home = tier == "namespaces" and policy.mode in OWN_HOME
    nests = tier == "namespaces" and policy.mode in NESTING
    private = (
        "" if own_home or policy.mode == "read-only" or not agent.moves else private_directory(agent, jail)
    )
    rules = _rules(agent, variables, private, nests)
    grants = _grants(policy, agent, variables, private, own_home=own_home)
    fitted = policy.replace(
        environment=beneath_own(policy.environment, rules),
        grants=(*grants, *policy.grants),
        unhide=tuple(dict.fromkeys((*policy.unhide, *_unmasked(agent)))),
    )
    arguments = agent.arguments if nests else (*agent.arguments, *agent.unnested)
    return Outfit(fitted, arguments, private, _notes(agent, grants, rules, arguments, variables))


def private_directory(agent: Agent, jail: str | None) -> str:
    return os.path.join(data_directory(), "agents", jail or "default", agent.name)


def located(agent: Agent, path: str, variables: Mapping[str, str]) -> str:
    """Where a path below home really is: a variable may have moved it."""
    for variable, place, inside in agent.moves:
        moved = variables.get(variable)
        if moved and (path == place or path.startswith(f"{place}/")):
            return os.path.normpath(os.path.join(moved, inside, path[len(place) + 1 :]))
    return os.path.join(variables.get("HOME") or account_home(), path)


def beneath_own(rules: tuple[EnvRule, ...], added: Iterable[EnvRule]) -> tuple[EnvRule, ...]:
    """Rules put after the built-in ones and before those of the user."""
    built_in = default_rules()
    if rules[: len(built_in)] != built_in:
        return (*added, *rules)
    return (*built_in, *added, *rules[len(built_in) :])


# ---- variables ----


def _rules(agent: Agent, variables: Mapping[str, str], private: str, nests: bool) -> tuple[EnvRule, ...]:
    kept = list(agent.keep)
    for switch, names in agent.providers:
        if variables.get(switch, "").lower() not in ("", "0", "false"):
            kept += names
    told = list(agent.tell)
    for variable, file, system in agent.bundled:
        if variable not in variables and not os.path.exists(system):
            told.append((variable, bundled_file(file)))
    if not nests:
        told += agent.unnested_tell
    if private:
        told += [(variable, os.path.join(private, variable)) for variable, _, _ in agent.moves]
        told += [(name, value.replace(PRIVATE, private)) for name, value in agent.private_tell]
    keeps = tuple(EnvRule("keep", name) for name in dict.fromkeys(kept))
    return keeps + tuple(EnvRule("set", name, value) for name, value in dict(told).items())


def bundled_file(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


# ---- places ----


def _unmasked(agent: Agent) -> list[str]:
    """The names of the default list that hide something of its own."""
    return [
        name for name in KEY_MATERIAL if any(own == name or own.startswith(f"{name}/") for own in agent.own)
    ]


def _grants(
    policy: Policy, agent: Agent, variables: Mapping[str, str], private: str, *, own_home: bool
) -> tuple[Grant, ...]:
    """Only of what is there: a profile names more places than any one person has."""
    wanted: dict[str, Grant] = {}

    def add(access: str, paths: Iterable[str]) -> None:
        for path in paths:
            if path not in wanted and os.path.lexists(path):
                wanted[path] = Grant(path, access, "skip")  # type: ignore[arg-type]

    def places(names: Iterable[str]) -> list[str]:
        return [located(agent, name, variables) for name in names]

    if policy.mode != "read-only":
        add("rw", places(agent.shared))
    if own_home and policy.mode != "casual":
        add("ro", (path for path in places(agent.guarded) if os.path.isdir(path)))
        add("ro", places((*agent.programs, *RUNTIMES)))
        add("ro", (bundled_file(file) for _, file, _ in agent.bundled))
    if not own_home and policy.mode != "read-only":
        moved = {place for _, place, _ in agent.moves}
        add("rw", places(name for name in agent.state if not any(is_in(name, place) for place in moved)))
    hidden = [_absolute(grant.path) for grant in policy.grants if grant.access == "hide"]
    grants = [grant for path, grant in wanted.items() if not any(is_in(path, place) for place in hidden)]
    return (*grants, *((Grant.rw(private, "create"),) if private else ()))


def is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


# ---- telling ----


def _notes(
    agent: Agent,
    grants: tuple[Grant, ...],
    rules: tuple[EnvRule, ...],
    arguments: tuple[str, ...],
    variables: Mapping[str, str],
) -> tuple[str, ...]:
    import shlex

    home = variables.get("HOME") or account_home()
    told = {
        "shared with the agent outside": [g.path for g in grants if g.access == "rw"],
        "shown read-only": [g.path for g in grants if g.access == "ro"],
        "guarded, a copy": [f"~/{path}" for path in agent.guarded],
        "variables kept": [rule.name for rule in rules if rule.verb == "keep"],
        "variables set": [f"{rule.name}={rule.value}" for rule in rules if rule.verb == "set"],
        "arguments added": [shlex.join(arguments)] if arguments else [],
    }
    lines = [f"profile {agent.name}; leave it off with --no-profile"]
    for what, names in told.items():
        if names:
            lines.append(f"{what}: {' '.join(name.replace(home + '/', '~/', 1) for name in names)}")
    return tuple(lines)
