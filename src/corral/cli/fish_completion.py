"""The completion script of fish: one `complete` for each command, option and verb."""

from __future__ import annotations

from corral.cli.completion import Kind, kind_of, rest_of
from corral.cli.manual import Entry, Option

HEAD = r"""# fish completion for corral; made by `corral completion fish`.

# Whether the options of corral go on here: no other word, and no two dashes. The arguments are options with a value.
function __corral_own_options
    set -l value no
    for word in (commandline -opc)[3..]
        if test $value = yes
            set value no
            continue
        end
        test "$word" = --
        and return 1
        switch $word
            case '--*=*'
            case '-*'
                contains -- $word $argv
                and set value yes
            case '*'
                return 1
        end
    end
    return 0
end

complete -c corral -f
"""


def script(entries: list[Entry]) -> str:
    lines = [
        f"complete -c corral -n __fish_use_subcommand -a {entry.name} -d {quoted(entry.summary)}"
        for entry in entries
    ]
    for entry in entries:
        lines += ["", *_command(entry)]
    return HEAD + "\n".join(lines) + "\n"


def _command(entry: Entry) -> list[str]:
    lines = []
    here = f"__fish_seen_subcommand_from {entry.name}"
    how = rest_of(entry)[0]
    ours = here
    if how == "command":
        valued = " ".join(name for option in entry.options if option.operand for name in option.names)
        lines.append(f"set -g __corral_{entry.name}_valued {valued}")
        ours = f"{here}; and __corral_own_options $__corral_{entry.name}_valued"
        offered = f"(__fish_complete_subcommand --fcs-skip=2 -- $__corral_{entry.name}_valued)"
        lines.append(f"complete -c corral -n '{here}' -x -a '{offered}'")
    lines += [f"complete -c corral -n '{ours}' {_option(option)}" for option in entry.options]
    if entry.verbs:
        before = f"{here}; and not __fish_seen_subcommand_from {' '.join(entry.verbs)}"
        lines.append(f"complete -c corral -n '{before}' -a '{' '.join(entry.verbs)}'")
        here = f"{here}; and __fish_seen_subcommand_from {' '.join(entry.verbs)}"
    if how and how != "command":
        lines.append(f"complete -c corral -n '{here}' {_offered(rest_of(entry))}")
    return lines


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
