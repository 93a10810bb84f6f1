"""Remedies: for each rule the grant that would allow what it refused, in three forms, or why there is none."""

from __future__ import annotations

import os

from corral.denials.denial import Remedy
from corral.denials.rights import may, nearest
from corral.jail.site import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.denials.summary import Summary

# Never granted as a whole, and never anything below.
NEVER_WHOLE = ("/", "/run", "/var/run")
NEVER = ("/proc", "/sys", "/dev")

NOT_YOURS = "your own permissions do not allow it either"
COPY = "copy it instead"
IN_ITS_DIRECTORY = "to remove or replace it, its directory must be granted"


def remedy(
    summary: Summary, rule: str, path: str, operation: str, *, outside: bool = True
) -> tuple[Remedy | None, str]:
    """The grant, and a note: why there is none, or what else to know."""
    word, _, named = rule.partition(" ")
    if word == "network":
        return Remedy("--network open", 'network = "open"', 'policy.replace(network="open")'), ""
    if word == "mode":
        return Remedy(
            "-m workspace-write", 'mode = "workspace-write"', 'policy.replace(mode="workspace-write")'
        ), ""
    if word == "shared-memory":
        return Remedy("", "shared-memory = true", "policy.replace(shared_memory=True)"), ""
    if word == "crossing":
        return _crossing(summary, path, outside=outside)
    if word in ("outside", "writable"):
        return _writable(summary, path, operation, outside=outside)
    if word == "private" and operation != "read":
        return _writable(summary, path, operation, outside=outside)
    if word == "private":
        return _readable(summary, path, outside=outside)
    if word == "ro":
        return _not_read_only(summary, named, path, operation, outside=outside)
    if word in ("keys", "root-keys"):
        return _unhidden(summary, word, named, path, operation, outside=outside)
    if word == "hide":
        return _taken_back(named)
    if word == "copied":
        return None, "mv does it (for git: mv, then git add -A)"
    return None, ""


# ---- one function a kind of grant ----


def _writable(summary: Summary, path: str, operation: str, *, outside: bool) -> tuple[Remedy | None, str]:
    place = nearest(path if operation == "write" else os.path.dirname(path))
    if place in NEVER_WHOLE or any(is_below(place, top) for top in NEVER):
        return None, f"{place} cannot be granted"
    own = next((own for own in summary.own if is_below(own, place)), None)
    if own is not None:
        return None, f"{place} cannot be granted: Corral's own {own} lies in it; grant a directory below it"
    if outside and not may(place, os.W_OK | (os.X_OK if os.path.isdir(place) else 0)):
        return None, NOT_YOURS
    note = "the private temp directory is $TMPDIR" if place == "/tmp" else ""
    return _rw(place), note


def _readable(summary: Summary, path: str, *, outside: bool) -> tuple[Remedy | None, str]:
    if path in (*summary.private, *summary.emptied):
        return None, f"grant what you need below {path}"
    if any(is_below(path, top) for top in NEVER):
        return None, f"{path} cannot be granted"
    if outside and not os.path.lexists(path):
        return None, "it does not exist outside either"
    return Remedy(f"--ro {_word(path)}", _config("ro", path), f"policy.allow(Grant.ro({path!r}))"), ""


def _not_read_only(
    summary: Summary, named: str, path: str, operation: str, *, outside: bool
) -> tuple[Remedy | None, str]:
    """A grant that narrows a writable place is taken back; one outside is replaced by a wider one."""
    if any(is_below(named, top) for top in summary.writable):
        config = f"ro = […]  # without {_toml(named)}"
        return Remedy(f"--no-grant {_word(named)}", config, f'policy.allow(Grant({named!r}, "none"))'), ""
    return _writable(summary, path, operation, outside=outside)


def _unhidden(
    summary: Summary, word: str, named: str, path: str, operation: str, *, outside: bool
) -> tuple[Remedy | None, str]:
    if word == "root-keys" and summary.backend == "landlock":
        return None, ""
    if operation == "read":
        api = f"policy.replace(unhide=(*policy.unhide, {named!r}))"
        return Remedy(f"--unhide {_word(named)}", f"unhide = [{_toml(named)}]", api), ""
    hidden = [top for top, rule in summary.hidden if rule == f"{word} {named}" and is_below(path, top)]
    if not hidden or (outside and not os.path.lexists(hidden[0])):
        return None, ""
    return _rw(hidden[0]), ""  # granted by name, it is not hidden


def _taken_back(named: str) -> tuple[Remedy | None, str]:
    api = (
        f'policy.replace(grants=tuple(g for g in policy.grants if (g.path, g.access) != ({named!r}, "hide")))'
    )
    return Remedy(
        "", f"hide = […]  # without {_toml(named)}", api
    ), "on the command line: leave out its --hide"


def _crossing(summary: Summary, path: str, *, outside: bool) -> tuple[Remedy | None, str]:
    grant, _ = _writable(summary, path, "rename", outside=outside)
    needs = f" (out there it needs {grant.flag} as well)" if grant is not None else ""
    return None, COPY + needs


# ---- forms ----


def _rw(path: str) -> Remedy:
    return Remedy(f"--rw {_word(path)}", _config("rw", path), f"policy.allow(Grant.rw({path!r}))")


def _word(path: str) -> str:
    """As a shell takes it; what cannot be typed is written as bytes."""
    if not path.isprintable():
        escaped = "".join(
            chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in os.fsencode(path)
        )
        return f"$'{escaped}'"
    import shlex

    return shlex.quote(path)


def _toml(path: str) -> str:
    import json

    return json.dumps(path, ensure_ascii=False).replace("\x7f", "\\u007f")


def _config(key: str, path: str) -> str:
    """Empty for a path that TOML cannot hold: it is text."""
    return f"{key} = [{_toml(path)}]" if not any(0xDC80 <= ord(c) <= 0xDCFF for c in path) else ""
