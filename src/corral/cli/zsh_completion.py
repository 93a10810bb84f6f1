"""The completion script of zsh: one call of `_arguments` for each command."""

from __future__ import annotations

from corral.cli.completion import Kind, kind_of, rest_of
from corral.cli.manual import Entry, Option

HEAD = """#compdef corral
# zsh completion for corral; made by `corral completion zsh`.

_corral_names() {
    local -a found
    found=(${(f)"$(corral completion names $1 2>/dev/null)"})
    compadd -a found
}

_corral() {
    local curcontext=$curcontext state line
    local -a commands
    commands=(
"""
MIDDLE = """    )
    _arguments -C '1: :->command' '*:: :->words' && return
    if [[ $state == command ]]; then
        _describe command commands
        return
    fi
    case $line[1] in
"""
TAIL = """    esac
}

if [[ $funcstack[1] == _corral ]]; then
    _corral "$@"
else
    compdef _corral corral
fi
"""


def script(entries: list[Entry]) -> str:
    commands = "".join(f"        {quoted(f'{entry.name}:{escaped(entry.summary)}')}\n" for entry in entries)
    cases = "".join(_case(entry) for entry in entries)
    return HEAD + commands + MIDDLE + cases + TAIL


def _case(entry: Entry) -> str:
    specs = [_option(option) for option in entry.options]
    kind = rest_of(entry)
    if entry.verbs:
        specs.append(quoted(f"1: :({' '.join(entry.verbs)})"))
        specs.append(quoted(f"*: :{_action(kind)}"))
    elif kind[0] == "command":
        specs += [quoted("(-)1:command:_command_names -e"), quoted("*::arguments:_normal")]
    elif kind[0]:
        specs.append(quoted(f"*: :{_action(kind)}"))
    body = " \\\n                ".join(["_arguments -s -S -A '-*'", *specs])
    return f"        {entry.name})\n            {body} ;;\n"


def _option(option: Option) -> str:
    text = f"[{escaped(option.text).replace(']', chr(92) + ']')}]" if option.text else ""
    takes = f":{escaped(option.operand)}:{_action(kind_of(option))}" if option.operand else ""
    each = [
        f"*{name}{'=' if takes and name.startswith('--') else '+' if takes else ''}" for name in option.names
    ]
    return " ".join(quoted(f"{name}{text}{takes}") for name in each)


def _action(kind: Kind) -> str:
    how, which = kind
    if how == "words":
        return f"({' '.join(which)})"
    if how == "names":
        return f" _corral_names {which[0]}"  # a blank first: no further arguments are put in
    return {"files": "_files", "directories": "_files -/"}.get(how, " ")


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("[", "\\[")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
