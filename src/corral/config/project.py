"""A project's file on top of the user's policy. It comes with code that nobody has read: it may only tighten."""

from __future__ import annotations

from corral.config.merging import approval_field, grants_of, limit_field
from corral.config.schema import KEYS
from corral.config.values import UNLIMITED, shown
from corral.errors import PolicyError
from corral.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.approval import Approval
    from corral.config.schema import Layer


def tighten(user: Policy, fields: dict[str, Any], layer: Layer) -> tuple[Policy, tuple[str, ...]]:
    """The user's policy (made from ``fields``) as this file tightens it, and the keys in the file that do something.
    What would loosen is refused, never left out in silence: somebody wrote it and believes that it holds."""
    said = dict(layer.values)
    grants_of(layer)
    if user.mode == "read-only":  # nothing is left that fewer globs could narrow
        said.pop("writable", None)
    elif "writable" in said:
        _refuse_wider_globs(user, layer)
    _refuse_lighter_rows(layer)
    asked = _asked(user, fields, said, layer)
    _refuse_looser_mode(user, asked, layer)
    tighter = user.replace(writable=None) & asked.replace(writable=None)
    for key in said:
        field = KEYS[key][0]
        if field == "limits":
            name = limit_field(key)
            _refuse_looser(layer, key, *(getattr(p.limits, name) for p in (user, asked, tighter)))
        elif field == "approval" and key != "risk":
            name = approval_field(key)
            stricter = user.approval & user.approval.replace(**{name: said[key]})
            _refuse_looser(layer, key, getattr(user.approval, name), said[key], getattr(stricter, name))
        elif field not in ("mode", "writable", "grants", "demands", "sensitive", "approval"):
            _refuse_looser(layer, key, *(getattr(p, field) for p in (user, asked, tighter)))
    return asked, tuple(said) if asked != user else ()


def _asked(user: Policy, fields: dict[str, Any], said: dict[str, Any], layer: Layer) -> Policy:
    wanted = {**fields, **{KEYS[key][0]: value for key, value in said.items()}}
    limits = {limit_field(key): value for key, value in said.items() if KEYS[key][0] == "limits"}
    wanted["limits"] = user.limits.replace(**limits)
    wanted["grants"] = tuple(dict.fromkeys((*user.grants, *said.get("hide", ()))))
    wanted["demands"] = tuple(dict.fromkeys((*user.demands, *said.get("demand", ()))))
    wanted["sensitive"] = tuple(dict.fromkeys((*user.sensitive, *said.get("sensitive", ()))))
    wanted["approval"] = user.approval & _asked_approval(user.approval, said)
    if wanted.get("mode") == "read-only":
        if "mode" in said and "writable" in said:
            why = "writable can never match in mode read-only (did you mean workspace-write?)"
            raise layer.source.refuse(layer.places["writable"], why)
        wanted["writable"] = None
    return Policy(**wanted)


def _asked_approval(user: Approval, said: dict[str, Any]) -> Approval:
    answers = {approval_field(key): value for key, value in said.items() if key.startswith("approval.")}
    return user.replace(**answers, rows=(*user.rows, *said.get("risk", ())))


def _refuse_lighter_rows(layer: Layer) -> None:
    for index, row in enumerate(layer.values.get("risk", ())):
        if row.exact:
            why = (
                "exact can lower a level, which only the user's config may; a project's file may only tighten"
            )
            raise layer.source.refuse((*layer.places["risk"], index, "exact"), why)


def _refuse_looser_mode(user: Policy, asked: Policy, layer: Layer) -> None:
    """Apart from the rest: of two modes it may be that neither is the tighter."""
    if "mode" not in layer.values:
        return
    try:
        tighter = user.replace(writable=None) & asked.replace(writable=None)
    except PolicyError:
        why = f"mode {asked.mode} is not a tighter form of the user's {user.mode}; a project's file may only tighten"
        raise layer.source.refuse(layer.places["mode"], why) from None
    _refuse_looser(layer, "mode", user.mode, asked.mode, tighter.mode)


def _refuse_looser(layer: Layer, key: str, had: object, wanted: object, allowed: object) -> None:
    if allowed != wanted:
        said, own = (shown(UNLIMITED if value is None else value) for value in (wanted, had))
        why = f"{key} = {said} would loosen the user's {own}; a project's file may only tighten"
        raise layer.source.refuse(layer.places[key], why)


def _refuse_wider_globs(user: Policy, layer: Layer) -> None:
    for index, glob in enumerate(layer.values["writable"]):
        if user.writable is not None and not any(_lies_in(glob, own) for own in user.writable):
            where = (*layer.places["writable"], index)
            why = f"writable {shown(glob)} lies outside what the user makes writable ({', '.join(user.writable)})"
            raise layer.source.refuse(where, f"{why}; a project's file may only tighten")


def _lies_in(glob: str, own: str) -> bool:
    """Whether one glob can only match what the other does: the same, or anything below its `/**`."""
    return glob == own or own == "**" or (own.endswith("/**") and glob.startswith(own[:-2]))
