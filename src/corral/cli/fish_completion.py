"""The completion script of fish: one `complete` for each command, option and verb."""

from __future__ import annotations

from corral.cli.completion import Kind, kind_of, rest_of
from corral.cli.manual import Entry, Option

HEAD = "# fish completion for corral; made by `corral completion fish`.\n\ncomplete -c corral -f\n"


def script(entries: list[Entry]) -> str:
    lines = [
        f"complete -c corral -n __fish_use_subcommand -a {entry.name} -d {quoted(entry.summary)}"
        for entry in entries
    ]
    for entry in entries:
        lines.append("")
        here = f"__fish_seen_subcommand_from {entry.name}"
        lines += [f"complete -c corral -n '{here}' {_option(option)}" for option in entry.options]
        if entry.verbs:
            before = f"{here}; and not __fish_seen_subcommand_from {' '.join(entry.verbs)}"
            lines.append(f"complete -c corral -n '{before}' -a '{' '.join(entry.verbs)}'")
            here = f"{here}; and __fish_seen_subcommand_from {' '.join(entry.verbs)}"
        kind = rest_of(entry)
        if kind[0] == "command":
            valued = " ".join(name for option in entry.options if option.operand for name in option.names)
            offered = f"-x -a '(__fish_complete_subcommand --fcs-skip=2 -- {valued})'"
            lines.append(f"complete -c corral -n '{here}' {offered}")
        elif kind[0]:
            lines.append(f"complete -c corral -n '{here}' {_offered(kind)}")
    return HEAD + "\n".join(lines) + "\n"


def _option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    takes = ""
    if option.operand:
        kind = kind_of(option)
        takes = f" {_offered(kind)}" if kind[0] else " -x"
    text = f" -d {quoted(option.text)}" if option.text else ""
    return names + takes + text


def _offered(kind: Kind) -> str:
    how, which = kind
    if how == "words":
        return f"-x -a '{' '.join(which)}'"
    if how == "names":
        return f"-x -a '(corral completion names {which[0]} 2>/dev/null)'"
    return "-x -a '(__fish_complete_directories)'" if how == "directories" else "-r -F"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
