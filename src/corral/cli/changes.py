"""`corral changes`: what a jail changed and nobody else has seen yet. Look, then apply or discard."""

from __future__ import annotations

import os
import sys

from corral.changes.layers import Layers, has_entries, remembered
from corral.cli import complain, harmless
from corral.errors import CorralError, PolicyError
from corral.record import Record
from corral.state import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.changes.change import Change

USAGE = """usage: corral changes [list|diff|apply|discard] [-j JAIL] [--home|--review] [OPTION …] [PATH …]

  list                 one line a change (the default): A added, M modified, D deleted, R renamed, T replaced,
                       m mode, t times, x extended attributes
  diff                 a patch that `git apply` and `patch` take
  apply                make the changes in the real directory, all that are chosen or none
  discard              throw them away

  -j, --jail JAIL      whose; without it, that of this project, or the only one there is
  --home, --review     of the home directory, or of the reviewed workspace, where a jail has both
  -p, --interactive    apply: ask for each change, and for each hunk of a text file
  --allow-exec         apply: also what would run outside later without being named
  --overwrite          apply: also the named paths that were changed outside meanwhile; those versions are kept aside
  --keep FILE          discard: write a patch of it to FILE first
  --json               for programs
  PATH                 a file, or a directory and all below it

Exit code 0: done; 1: something was left behind; 2: wrong words; 125: refused, nothing was applied."""

ACTIONS = ("list", "diff", "apply", "discard")
SWITCHES = {
    "-p": "interactive",
    "--interactive": "interactive",
    "--patch": "interactive",
    "--allow-exec": "allow_exec",
    "--overwrite": "overwrite",
    "--json": "json",
    "--home": "home",
    "--review": "review",
    "-h": "help",
    "--help": "help",
}
VALUES = {"-j": "jail", "--jail": "jail", "--keep": "keep"}
# Which of them make sense for which action.
ONLY_FOR = {"interactive": "apply", "allow_exec": "apply", "overwrite": "apply", "keep": "discard"}


class Asked(Record):
    """The command line."""

    action: str
    switches: frozenset[str]
    values: dict[str, str]
    paths: tuple[str, ...]


def main(subcommand: str, words: list[str]) -> int:
    asked = parse(words)
    if "help" in asked.switches:
        print(USAGE)
        return 0
    layers = find_layers(asked)
    paths = [below(layers, path) for path in asked.paths] or None
    actions: dict[str, Callable[[Asked, Layers, list[str] | None], int]] = {
        "list": _list,
        "diff": _diff,
        "apply": _apply,
        "discard": _discard,
    }
    if not os.path.isdir(layers.lower):
        raise PolicyError(
            f"{layers.lower} is gone, to which the changes of this jail belong; make it again, or corral jails rm JAIL",
            path=layers.lower,
        )
    try:
        return actions[asked.action](asked, layers, paths)
    except OSError as error:
        if isinstance(error, CorralError | BrokenPipeError):
            raise
        return complain(f"{error.filename or layers.lower}: {error.strerror}", 125)


def parse(words: Sequence[str]) -> Asked:
    rest = list(words)
    action = ""
    switches: set[str] = set()
    values: dict[str, str] = {}
    paths: list[str] = []
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            paths += rest
            break
        if word in SWITCHES:
            switches.add(SWITCHES[word])
        elif word in VALUES and rest:
            values[VALUES[word]] = rest.pop(0)
        elif name in VALUES and equals:
            values[VALUES[name]] = value
        elif word.startswith("-") and word != "-":
            raise PolicyError(f"corral changes does not take {word}; try --help, or -- before a path")
        elif not action and not paths and word in ACTIONS:
            action = word
        else:
            paths.append(word)
    action = action or "list"
    for name in (*switches, *values):
        if ONLY_FOR.get(name, action) != action:
            raise PolicyError(f"--{name.replace('_', '-')} is for corral changes {ONLY_FOR[name]}")
    if "overwrite" in switches and not paths and "interactive" not in switches:
        raise PolicyError("--overwrite needs the paths that may be overwritten")
    return Asked(action, frozenset(switches), values, tuple(paths))


# ---- which jail ----


def find_layers(asked: Asked) -> Layers:
    jails = os.path.join(state_directory(), "jails")
    jail = asked.values.get("jail") or _default_jail(jails)
    if "/" in jail or jail in ("", ".", ".."):
        raise PolicyError(f"{jail!r} is no name of a jail; corral jails lists them")
    base = os.path.join(jails, jail)
    home, review = remembered(base), remembered(os.path.join(base, "review"))
    if "home" in asked.switches or "review" in asked.switches:
        chosen = review if "review" in asked.switches else home
        if chosen is None:
            raise PolicyError(
                f"nothing ever ran in jail {jail} that could have changed that; leave out --home or --review"
            )
        return chosen
    found = [layers for layers in (home, review) if layers is not None]
    if not found:
        raise PolicyError(f"jail {jail} keeps no changes")
    with_changes = [layers for layers in found if has_entries(layers.upper)]
    if len(with_changes) > 1:
        raise PolicyError(f"jail {jail} holds changes to both home and workspace; say --home or --review")
    return (with_changes or found)[0]


def _default_jail(jails: str) -> str:
    try:
        names = sorted(name for name in os.listdir(jails) if os.path.isdir(os.path.join(jails, name)))
    except FileNotFoundError:
        names = []
    default = _name_of_project()
    if default in names:
        return default
    if len(names) == 1:
        return names[0]
    if not names:
        raise PolicyError("no jail has kept anything yet; corral run makes one")
    raise PolicyError(f"which jail? -j {' | '.join(names)}")


def _name_of_project() -> str:
    from corral.jail.named import default_name

    return default_name(os.getcwd())


def below(layers: Layers, path: str) -> str:
    """A path as it was typed, relative to the directory that the changes belong to."""
    lower = os.path.realpath(layers.lower)
    here = os.path.realpath(".")
    start = here if here == lower or here.startswith(lower.rstrip("/") + "/") else lower
    full = os.path.normpath(os.path.join(start, path))
    for top in (lower, layers.lower):
        if full == top:
            return ""
        if full.startswith(top.rstrip("/") + "/"):
            return full[len(top.rstrip("/")) + 1 :]
    raise PolicyError(f"{path} is not below {lower}", path=path)


# ---- the four actions ----


def _list(asked: Asked, layers: Layers, paths: list[str] | None) -> int:
    from corral.changes.change import selects
    from corral.changes.sealing import survey

    found = survey(layers)
    changes = [change for change in found.changes if selects(paths, change)]
    if "json" in asked.switches:
        _print_json(
            {
                "directory": layers.lower,
                "running": found.running,
                "notes": found.notes,
                "changes": [change.to_dict() for change in changes],
            }
        )
        return 0
    _tell(found.notes)
    for change in changes:
        print(change.line())
    return 0


def _diff(asked: Asked, layers: Layers, paths: list[str] | None) -> int:
    from corral.changes.change import selects
    from corral.changes.patch import pieces
    from corral.changes.sealing import survey
    from corral.cli.paging import Meter, Pager

    found = survey(layers)
    _tell(found.notes)
    changes = [change for change in found.changes if selects(paths, change)]
    meter = Meter("reading", quiet=sys.stdout.isatty())
    with Pager() as pager:
        for done, piece in enumerate(pieces(layers, changes), 1):
            pager.write(piece)
            meter(done, len(changes))
    meter.close()
    return 0


def _apply(asked: Asked, layers: Layers, paths: list[str] | None) -> int:
    from corral.changes.applying import apply
    from corral.cli.paging import Meter

    meter = Meter("applying")
    if "interactive" in asked.switches:
        from corral.cli.picking import pick

        picked = pick(layers, paths)
        if not picked.paths:
            print("nothing was applied")
            return 0
        done = apply(
            layers,
            exact=picked.paths,
            overwrite=picked.overwrite,
            partial=picked.partial,
            progress=meter,
        )
    else:
        overwrite = paths or [] if "overwrite" in asked.switches else []
        allow = "allow_exec" in asked.switches
        done = apply(layers, paths, allow_exec=allow, overwrite=overwrite, progress=meter)
    meter.close()
    if "json" in asked.switches:
        _print_json(
            {
                "applied": [change.path for change in done.applied],
                "left": [{"path": change.path, "reason": reason} for change, reason in done.left],
                "aside": done.aside,
                "notes": done.notes,
            }
        )
    else:
        _tell(done.notes)
        print(f"applied {_counted(done.applied)} to {harmless(layers.lower)}")
        for change, reason in done.left:
            print(harmless(f"left: {change.path}: {reason}"))
        for place in done.aside:
            print(harmless(f"the version that stood there is kept: {place}"))
    return 1 if done.left else 0


def _discard(asked: Asked, layers: Layers, paths: list[str] | None) -> int:
    from corral.changes.discarding import discard
    from corral.changes.patch import is_in_repository

    gone = discard(layers, paths, keep=asked.values.get("keep"))
    if "json" in asked.switches:
        _print_json({"discarded": [change.path for change in gone]})
    else:
        print(f"discarded {_counted(gone)}; {harmless(layers.lower)} is as it was")
        inner = [change for change in gone if is_in_repository(change)]
        if inner and "keep" in asked.values:
            print(f"{_counted(inner)} in .git stand in the patch as remarks only: git takes no others")
    return 0


def _counted(changes: Sequence[Change]) -> str:
    return f"{len(changes)} change{'' if len(changes) == 1 else 's'}"


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        complain(note, 0)


def _print_json(told: object) -> None:
    import json

    print(json.dumps(told, indent=2))
