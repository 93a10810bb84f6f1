"""`corral completion SHELL`: the completion script, made from the help texts."""

from __future__ import annotations

from corral.cli.manual import Entry, Option, entries
from corral.errors import PolicyError
from corral.policy import BACKENDS, LIMITS, MODES, nearest

SHELLS = ("bash", "zsh", "fish")
USAGE = """usage: corral completion bash|zsh|fish      print the completion script of that shell
       corral completion names jails|workspaces|profiles      what the scripts ask when you press the key

  bash   corral completion bash > ~/.local/share/bash-completion/completions/corral
  zsh    corral completion zsh > DIR/_corral, with DIR in your $fpath
  fish   corral completion fish > ~/.config/fish/completions/corral.fish"""

# What an option takes: words that are written down here, names that are looked up, files or directories.
BY_OPTION = {
    "--limit": ("words", tuple(f"{name}=" for name in LIMITS)),
    "--jail": ("names", ("jails",)),
    "--workspace": ("names", ("workspaces",)),
    "--profile": ("names", ("profiles",)),
}
BY_OPERAND = {
    "MODE": ("words", tuple(MODES)),
    "B": ("words", BACKENDS),
    "off|open": ("words", ("off", "open")),
    "apparmor": ("words", ("apparmor",)),
    "DIR": ("directories", ()),
    "FILE": ("files", ()),
    "PATH": ("files", ()),
    "PROGRAM": ("files", ()),
}
# What follows the options and, where there are verbs, the verb.
REST = {
    **dict.fromkeys(("run", "explain"), ("command", ())),
    **dict.fromkeys(("why", "changes"), ("files", ())),
    "jails": ("names", ("jails",)),
    "workspace": ("names", ("workspaces",)),
    "trust": ("directories", ()),
}
NAMES = ("jails", "workspaces", "profiles")

# How something is completed: "words" or "names" with which, "files", "directories", "command", or "" for nothing.
Kind = tuple[str, tuple[str, ...]]


def main(_: str, words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else 2
    if len(words) == 2 and words[0] == "names" and words[1] in NAMES:
        print("\n".join(known_names(words[1])))
        return 0
    if len(words) != 1 or words[0] not in SHELLS:
        near = nearest(words[0], SHELLS)
        raise PolicyError(
            f"corral completion takes one of {', '.join(SHELLS)}, not {' '.join(words)!r}{near}"
        )
    module = __import__(f"corral.cli.{words[0]}_completion", fromlist=["script"])
    print(module.script(entries()), end="")
    return 0


def known_names(kind: str) -> list[str]:
    """Of this user, as they are now; none rather than an error, which nobody would see."""
    if kind == "jails":
        from corral.jail.named import every

        return [jail.name for jail in every()]
    if kind == "workspaces":
        from corral.workspace.metadata import names

        return names()
    import os
    import tomllib

    from corral.state import config_directory

    try:
        with open(os.path.join(config_directory(), "corral.toml"), "rb") as file:
            return sorted(tomllib.load(file).get("profile", {}))
    except (OSError, ValueError):
        return []


def kind_of(option: Option) -> Kind:
    for name in option.names:
        if name in BY_OPTION:
            return BY_OPTION[name]
    return BY_OPERAND.get(option.operand, ("", ()))


def rest_of(entry: Entry) -> Kind:
    return REST.get(entry.name, ("", ()))
