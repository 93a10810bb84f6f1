"""Layers into the fields of one Policy: later ones decide, lists grow, and what could never matter is refused."""

from __future__ import annotations

import os

from corral.approval import Approval
from corral.config.rows import subject
from corral.config.schema import KEYS
from corral.config.shadows import idle_rule, written
from corral.config.values import shown
from corral.policy import Grant, Limits, Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.config.schema import Layer
    from corral.config.source import Where
    from corral.variables import EnvRule


def merge(earlier: dict[str, Any], layer: Layer) -> dict[str, Any]:
    """The fields of Policy that are set once this layer lies over the earlier ones."""
    fields = dict(earlier)
    for key, value in layer.values.items():
        field = KEYS[key][0]
        if field == "limits":
            fields["limits"] = fields.get("limits", Limits()).replace(**{limit_field(key): value})
        elif field == "approval":
            fields["approval"] = with_approval(fields.get("approval", Approval()), key, value)
        elif field in ("roots", "demands", "sensitive", "related_context"):
            fields[field] = tuple(dict.fromkeys((*fields.get(field, ()), *value)))
        elif field not in ("grants", "unhide", "environment"):
            fields[field] = value
    _settle_writable(fields, layer)
    _add_grants(fields, layer)
    _add_rules(fields, layer)
    return fields


def limit_field(key: str) -> str:
    """``limits.file-size`` → file_size"""
    return key.partition(".")[2].replace("-", "_")


def approval_field(key: str) -> str:
    """``approval.allow-force`` → allow_force, ``risk`` → rows"""
    return "rows" if key == "risk" else key.partition(".")[2].replace("-", "_")


def with_approval(earlier: Approval, key: str, value: Any) -> Approval:
    """Answers are replaced, lists grow, and a row about what an earlier row is about takes its place."""
    if key == "approval.allow":
        value = tuple(dict.fromkeys((*earlier.allow, *value)))
    elif key == "risk":
        value = tuple({subject(row): row for row in (*earlier.rows, *value)}.values())
    return earlier.replace(**{approval_field(key): value})


def _settle_writable(fields: dict[str, Any], layer: Layer) -> None:
    """A profile that is read-only leaves behind what an earlier layer makes writable."""
    if fields.get("mode") != "read-only" or fields.get("writable") is None:
        return
    if "writable" in layer.values:
        where = layer.places["writable"]
        raise layer.source.refuse(
            where, "writable can never match in mode read-only (did you mean workspace-write?)"
        )
    fields["writable"] = None


# ---- grants, hidden and shown ----


def _add_grants(fields: dict[str, Any], layer: Layer) -> None:
    """Each path once a layer. A later layer's word for a path replaces the earlier one's."""
    own = grants_of(layer)
    before: dict[str, Grant] = {_canonical(grant.path): grant for grant in fields.get("grants", ())}
    shown_names: list[str] = list(fields.get("unhide", ()))
    for path, (grant, where) in own.items():
        if grant.access == "none" and path not in before:
            why = f"nothing grants {shown(grant.path)} before, so there is nothing to take back"
            raise layer.source.refuse(where, why, (grant.path, [g.path for g in before.values()]))
        before.pop(path, None)
        if grant.access != "none":
            before[path] = grant
        if grant.access == "hide" and key_name(grant.path) in shown_names:
            shown_names.remove(str(key_name(grant.path)))
    for index, name in enumerate(layer.values.get("unhide", ())):
        where = (*layer.places["unhide"], index)
        path = _canonical(name)
        if path in own and own[path][0].access == "hide":
            line = layer.source.line(own[path][1])
            raise layer.source.refuse(
                where, f"unhide of {shown(name)} can never matter: line {line} hides it"
            )
        if path not in before:  # a name below home, as `mask` has it
            path = _canonical(f"~/{name}")
        hidden = before.get(path)
        known = key_name(name)
        if hidden is not None and hidden.access == "hide":
            del before[path]
        elif known is None:
            raise _never_hidden(layer, where, name)
        if known is not None and known not in shown_names:
            shown_names.append(known)
    if before or "grants" in fields:
        fields["grants"] = tuple(before.values())
    if shown_names or "unhide" in fields:
        fields["unhide"] = tuple(shown_names)


def grants_of(layer: Layer) -> dict[str, tuple[Grant, Where]]:
    """What this layer says of each path, in the order in which it is written."""
    found: dict[str, tuple[Grant, Where]] = {}
    for key, value in layer.values.items():
        if KEYS[key][0] != "grants":
            continue
        for index, grant in enumerate(value):
            where = (*layer.places[key], index)
            path = _canonical(grant.path)
            if path in found:
                line = layer.source.line(found[path][1])
                why = f"{shown(grant.path)} already has a rule on line {line}; one path, one rule"
                raise layer.source.refuse(where, why)
            found[path] = (grant, where)
    return found


def _canonical(path: str) -> str:
    return os.path.normpath(os.path.expanduser(path))


def key_name(path: str) -> str | None:
    """The hidden name that is meant by ``.ssh``, ``~/.ssh`` or the absolute path; None if nothing of ours hides it."""
    from corral.paths.sensitive import KEY_MATERIAL, ROOT_KEY_MATERIAL

    if path.startswith("./"):
        return None  # below the workspace
    name = os.path.normpath(path)
    home = os.path.expanduser("~")
    for top in ("~/", f"{home}/"):
        name = name.removeprefix(top)
    return name if name in KEY_MATERIAL or name in ROOT_KEY_MATERIAL else None


def _never_hidden(layer: Layer, where: Where, name: str) -> Exception:
    from corral.paths.sensitive import KEY_MATERIAL, ROOT_KEY_MATERIAL

    bare = os.path.normpath(name).removeprefix("~/")
    inside = next((key for key in (*KEY_MATERIAL, *ROOT_KEY_MATERIAL) if bare.startswith(f"{key}/")), None)
    if inside is not None:
        why = f"{shown(name)} is hidden together with all of {inside} (did you mean {inside}?)"
        return layer.source.refuse(where, why)
    why = f"{shown(name)} is never hidden, so it cannot be shown"
    return layer.source.refuse(where, why, (bare, (*KEY_MATERIAL, *ROOT_KEY_MATERIAL)))


# ---- the environment ----


def _add_rules(fields: dict[str, Any], layer: Layer) -> None:
    own: tuple[EnvRule, ...] = layer.values.get("environment.rules", ())
    if not own:
        return
    earlier: tuple[EnvRule, ...] = fields.get("environment", Policy.environment)
    idle = idle_rule(earlier, own)
    if idle is not None:
        index, later, why = idle
        places = layer.places["environment.rules"]
        if later is not None:
            why += f" (line {layer.source.line((*places, later))})"
        raise layer.source.refuse((*places, index), f'"{written(own[index])}" can never matter: {why}')
    fields["environment"] = (*earlier, *own)
