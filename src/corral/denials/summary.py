"""A summary of a jail: what it lets be written, shows and hides. Enough to say why something is refused, outside from
the enclosure, and inside from a read-only file that ``$CORRAL`` names."""

from __future__ import annotations

import os
from _json import encode_basestring_ascii

from corral.digest import digest
from corral.errors import PolicyError
from corral.jail.enclosure import BY_NAME, REPLACED
from corral.jail.fence import DEVICES
from corral.jail.root import SYSTEM
from corral.jail.scene import SUMMARY_INSIDE, TEMPORARY, layered_homes
from corral.jail.site import is_below
from corral.jail.survey import PROJECT_CONFIG
from corral.paths.places import pin
from corral.paths.sensitive import KEY_MATERIAL, ROOT_KEY_MATERIAL
from corral.policy import Grant
from corral.record import Record
from corral.state import config_directory, made_state_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.jail.enclosure import Enclosure

VARIABLE = "CORRAL"
SHARED_MEMORY = "/dev/shm"
PATH_INSIDE = SUMMARY_INSIDE
VERSION = 1
KEPT = 256

# Files and directories below /dev that a command may open, whatever else is closed.
USABLE_DEVICES = (*DEVICES, "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd", "/dev/pts")


class Summary(Record):
    """All paths canonical. ``private``: directories of the jail's own, writable; ``emptied``: its own, not writable;
    ``shown``: what of the host is put back into those. ``copied``: writable, and what is written there goes to a copy.
    ``hidden``: (path, rule); ``anew``: those of them that the command may make again in a copy, for itself. ``own``:
    what no grant can hold."""

    mode: str
    backend: str
    network: str
    roots: tuple[str, ...]
    writable: tuple[str, ...] = ()
    globs: tuple[str, ...] | None = None
    read_only: tuple[tuple[str, str], ...] = ()
    private: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    anew: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()

    @property
    def is_jailed(self) -> bool:
        return self.backend != "none"

    @property
    def has_own_view(self) -> bool:
        """Whether what is read-only is a mount, and network off is a network of its own."""
        return self.backend in ("namespaces", "systemd-run")


def summary_of(enclosure: Enclosure) -> Summary:
    policy, backend = enclosure.policy, enclosure.choice.backend
    own = tuple(os.path.realpath(path) for path in (config_directory(), state_directory()))
    summary = Summary(
        mode=policy.mode,
        backend=backend,
        network=str(policy.network),
        roots=tuple(place.path for place in enclosure.roots),
        globs=policy.writable,
        own=own,
        grants=policy.grants,
    )
    if backend == "none":
        return summary
    writable = [place.path for place in enclosure.writable]
    summary = summary.replace(
        writable=tuple(writable), read_only=_read_only(enclosure), hidden=_hidden(enclosure)
    )
    if backend == "landlock":
        temp = [enclosure._temp.path] if enclosure._temp is not None else []
        shared = [SHARED_MEMORY] if policy.shared_memory else []
        return summary.replace(writable=(*writable, *temp, *shared))
    is_root = enclosure.host.is_root
    resolver = enclosure.resolver if policy.network == "open" else None
    if backend == "systemd-run":
        homes = {path for path, how in enclosure.hidden_paths().items() if how == REPLACED}
        return summary.replace(
            private=(*TEMPORARY, SHARED_MEMORY, *sorted(homes)),
            emptied=tuple(p for p in ("/run", "/var/run") if _is_real(p)),
            shown=(resolver.path,) if resolver is not None else (),
            hidden=tuple((path, rule) for path, rule in summary.hidden if path not in homes),
        )
    homes = layered_homes(enclosure._home_places, enclosure.writable, enclosure.host)
    home = enclosure.home
    kept = [home.place.path] if home is not None and not home.copied else []
    copies = [copy.place.path for copy in (home, enclosure.review) if copy is not None and copy.copied]
    summary = summary.replace(copied=tuple(copies), writable=(*summary.writable, *copies))
    if home is not None and home.copied:
        by_name = (path for path, how in enclosure.hidden_paths().items() if how == BY_NAME)
        summary = summary.replace(anew=tuple(path for path in by_name if is_below(path, home.place.path)))
    elif home is not None:
        granted = [*writable, *(path for path, _ in summary.read_only)]
        gone = {path for path, _ in summary.hidden if _lies_in(path, home.place.path, granted)}
        summary = summary.replace(hidden=tuple(pair for pair in summary.hidden if pair[0] not in gone))
    private = (*TEMPORARY, *([SHARED_MEMORY] if is_root or os.path.isdir(SHARED_MEMORY) else []), *kept)
    if policy.mode == "strict":
        granted = [place.path for place in (*enclosure.writable, *enclosure.read_only)]
        return summary.replace(private=private, emptied=("/",), shown=(*SYSTEM, *granted))
    return summary.replace(
        private=private,
        emptied=(*(p for p in ("/run", "/var/run") if _is_real(p)), *(["/dev"] if is_root else [])),
        shown=(*sorted(homes - {*kept, *copies}), *([resolver.path] if resolver is not None else [])),
    )


def _lies_in(path: str, top: str, granted: list[str]) -> bool:
    """Whether it lies in a directory of the jail's own and in nothing that was put into that."""
    return is_below(path, top) and not any(is_below(path, place) for place in granted)


def _is_real(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _read_only(enclosure: Enclosure) -> tuple[tuple[str, str], ...]:
    """Places that are mounted read-only, and the rule that says so; empty where the mode itself does."""
    root = enclosure.root.path
    granted = {
        os.path.realpath(os.path.join(root, os.path.expanduser(grant.path)))
        for grant in enclosure.policy.grants
        if grant.access == "ro"
    }
    roots = {place.path for place in enclosure.roots}

    def rule(path: str) -> str:
        if path in granted:
            return f"ro {path}"
        if path in roots:
            return ""
        if os.path.basename(path) == PROJECT_CONFIG and os.path.dirname(path) in roots:
            return "project-config"
        return f"protected {path}"

    if enclosure.choice.backend == "landlock":  # it has no read-only places; what is not writable is not
        return (*((path, f"ro {path}") for path in sorted(granted)), (SHARED_MEMORY, "shared-memory"))
    return tuple((place.path, rule(place.path)) for place in enclosure.read_only)


def _hidden(enclosure: Enclosure) -> tuple[tuple[str, str], ...]:
    is_root = enclosure.host.is_root
    if enclosure.choice.backend == "landlock":
        if not is_root:
            return ()
        closed = [(path, f"root-keys {path}") for path in ROOT_KEY_MATERIAL if os.path.lexists(path)]
        return (*closed, ("/dev", "devices"), (SHARED_MEMORY, "shared-memory"))
    rules = _mask_rules(enclosure)
    return tuple((path, rules.get(path, f"protected {path}")) for path in enclosure.hidden_paths())


def _mask_rules(enclosure: Enclosure) -> dict[str, str]:
    """Which rule hides a path; links are followed as the masks follow them."""
    wanted = [(os.path.join(home, name), f"keys {name}") for home in enclosure.homes for name in KEY_MATERIAL]
    wanted += [(path, f"root-keys {path}") for path in ROOT_KEY_MATERIAL]
    for grant in enclosure.policy.grants:
        if grant.access == "hide":
            path = os.path.join(enclosure.root.path, os.path.expanduser(grant.path))
            wanted.append((path, f"hide {grant.path}"))
    wanted += [(path, "own") for path in (config_directory(), state_directory())]
    rules: dict[str, str] = {}
    parents: dict[str, str] = {}  # many names, few directories: each is resolved once
    for path, rule in wanted:
        parent, _, name = path.rpartition("/")
        if parent not in parents:
            parents[parent] = os.path.realpath(parent or "/").rstrip("/")
        there = f"{parents[parent]}/{name}"
        rules[path] = rules[there] = rule
        if os.path.islink(there):
            rules[os.path.realpath(there)] = rule
    return rules


# ---- as a file ----


def publish(enclosure: Enclosure, beside: str | None = None) -> str | None:
    """Have the jail show its summary; returns the path that ``$CORRAL`` is to name inside. Kept in a directory of the
    caller's (``beside``) or, named by its content, in the state directory; None where there is neither (a jail in a
    jail)."""
    if enclosure.choice.backend == "none":
        return None
    content = summary_json(enclosure).encode()
    path = os.path.join(beside, "summary.json") if beside else _path_in_state(content)
    if path is None:
        return None
    if beside or not os.path.exists(path):
        other = f"{path}.{os.getpid()}"
        with open(other, "wb") as file:
            file.write(content)
        os.chmod(other, 0o444)
        if beside:
            os.replace(other, path)
        else:
            _put_once(other, path)
    enclosure.use_summary(pin(path))
    return PATH_INSIDE if enclosure.choice.backend in ("namespaces", "systemd-run") else path


def _put_once(made: str, path: str) -> None:
    """Another run that starts at this moment has the same to say, and may stand on its file already: that one stays."""
    try:
        os.link(made, path)
    except FileExistsError:
        return
    finally:
        os.unlink(made)


def _path_in_state(content: bytes) -> str | None:
    state = made_state_directory()
    if state is None:
        return None
    directory = os.path.join(state, "summaries")
    os.makedirs(directory, 0o700, exist_ok=True)
    _forget_oldest(directory)
    return os.path.join(directory, f"{digest(content)[:32]}.json")


def _forget_oldest(directory: str) -> None:
    """A run that stands on one of them keeps it: it is held by descriptor, and shown by its mount."""
    paths = sorted((entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(directory))
    for _, path in paths[: max(0, len(paths) - KEPT)]:
        os.unlink(path)


def summary_json(enclosure: Enclosure) -> str:
    """What is put at PATH_INSIDE, read-only, for `corral why` in the jail."""
    summary = summary_of(enclosure)
    fields: dict[str, Any] = {name: getattr(summary, name) for name in Summary._fields}
    fields["grants"] = [{name: getattr(grant, name) for name in Grant._fields} for grant in summary.grants]
    for name in ("read_only", "hidden"):
        fields[name] = dict(fields[name])
    lines = [f"{_written(name)}: {_written(value)}" for name, value in {"version": VERSION, **fields}.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _written(value: Any) -> str:
    """JSON without :mod:`json`, which brings `re` along: together they cost more than the rest of this module."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(key)}: {_written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    return (
        encode_basestring_ascii(value) if isinstance(value, str) else "null" if value is None else str(value)
    )


def read_summary(path: str) -> Summary:
    import json

    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return _from_fields(json.load(file))
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        why = (
            error.strerror if isinstance(error, OSError) and error.strerror else "it is no summary of a jail"
        )
        raise PolicyError(f"${VARIABLE} names {path}: {why}", path=path) from None


def _from_fields(fields: dict[str, Any]) -> Summary:
    if fields.pop("version") != VERSION:
        raise ValueError
    for name in ("read_only", "hidden"):
        fields[name] = tuple(fields[name].items())
    for name in ("roots", "writable", "private", "emptied", "copied", "shown", "anew", "own"):
        fields[name] = tuple(fields[name])
    fields["globs"] = None if fields["globs"] is None else tuple(fields["globs"])
    fields["grants"] = tuple(Grant(**grant) for grant in fields["grants"])
    return Summary(**fields)
