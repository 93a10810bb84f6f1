"""The text that `corral init` writes: every key with its default, commented out, and what the defaults are.

It is made from the tables that the rest of Corral works by, so it cannot say what is not so. A line with `#` and no
space holds a setting; with the `#` taken off all of them, the text is a config that means exactly the defaults.
"""

from __future__ import annotations

from corral.approval import ANSWERS, LEVELS, Approval, RiskRow
from corral.claims import ALWAYS, CLAIMS
from corral.config.agents import AGENTS
from corral.config.settings import NO_AGENT
from corral.config.values import BYTES, UNLIMITED
from corral.paths.sensitive import BACKUPS, FAMILY, KEY_MATERIAL, SEGMENTS
from corral.policy import BACKENDS, LIMITS, MODES, Limits, Policy
from corral.variables import DESKTOP, HANDLES, INJECTION, KEPT, SECRETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.config.agents import Agent

_WIDTH = 100
_LIMIT_MEANING = {
    "wall": 'time on the clock, like "30s", "10m", "2h"',
    "file-size": 'the largest file that may be written, like "2G"',
    "cpu": 'processor time of one process, in whole seconds, like "90s"',
    "open-files": "open files of one process",
    "processes": "processes and threads at once",
    "memory": 'memory, like "8G"',
}


def default_text() -> str:
    return "\n".join(
        (
            *(*_head(), *_includes(), *_files(), *_jails(), *_strength()),
            *(*_limits(), *_approval(), *_environment(), *_agents(), *_tables()),
        )
    )


def _head() -> list[str]:
    default = Policy()
    width = max(map(len, MODES))
    return [
        "# What commands may do in the jails of Corral. Every setting stands here with its default: take the",
        "# first # off a line to change it. A wrong line is refused with its number; nothing is ignored.",
        "# A project may have a corral.toml of its own, which can tighten this and never loosen it.",
        *_prose(
            "Beside this file, commands/NAME.toml is read on top of it for `corral run NAME`, and jails/NAME.toml on "
            "top of that for the jail NAME. They take the same keys. In paths, and in what a variable is set to, "
            "${VAR} is the value of that variable."
        ),
        "",
        *_prose("Modes:"),
        *(f"#   {mode:<{width}}  {meaning}; network {network}" for mode, (network, meaning) in MODES.items()),
        f'#mode = "{default.mode}"',
        "",
        *_prose(
            "off: no connection leaves the jail. open: the host's network. Unless set, as the mode has it."
        ),
        f'#network = "{default.network}"',
        "",
    ]


def _includes() -> list[str]:
    return [
        *_prose(
            "Files to read first, so that this one lies over them; relative paths begin beside this file."
        ),
        "#include = []",
        *_prose("The same, but a file that is missing is left out."),
        "#include-optional = []",
        "",
    ]


def _files() -> list[str]:
    return [
        *_prose("Only these places in the workspace are writable, not all of it. For mode workspace-write."),
        '# writable = ["src/**", "out/*.md"]',
        *_prose(
            "Commands are bound to directories and to files that are there. A glob that they cannot be bound to (*.md, "
            "a file that is not there yet) is refused; true lets them write the whole directory that it lies in."
        ),
        "#wide-globs = false",
        "",
        *_prose("More directories that count as workspace."),
        "#roots = []",
        "",
        *_prose(
            "Places beyond the workspace: writable, and readable where a mode or a private directory would hide "
            "them. Relative paths begin in the workspace, ~/ in your home."
        ),
        "#rw = []",
        "#ro = []",
        "",
        *_prose("Hidden besides what is always hidden under home:"),
        *_wrapped(KEY_MATERIAL),
        *_prose("Each of them, and each file of your own list, also as what an editor leaves beside it:"),
        *_wrapped(f"{before}NAME{after}" for before, after in BACKUPS),
        *_prose("Relative paths in hide begin in the workspace."),
        "#hide = []",
        *_prose("The same with names below home; ./NAME is below the workspace."),
        "#mask = []",
        *_prose('Of that list, what commands may see after all, like ".npmrc". Also called unmask.'),
        "#unhide = []",
        "",
        *_prose(
            "Names, at any depth of a path, that no file tool reads, lists or writes, besides "
            f"{', '.join((*SEGMENTS, FAMILY + '*'))}. Patterns of one name."
        ),
        '# sensitive = ["*.pem", "id_rsa*"]',
        "",
        *_prose(
            "Open the screen and the session bus. They are closed because whoever reaches them can read your "
            "windows, type into them and start programs. The variables:"
        ),
        *_wrapped(DESKTOP),
        "#desktop = false",
        "",
    ]


def _jails() -> list[str]:
    return [
        *_prose(
            "The jail whose home it is in modes casual, bare and strict; without a name, one that is named after the "
            "project. Not in the file of a jail."
        ),
        '# jail = "web"',
        *_prose("Where jails are kept; empty: the state directory."),
        '#storage = ""',
        *_prose("What is written to the workspace waits until you apply it."),
        "#review = false",
        *_prose("Bash code that is read before the command, which may then be a function of it."),
        "#scripts = []",
        *_prose(
            "A program that is run outside, once, in the home of a jail that was just made; empty: none."
        ),
        '#initjail = ""',
        *_prose('Bash code that runs the command, which it finds in "$0" "$@"; empty: the command alone.'),
        '#command = ""',
        *_prose(
            f'The agent whose profile applies, if not the one of the command\'s name; "{NO_AGENT}": none.'
        ),
        '# agent = "claude"',
        "",
    ]


def _strength() -> list[str]:
    default = Policy()
    return [
        *_prose(
            "Refuse to run what cannot be enforced on this host. false: run it with what there is, unjailed if "
            "there is nothing, and say so."
        ),
        f"#require = {_toml(default.require)}",
        "",
        *_prose(
            f"What must hold, besides {', '.join(ALWAYS)}, for a command to run at all. By name, and what is "
            "so without it:"
        ),
        *(f"#   {name:<17} {meaning}" for name, meaning in CLAIMS.items() if name not in ALWAYS),
        "#demand = []",
        "",
        *_prose(f"The mechanism: {', '.join(BACKENDS)}."),
        f'#backend = "{default.backend}"',
        "",
        *_prose(
            "For jails without namespaces. Unix sockets: leave them open although nothing fences them, with the "
            "network off. Shared memory: let /dev/shm be written."
        ),
        f"#unix-sockets = {_toml(default.unix_sockets)}",
        f"#shared-memory = {_toml(default.shared_memory)}",
        "",
        *_prose(
            "Leave the interpreter and the package that run Corral writable where they lie in a writable place. "
            "Without namespaces such a place is refused otherwise; with them they are read-only inside."
        ),
        f"#trust-prefix = {_toml(default.trust_prefix)}",
        "",
        *_prose("How much of a command's output is kept, for each stream; the end of it."),
        f'#output-limit = "{_size(default.output_limit)}"',
        "",
    ]


def _limits() -> list[str]:
    lines = [
        *_prose(
            f'Upper bounds of one run. They only lower what you have; "{UNLIMITED}": yours is left as it is.'
        )
    ]
    lines.append("#[limits]")
    for name, (_, _, unit) in LIMITS.items():
        value = getattr(Limits(), name.replace("-", "_"))
        written = (
            f'"{UNLIMITED}"' if value is None else f'"{_size(value)}"' if unit == "bytes" else str(value)
        )
        lines.append(f"#{name} = {written}".ljust(24) + f"# {_LIMIT_MEANING[name]}")
    return [*lines, ""]


def _approval() -> list[str]:
    default = Approval()
    return [
        *_prose(
            "What happens to a command line by how dangerous it looks, where tools of an agent run it (see "
            "corral risk). Advice: the jail is the wall. Answers:"
        ),
        *(f"#   {answer:<7} {meaning}" for answer, meaning in ANSWERS.items()),
        "#[approval]",
        *(f'#{level} = "{default.at(level)}"'.ljust(24) + f"# {means}" for level, means in LEVELS.items()),
        f'#flag-forms = "{default.flag_forms}"'.ljust(24)
        + "# below dangerous: inline code, sending, edits in place",
        f"#allow-force = {_toml(default.allow_force)}".ljust(24)
        + "# a tool call with force: true lifts a refusal",
        *_prose('How commands begin that run all the same, if they are not dangerous, like "npm run".'),
        "#allow = []",
        "",
    ]


def _environment() -> list[str]:
    return [
        *_prose("Variables. The last rule that matches a name decides, and yours come after these:"),
        *_prose("dropped, secrets:"),
        *_wrapped(SECRETS),
        *_prose("dropped, ways to the outside:"),
        *_wrapped(HANDLES),
        *_prose("dropped, what makes other programs run code:"),
        *_wrapped(INJECTION),
        *_prose("kept all the same:"),
        *_wrapped(KEPT),
        *_prose(
            r'A rule is "drop PATTERN", "keep PATTERN" or "set NAME=VALUE"; * stands for any characters.'
        ),
        "#[environment]",
        "#rules = []",
        "",
        *_prose(
            "Directories of notes whose names and descriptions the tool related_context may show to an agent."
        ),
        "#[related_context]",
        "#paths = []",
        "",
    ]


def _agents() -> list[str]:
    return [
        *_prose(
            f"Agents. A command of one of these names gets its profile: {', '.join(AGENTS)}. Its own places are "
            "shown to it, and to no other command. shared: the real files, credentials and sessions. guarded: a copy, "
            "and flagged, because it is run later. state: a copy that nobody reads. keep: its credentials among the "
            "variables."
        ),
        *(line for agent in AGENTS.values() for line in _agent(agent)),
        *_prose("A list that is given takes the place of the built-in one. A new name is a new agent."),
        "# [agents.mine]",
        '# commands = ["mine"]',
        '# own = [".mine"]',
        '# shared = [".mine/login.json"]',
        '# guarded = [".mine/config.toml"]',
        '# state = [".mine/cache"]',
        '# programs = [".mine/bin"]',
        '# keep = ["MINE_API_KEY"]',
        '# set = { MINE_NO_UPDATE = "1" }',
        "",
    ]


def _agent(agent: Agent) -> list[str]:
    lines = [f"#   {agent.name}:"]
    for name in ("own", "shared", "guarded", "state", "keep"):
        lines += _filled((f"{name}:", *getattr(agent, name)), "#     ")
    return lines


def _tables() -> list[str]:
    return [
        *_prose(
            "Grants with more to say: access is rw, ro, hide or none; missing is refuse, skip or create."
        ),
        "# [[grant]]",
        '# path = "~/.cache/pip"',
        '# access = "rw"',
        '# missing = "create"',
        "",
        *_prose(
            f"Your own rules for commands; a row has {', '.join(RiskRow._fields)}. With verb it raises every use of "
            "a program, and refuse = true is above any approval; with exact it sets the level of one command line."
        ),
        "# [[risk]]",
        '# verb = "terraform"',
        '# options = "-destroy --destroy"',
        '# reason = "never from here"',
        "# refuse = true",
        "# [[risk]]",
        '# exact = "rm -rf build"',
        '# level = "caution"',
        "",
        *_prose(
            "Profiles: the same keys under a name, on top of what stands above. Lists are added to, but writable "
            "is replaced."
        ),
        "# [profile.careful]",
        '# mode = "read-only"',
        '# limits.wall = "10m"',
        "",
    ]


def _prose(text: str) -> list[str]:
    return _filled(text.split(" "), "# ")


def _wrapped(names: Iterable[str]) -> list[str]:
    return _filled(names, "#   ")


def _filled(words: Iterable[str], start: str) -> list[str]:
    lines = [start]
    for word in words:
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append(start)
        lines[-1] += f"{word} "
    return [line.rstrip() for line in lines]


def _toml(value: bool) -> str:
    return "true" if value else "false"


def _size(amount: int) -> str:
    for unit in ("T", "G", "M", "K"):
        if amount % int(BYTES[unit]) == 0:
            return f"{amount // int(BYTES[unit])}{unit}"
    return str(amount)
