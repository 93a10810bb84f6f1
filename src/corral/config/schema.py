"""The keys of corral.toml, in one table, and one table of a file read by them."""

from __future__ import annotations

from corral import claims
from corral.approval import ANSWERS, LEVELS
from corral.config import values
from corral.config.expansion import EXPANDED, expanded, refuse_variables
from corral.config.rows import allowed_beginning, risk_rows
from corral.config.shadows import environment_rule
from corral.config.tables import agent_tables
from corral.config.values import Wrong
from corral.policy import BACKENDS, LIMITS, MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from corral.config.source import Source, Where
    from corral.config.values import Read

    Kind = Literal["user", "jail", "project"]

# Who may have a key: the user only, or a project's file too, which can then only tighten.
USER, TIGHTEN = "user", "tighten"

_LIMIT_READERS: dict[str, Read] = {"seconds": values.seconds, "bytes": values.size, "count": values.count}

# key → the Policy field it sets, how its value is read, who may have it.
KEYS: dict[str, tuple[str, Read, str]] = {
    "mode": ("mode", values.one_of("mode", MODES), TIGHTEN),
    "network": ("network", values.one_of("network", ("off", "open")), TIGHTEN),
    "writable": ("writable", values.globs, TIGHTEN),
    "wide-globs": ("wide_globs", values.boolean, TIGHTEN),
    "roots": ("roots", values.list_of(values.absolute_path), USER),
    "rw": ("grants", values.grants("rw", "refuse"), USER),
    "ro": ("grants", values.grants("ro", "refuse"), USER),
    "hide": ("grants", values.grants("hide", "skip"), TIGHTEN),
    "mask": ("grants", values.masks, USER),
    "grant": ("grants", values.grant_tables, USER),
    "unhide": ("unhide", values.list_of(values.path), USER),
    "unmask": ("unhide", values.list_of(values.path), USER),
    "jail": ("jail", values.jail_name, USER),
    "storage": ("storage", values.storage, USER),
    "review": ("review", values.boolean, TIGHTEN),
    "sensitive": ("sensitive", values.list_of(values.sensitive_name), TIGHTEN),
    "demand": ("demands", values.list_of(values.one_of("claim", claims.CLAIMS)), TIGHTEN),
    "require": ("require", values.boolean, USER),
    "backend": ("backend", values.one_of("backend", BACKENDS), USER),
    "unix-sockets": ("unix_sockets", values.boolean, USER),
    "shared-memory": ("shared_memory", values.boolean, TIGHTEN),
    "trust-prefix": ("trust_prefix", values.boolean, USER),
    "output-limit": ("output_limit", values.whole_size, TIGHTEN),
    **{f"limits.{name}": ("limits", _LIMIT_READERS[unit], TIGHTEN) for name, (_, _, unit) in LIMITS.items()},
    "limits.cpu": ("limits", values.whole_seconds, TIGHTEN),
    **{
        f"approval.{name}": ("approval", values.one_of("answer", ANSWERS), TIGHTEN)
        for name in (*LEVELS, "flag-forms")
    },
    "approval.allow-force": ("approval", values.boolean, TIGHTEN),
    "approval.allow": ("approval", values.list_of(allowed_beginning), USER),
    "risk": ("approval", risk_rows, TIGHTEN),
    "environment.rules": ("environment", values.list_of(environment_rule), USER),
    "related_context.paths": ("related_context", values.list_of(values.absolute_path), USER),
    # Names from before there were others. A missing directory of this list was always skipped.
    "sandbox.mode": ("mode", values.one_of("mode", MODES), TIGHTEN),
    "sandbox.require": ("require", values.boolean, USER),
    "sandbox.extra_writable": ("grants", values.grants("rw", "skip"), USER),
}
ALIASES = {
    "sandbox.mode": "mode",
    "sandbox.require": "require",
    "sandbox.extra_writable": "sandbox.extra_writable",
    "unmask": "unhide",
}

# key → how its value is read. What is no part of a policy: a field of RunSettings, or which files there are.
SETTINGS: dict[str, Read] = {
    "include": values.list_of(values.path),
    "include-optional": values.list_of(values.path),
    "scripts": values.list_of(values.path),
    "initjail": values.text,
    "command": values.text,
    "desktop": values.boolean,
    "agent": values.text,
    "agents": agent_tables,
}
TABLES = tuple(dict.fromkeys(key.split(".")[0] for key in KEYS if "." in key))
PROFILES = "profile"

# What no project's file may ever say, whether or not a user's may, in any spelling.
NEVER_IN_PROJECTS = (
    *("script", "scripts", "command", "commands", "initjail", "storage", "state", "profile", "profiles"),
    *("env", "environment", "variables", "setenv", "unsetenv", "sandbox.extra_writable"),
    *SETTINGS,
    *(key for key, (_, _, who) in KEYS.items() if who == USER),
)

# Words that people try first. difflib would not find these.
_MEANT = {
    "timeout": "limits.wall",
    "time": "limits.wall",
    "env": "environment.rules",
    "net": "network",
    "deny": "hide",
    "write": "rw",
    "read": "ro",
    "root": "roots",
    "extra_writable": "sandbox.extra_writable",
    "grants": "grant",
    "profiles": "profile",
    "limit": "limits",
    "ram": "limits.memory",
    "pids": "limits.processes",
    "nofile": "limits.open-files",
    "force": "approval.allow-force",
    "allowlist": "approval.allow",
    "risks": "risk",
    "script": "scripts",
    "includes": "include",
}


class Layer:
    """One table of a file, read: values by key, and where each was written; settings apart from what is policy."""

    def __init__(self, source: Source, top: Where, kind: Kind) -> None:
        self.source = source
        self.top = top
        self.kind = kind
        self.values: dict[str, Any] = {}
        self.places: dict[str, Where] = {}
        self.settings: dict[str, Any] = {}
        self.setting_places: dict[str, Where] = {}

    def line(self, key: str) -> int:
        return self.source.line(self.places[key])

    def add(self, key: str, value: object, where: Where) -> None:
        if key in SETTINGS:
            self.setting_places[key] = where
            self.settings[key] = self._read(SETTINGS[key], key, value, where)
            return
        name = ALIASES.get(key, key)
        if name in self.values:
            raise self.source.refuse(where, f"{key} is already set as {name} (line {self.line(name)})")
        self.places[name] = where
        self.values[name] = self._read(KEYS[key][1], key, value, where)

    def _read(self, read: Read, key: str, value: object, where: Where) -> Any:
        try:
            if key in EXPANDED:
                value = refuse_variables(key, value) if self.kind == "project" else expanded(key, value)
            return read(value)
        except Wrong as wrong:
            why = wrong.why if wrong.words else f"{key} {wrong.why}"
            near = (wrong.word, wrong.words) if wrong.words else None
            raise self.source.refuse((*where, *wrong.at), why, near) from None


def read_layer(source: Source, table: dict[str, Any], top: Where = (), kind: Kind = "user") -> Layer:
    """Every key of one table, checked. Profiles inside it are not looked at here."""
    layer = Layer(source, top, kind)
    for key, value in table.items():
        where = (*top, key)
        if key == PROFILES and not top and kind != "project":
            continue
        if kind == "project" and key in NEVER_IN_PROJECTS:
            raise _only_the_user(source, where, key)
        if key not in TABLES:
            _read_key(layer, key, value, where, kind)
        elif not isinstance(value, dict):
            raise source.refuse(where, f"{key} is a table (did you mean [{'.'.join(map(str, where))}]?)")
        else:
            for name, part in value.items():
                _read_key(layer, f"{key}.{name}", part, (*where, name), kind)
    return layer


def _read_key(layer: Layer, key: str, value: object, where: Where, kind: Kind) -> None:
    if kind == "jail" and key == "jail":
        raise layer.source.refuse(
            where, "jail cannot be set in a jail's own file, which is read for that jail"
        )
    if layer.top and key in ("include", "include-optional"):
        raise layer.source.refuse(where, f"{key} stands at the top of a file, not in a profile")
    if key not in KEYS and key not in SETTINGS:
        raise _unknown(layer.source, key, where, kind)
    if kind == "project" and key in NEVER_IN_PROJECTS:
        raise _only_the_user(layer.source, where, key)
    layer.add(key, value, where)


def _only_the_user(source: Source, where: Where, key: str) -> Exception:
    return source.refuse(where, f"{key} cannot be set by a project's file; only the user's config may")


def _unknown(source: Source, key: str, where: Where, kind: Kind) -> Exception:
    table, _, name = key.rpartition(".")
    known = [k for k in (*KEYS, *SETTINGS) if kind != "project" or k not in NEVER_IN_PROJECTS]
    here = [k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == table]
    if not table:
        here += (
            [*TABLES, PROFILES] if kind != "project" else [t for t in TABLES if t not in NEVER_IN_PROJECTS]
        )
    what = f"unknown key {values.shown(name)}" + (f" in [{table}]" if table else "")
    meant = _meant(name, known)
    if meant:
        return source.refuse(where, f"{what} (did you mean {meant}?)")
    return source.refuse(where, what, (name, here))


def _meant(name: str, known: list[str]) -> str | None:
    """The key this stands for in another table, or by another word."""
    spelled = name.lower().replace("_", "-")
    for candidate in (_MEANT.get(name.lower()), spelled):
        for key in (*known, *TABLES):
            if candidate and candidate in (key, key.rpartition(".")[2]):
                return key
    return None
