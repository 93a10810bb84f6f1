"""The completion script of bash, from 4.2 on: tables, and one function that reads them."""

from __future__ import annotations

from corral.cli.completion import kind_of, rest_of
from corral.cli.manual import Entry

HEAD = "# bash completion for corral; made by `corral completion bash`.\n"
FUNCTION = r"""
_corral() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    # An equals sign is a word of its own here.
    if [[ $word == '=' ]]; then
        word='' before=${COMP_WORDS[COMP_CWORD - 1]}
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "${!_corral_options[*]} --help --version" -- "$word")
        return
    fi
    local at=2 verb='' ended=''
    while ((at < COMP_CWORD)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            ended=yes
            ((at++))
            break
        elif [[ ${COMP_WORDS[at]} == -?* ]]; then
            if [[ -n ${_corral_values[$command ${COMP_WORDS[at]}]-} ]]; then
                ((at++))
                [[ ${COMP_WORDS[at]-} == '=' ]] && ((at++))
            fi
        elif [[ -z $verb && -n ${_corral_verbs[$command]-} ]]; then
            verb=${COMP_WORDS[at]}
        else
            break
        fi
        ((at++))
    done
    local kind=${_corral_values[$command $before]-}
    if ((at >= COMP_CWORD)) && [[ -n $kind && -z $ended ]]; then
        _corral_offer "$kind" "$word"
    elif ((at >= COMP_CWORD)) && [[ $word == -* && -z $ended ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${_corral_options[$command]-}" -- "$word")
    elif [[ -z $verb && -n ${_corral_verbs[$command]-} ]]; then
        _corral_offer "words ${_corral_verbs[$command]}" "$word"
    elif [[ ${_corral_rest[$command]-} == command ]]; then
        if ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        elif ((at < COMP_CWORD)); then
            _corral_offer files "$word"
        else
            mapfile -t COMPREPLY < <(compgen -c -- "$word")
        fi
    else
        _corral_offer "${_corral_rest[$command]-}" "$word"
    fi
}

_corral_offer() {
    local word=$2
    case $1 in
        words\ *) mapfile -t COMPREPLY < <(compgen -W "${1#* }" -- "$word") ;;
        names\ *) mapfile -t COMPREPLY < <(compgen -W "$(corral completion names "${1#* }" 2>/dev/null)" -- "$word") ;;
        files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    esac
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -F _corral corral
"""


def script(entries: list[Entry]) -> str:
    options = {
        entry.name: " ".join(name for option in entry.options for name in option.names) for entry in entries
    }
    values = {
        f"{entry.name} {name}": " ".join((kind_of(option)[0] or "anything", *kind_of(option)[1]))
        for entry in entries
        for option in entry.options
        if option.operand
        for name in option.names
    }
    verbs = {entry.name: " ".join(entry.verbs) for entry in entries if entry.verbs}
    rest = {
        entry.name: " ".join((rest_of(entry)[0], *rest_of(entry)[1]))
        for entry in entries
        if rest_of(entry)[0]
    }
    tables = {"options": options, "values": values, "verbs": verbs, "rest": rest}
    return HEAD + "".join(_table(name, rows) for name, rows in tables.items()) + FUNCTION


def _table(name: str, rows: dict[str, str]) -> str:
    lines = "".join(f"    ['{key}']='{text}'\n" for key, text in rows.items())
    return f"\ndeclare -gA _corral_{name}=(\n{lines})\n"
