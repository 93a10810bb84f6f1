"""`corral man`: the manual page, made from the help texts."""

from __future__ import annotations

import sys

from corral.cli.manual import Entry, entries
from corral.errors import PolicyError

USAGE = """usage: corral man [--roff]     show the manual page; in a pipe or with --roff, print its source

  --roff   corral man --roff > ~/.local/share/man/man1/corral.1 lets `man corral` find it"""

INTRODUCTION = """\
corral runs a command you do not fully trust inside a fence that the kernel holds. What is allowed is said by a mode,
by options and by corral.toml; what cannot be held on this host is refused, with the missing piece and the remedy."""
EXITS = (
    ("the command's own", "it ran"),
    ("128+N", "it was ended by signal N"),
    ("127, 126", "there is no such program, or it cannot be run"),
    ("124", "the time was up"),
    ("125", "this host or the policy refuses; nothing ran"),
    ("2", "the command line or the config is wrong; nothing ran"),
)
FILES = (
    (
        "~/.config/corral/corral.toml",
        "your config; corral init writes it. $CORRAL_CONFIG_DIR names another directory",
    ),
    ("corral.toml", "a project's own, at the top of it; it can only tighten"),
    ("~/.local/state/corral", "jails, changes, the audit. $CORRAL_STATE_DIR names another directory"),
)
# These take the options of `run`, which are not listed again.
LIKE_RUN = ("sh", "explain", "why")


def main(_: str, words: list[str]) -> int:
    if words in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if words not in ([], ["--roff"]):
        raise PolicyError(f"corral man does not take {words[0]}; try --help")
    if words or not sys.stdout.isatty():
        print(page(), end="")
        return 0
    return _shown()


def _shown() -> int:
    import subprocess
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
        file.write(page())
        file.flush()
        try:
            return subprocess.run(["man", "-l", file.name]).returncode
        except FileNotFoundError:
            raise PolicyError(
                "there is no man here; read `corral COMMAND --help`, or corral man --roff"
            ) from None


def page() -> str:
    from corral import __version__

    known = entries()
    lines = [
        f'.TH CORRAL 1 "" "corral {__version__}"',
        ".SH NAME",
        "corral \\- run commands in a fence that the kernel holds",
    ]
    lines += [".SH SYNOPSIS", ".nf", *(f"corral {entry.name} …" for entry in known), ".fi"]
    lines += [".SH DESCRIPTION", escaped(INTRODUCTION), ".SH COMMANDS"]
    for entry in known:
        lines += _command(entry)
    lines += [".SH EXIT STATUS", "Of corral run and corral sh:", *_terms(EXITS)]
    lines += [".SH FILES", *_terms(FILES)]
    lines += [
        ".SH SEE ALSO",
        "corral doctor says what this host holds; corral why PATH why something was refused.",
    ]
    return "\n".join(lines) + "\n"


def _command(entry: Entry) -> list[str]:
    lines = [f".SS corral {entry.name}", escaped(f"{entry.summary[:1].upper()}{entry.summary[1:]}.")]
    lines += [".PP", ".nf", *map(escaped, entry.usage), ".fi"]
    told = [line for line in entry.prose if line.strip()]
    if told:
        lines += [".PP", ".nf", *map(escaped, told), ".fi"]
    if entry.name in LIKE_RUN:
        return [*lines, ".PP", "It takes the options of corral run."]
    for option in entry.options:
        operand = f" \\fI{escaped(option.operand)}\\fR" if option.operand else ""
        names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in sorted(option.names, key=len))
        lines += [".TP", names + operand, escaped(option.text)]
    return lines


def _terms(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [line for name, text in rows for line in (".TP", escaped(name), escaped(text))]


def escaped(text: str) -> str:
    """Nothing in it is a request or an escape of roff's, and a hyphen stays one that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("\n.", "\n\\&.").replace("\n'", "\n\\&'")
    return f"\\&{text}" if text.startswith((".", "'")) else text
