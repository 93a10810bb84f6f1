"""The index of related_context: which directories it looks through, what it found there, and a copy of that on disk.

Every directory is looked through by the path layer: links are not followed, and what goes through a sensitive name, at
any depth, is not there.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from corral.digest import digest
from corral.environment.files import FileHalf
from corral.paths.beneath import Anchor
from corral.paths.sensitive import sensitive_rule
from corral.policy import Policy
from corral.record import Record
from corral.tools.context_notes import Note, read_note
from corral.tools.limits import CONTEXT_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from corral.files.scanning import Level, Scan

VERSION = 1
TYPES = ("kb", "skill", "agent", "command")
CLIENTS = ("claude", "codex", "pi")
HEAD_BYTES = 16 * 1024
PLUGINS = ".claude/plugins/installed_plugins.json"

# What is looked through below home: for every client, and for each one.
SHARED: tuple[tuple[str, str], ...] = (("kb", ".claude/kb"),)
OWN: dict[str, tuple[tuple[str, str], ...]] = {
    "claude": (("skill", ".claude/skills"), ("agent", ".claude/agents"), ("command", ".claude/commands")),
    "codex": (("skill", ".codex/skills"), ("skill", ".agents/skills"), ("command", ".codex/prompts")),
    "pi": (("skill", ".pi/agent/skills"), ("agent", ".pi/agent/agents"), ("command", ".pi/agent/prompts")),
}
IN_PLUGINS: tuple[tuple[str, str], ...] = (("skill", "skills"), ("agent", "agents"), ("command", "commands"))


class Source(Record):
    type: str
    path: str


class Index(Record):
    notes: list[Note]
    sources: list[Source]
    warnings: list[str]
    rebuilt: bool
    build_seconds: float


def sources_for(client: str, configured: Iterable[str], home: str) -> tuple[list[Source], list[str]]:
    """Those that are there, and a warning for each one that the user named and that cannot be used."""
    rows = list(SHARED)
    for name in CLIENTS if client == "all" else (client,):
        rows += OWN.get(name, ())
    found = [Source(kind, os.path.join(home, below)) for kind, below in rows]
    if client in ("claude", "all"):
        found += _plugin_sources(home)
    found = [source for source in found if os.path.isdir(source.path) and not _sensitive(source.path, home)]
    warnings = []
    for path in configured:
        rule = _sensitive(path, "")
        if rule:
            warnings.append(f"{path}: sensitive path ({rule}), left out")
        elif not os.path.exists(path):
            warnings.append(f"{path}: is not there")
        elif not os.path.isdir(path):
            warnings.append(f"{path}: is not a directory")
        else:
            found.append(Source("kb", path))
    if not found:
        warnings.append("there are no sources: no ~/.claude/kb and no related_context.paths in corral.toml")
    return list(dict.fromkeys(found)), warnings


def _sensitive(path: str, home: str) -> str | None:
    """The rule one of its names falls under, as it is written and as it is."""
    for spelled in (path, os.path.realpath(path)):
        for name in spelled.removeprefix(home).split("/"):
            rule = sensitive_rule(name)
            if rule is not None:
                return rule
    return None


def _plugin_sources(home: str) -> list[Source]:
    """Where installed plugins say they are. Only places below home count."""
    try:
        with open(os.path.join(home, PLUGINS), encoding="utf-8") as file:
            installed = json.load(file)
        entries = installed["plugins"].values()
        places = [
            one["installPath"] for entry in entries for one in (entry if isinstance(entry, list) else [entry])
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    top = os.path.realpath(home) + "/"
    below = [place for place in places if isinstance(place, str) and os.path.realpath(place).startswith(top)]
    return [Source(kind, os.path.join(place, name)) for place in below for kind, name in IN_PLUGINS]


# ---- looking through them ----


def build(
    client: str,
    configured: Iterable[str],
    home: str,
    cache: str | None,
    check: Callable[[], None],
    *,
    rebuild: bool,
) -> Index:
    """``cache``: the file that keeps the index; it is used while every file is the same as it was."""
    started = time.monotonic()
    sources, warnings = sources_for(client, configured, home)
    stamps: list[list[object]] = []
    for source in sources:
        for path, info in _files(source, check):
            stamps.append([source.type, path, info.st_mtime_ns, info.st_size, info.st_ino])
            if len(stamps) >= CONTEXT_FILES:
                break
    if len(stamps) >= CONTEXT_FILES:
        warnings.append(f"only the first {CONTEXT_FILES} files were looked at")
    signature = digest(json.dumps([VERSION, client, stamps]).encode("utf-8", "surrogatepass"))
    notes = None if rebuild or cache is None else _load(cache, signature)
    rebuilt = notes is None
    if notes is None:
        notes = [note for source in sources for note in _notes(source, check)][:CONTEXT_FILES]
        if cache is not None:
            _save(cache, signature, notes)
    return Index(notes, sources, warnings, rebuilt, time.monotonic() - started)


def _scanned(source: Source, check: Callable[[], None]) -> Iterator[tuple[Scan, Level, list[str]]]:
    """Every level, with the names in it that are notes."""
    try:
        anchor = Anchor(source.path)
    except OSError:
        return
    with anchor:
        scan = FileHalf([anchor], Policy.read_only()).scan()
        for level in scan.levels():
            check()
            names = [name for name in level.files if name.endswith(".md") and _is_note(source, level, name)]
            yield scan, level, names


def _is_note(source: Source, level: Level, name: str) -> bool:
    """Of a skill's directory only what describes it; what lies beside that is its own business."""
    return source.type != "skill" or name == "SKILL.md" or not level.names


def _files(source: Source, check: Callable[[], None]) -> Iterator[tuple[str, os.stat_result]]:
    for _, level, names in _scanned(source, check):
        for name in names:
            with suppress(OSError):
                info = os.stat(name, dir_fd=level.fd, follow_symlinks=False)
                yield "/".join((source.path, *level.names, name)), info


def _notes(source: Source, check: Callable[[], None]) -> Iterator[Note]:
    for scan, level, names in _scanned(source, check):
        for name in names:
            content = scan.content(level, name, HEAD_BYTES)
            if content is not None and b"\0" not in content:
                path = "/".join((source.path, *level.names, name))
                text = content.decode("utf-8", "replace")
                yield read_note(source.type, (*level.names, name), path, text)


# ---- the copy on disk ----


def _load(cache: str, signature: str) -> list[Note] | None:
    try:
        fd = os.open(cache, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, encoding="utf-8", errors="surrogatepass") as file:
            kept = json.load(file)
        if kept["signature"] != signature:
            return None
        return [Note(*fields) for fields in kept["notes"]]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _save(cache: str, signature: str, notes: list[Note]) -> None:
    """A copy that cannot be kept is made again the next time."""
    with suppress(OSError):
        new = f"{cache}.{os.urandom(4).hex()}"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump({"signature": signature, "notes": [note._values() for note in notes]}, file)
        os.replace(new, cache)
