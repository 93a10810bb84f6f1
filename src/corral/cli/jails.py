"""`corral jails` and `corral down`: what jails are kept, how much, since when, and who runs in them."""

from __future__ import annotations

import contextlib
import os
import time

from corral.cli import complain, harmless
from corral.errors import NotEnforceable, PolicyError
from corral.jail import named, stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.named import NamedJail

USAGE = {
    "jails": """usage: corral jails [--json] [--storage DIR]      every jail: mode, size, age, who runs in it
       corral jails rm [--storage DIR] JAIL …      remove it with its home and all it kept
       corral jails stale [-j|--jail JAIL] [--storage DIR]   files it copied whose originals have changed since""",
    "down": """usage: corral down [-j|--jail JAIL] [--set-aside] [--storage DIR]
       check that nothing runs in a jail (all of them without -j); what it changed is kept
       --set-aside  rename what it changed, and start anew at the next run; nothing is deleted""",
}
KEPT = ("changes", "home", "review/changes")


def main(subcommand: str, words: list[str]) -> int:
    options, rest = _parse(subcommand, words)
    if "--help" in options:
        print(USAGE[subcommand])
        return 0
    storage = options.get("--storage")
    if subcommand == "down":
        if rest:
            raise PolicyError(f"corral down takes no command (did you mean -j {rest[0]}?)")
        return _down(options.get("--jail"), storage, set_aside="--set-aside" in options)
    if rest == ["stale"]:
        return _stale(options.get("--jail"), storage)
    if "--jail" in options:
        raise PolicyError("-j is for corral jails stale; to remove one: corral jails rm JAIL")
    if rest[:1] == ["rm"]:
        return _remove(rest[1:], storage)
    if rest:
        wrong = rest[1] if rest[0] == "stale" else rest[0]
        raise PolicyError(f"unknown word {wrong!r}; there is rm and stale")
    return _list(storage, as_json="--json" in options)


def _parse(subcommand: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """A switch, or an option with a value, anywhere; the rest are words."""
    names = {"-j": "--jail", "-h": "--help"}
    known = {"--storage", "--jail", "--help", "--json" if subcommand == "jails" else "--set-aside"}
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            rest.append(word)
            continue
        name, has_value, value = word.partition("=")
        name = names.get(name, name)
        if name not in known:
            from corral.policy import nearest

            raise PolicyError(f"unknown option {name}{nearest(name, known)}; try corral {subcommand} --help")
        if name not in ("--jail", "--storage"):
            if has_value:
                raise PolicyError(f"option {name} takes no value; try corral {subcommand} --help")
        elif not has_value:
            if not waiting:
                raise PolicyError(f"option {word} needs a value; try corral {subcommand} --help")
            value = waiting.pop(0)
        options[name] = value
    return options, rest


def _found(name: str, storage: str | None) -> NamedJail:
    jail = named.find(name, storage)
    if jail is None:
        from corral.policy import nearest

        known = [other.name for other in named.every(storage)]
        raise PolicyError(f"there is no jail {name}{nearest(name, known)}; corral jails lists them")
    return jail


def _users(jail: NamedJail) -> list[int]:
    return [holder.pid for holder in stage.living(jail)]


def _refuse_use(jail: NamedJail) -> None:
    pids = _users(jail)
    if pids:
        raise NotEnforceable(f"jail {jail.name} is in use by pid {', '.join(map(str, pids))}; end that first")


# ---- listing ----


def _list(storage: str | None, *, as_json: bool) -> int:
    rows = [_facts(jail) for jail in named.every(storage) if named.recorded(jail) is not None]
    if as_json:
        import json

        print(json.dumps(rows, indent=2))
        return 0
    if not rows:
        print("no jails yet; the first `corral run` of a project makes one")
    for row in rows:
        pids = row["running"]
        assert isinstance(pids, list)
        state = f"  running: pid {', '.join(map(str, pids))}" if pids else ""
        size, age = _size(row["bytes"]), _age(row["used"])
        line = f"{row['name']:<32} {row['mode']:<8} {size:>8} {age:>6}  {row['directory']}{state}"
        print(harmless(line))
    return 0


def _facts(jail: NamedJail) -> dict[str, object]:
    told = named.recorded(jail) or {}
    total, latest = 0, 0.0
    for part in KEPT:
        size, changed = _weigh(jail.part(part))
        total, latest = total + size, max(latest, changed)
    return {
        "name": jail.name,
        "mode": told.get("mode", ""),
        "directory": told.get("directory", ""),
        "bytes": total,
        "used": latest,
        "running": _users(jail),
        "path": jail.path,
    }


def _weigh(top: str) -> tuple[int, float]:
    """Bytes on disk, and when something last changed."""
    total, latest, waiting = 0, 0.0, [top]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    total += info.st_blocks * 512
                    latest = max(latest, info.st_mtime)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    with contextlib.suppress(OSError):
        latest = max(latest, os.stat(top).st_mtime)
    return total, latest


def _size(value: object) -> str:
    assert isinstance(value, int)
    size = float(value)
    for unit in ("B", "K", "M", "G"):
        if size < 1024:
            return f"{size:.0f}{unit}"
        size /= 1024
    return f"{size:.1f}T"


def _age(value: object) -> str:
    assert isinstance(value, float)
    seconds = max(0.0, time.time() - value)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return "now"


# ---- removing, setting aside ----


def _remove(names: list[str], storage: str | None) -> int:
    if not names:
        raise PolicyError("which jail? corral jails lists them")
    jails = [_found(name, storage) for name in names]
    for jail in jails:
        _refuse_use(jail)
    from corral.files.removing import remove_tree

    for jail in jails:
        remove_tree(jail.path)
        print(f"removed {harmless(jail.name)}")
    return 0


def _down(name: str | None, storage: str | None, *, set_aside: bool) -> int:
    """Nothing stays mounted between runs: what is left is to say who still runs, and to clean up after a crash."""
    jails = [_found(name, storage)] if name is not None else list(named.every(storage))
    if set_aside and name is None:
        raise PolicyError("--set-aside needs -j JAIL; corral jails lists them")
    code = 0
    for jail in jails:
        pids = _users(jail)
        if pids:
            who = ", ".join(map(str, pids))
            code = complain(f"jail {jail.name} is in use by pid {who}; nothing was changed", 125)
            continue
        _clean_work(jail)
        if set_aside:
            print(f"what {harmless(jail.name)} changed is now in {harmless(_aside(jail))}")
    return code


def _clean_work(jail: NamedJail) -> None:
    """The kernel leaves a directory of mode 000 there; an overlay makes it anew."""
    from corral.files.removing import remove_tree

    for part in ("work/work", "review/work/work"):
        if os.path.isdir(jail.part(part)):
            os.chmod(jail.part(part), 0o700)
            remove_tree(jail.part(part))


def _aside(jail: NamedJail) -> str:
    moved = jail.part(f"aside-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}")
    os.mkdir(moved, 0o700)
    for part in ("changes", "work", "home", "sealed", "review", "masked"):
        if os.path.lexists(jail.part(part)):
            os.rename(jail.part(part), os.path.join(moved, part))
    return moved


# ---- what was copied and has changed since ----


def _stale(name: str | None, storage: str | None) -> int:
    """A file that the jail copied keeps hiding the original, though that has changed since."""
    jails = [_found(name, storage)] if name is not None else list(named.every(storage))
    from corral.changes import Layers, list_changes
    from corral.state import homes

    for jail in jails:
        for home in homes()[-1:]:
            layers = Layers(home, jail.part("changes"), jail.part("sealed"))
            for change in list_changes(layers):
                if change.conflict:
                    print(harmless(f"{jail.name}: {change.path}: {change.why}"))
    return 0
