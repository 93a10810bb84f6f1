"""`--hide` and `--unhide`: names below home, or with ./ before them below the working directory."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.policy import Grant, nearest


def hide(value: str, home: str) -> list[Grant]:
    """In every directory that is home to somebody's idea: the account's, and ``$HOME``."""
    if value.startswith("/") or ".." in value.split("/") or not value.strip("./"):
        raise PolicyError(
            f"--hide takes a path below home, or ./PATH below the working directory, not {value}", path=value
        )
    return [Grant.hide(path) for path in _places(value, home)]


def unhide(value: str, grants: list[Grant], names: list[str], home: str) -> None:
    """Takes back what hides this, and adds it to the names of the default list that are shown. What nothing hides
    cannot be shown: somebody believes that it was hidden."""
    from corral.config.merging import key_name

    places = {os.path.normpath(path) for path in (*_places(value, home), os.path.expanduser(value))}
    hiding = [g for g in grants if g.access == "hide" and _canonical(g.path) in places]
    known = key_name(value)
    if not hiding and known is None:
        raise _never_hidden(value, places, grants)
    for grant in hiding:
        grants.remove(grant)
    if known is not None:
        names.append(known)


def _places(value: str, home: str) -> tuple[str, ...]:
    if value.startswith("./"):
        return (value[2:],)
    name = value.removeprefix("~/")
    return tuple(dict.fromkeys(os.path.join(top, name) for top in (home, os.path.expanduser("~"))))


def _canonical(path: str) -> str:
    return os.path.normpath(os.path.expanduser(path))


def _never_hidden(value: str, places: set[str], grants: list[Grant]) -> PolicyError:
    from corral.paths.sensitive import KEY_MATERIAL

    own = [_canonical(grant.path) for grant in grants if grant.access == "hide"]
    for name in KEY_MATERIAL:
        if value.removeprefix("~/").startswith(f"{name}/"):
            return PolicyError(f"{value} is hidden together with all of {name}: --unhide {name}", path=value)
    for path in own:
        if any(place.startswith(f"{path}/") for place in places):
            return PolicyError(f"{value} is hidden together with all of {path}", path=value)
    return PolicyError(f"--unhide {value}: nothing hides that{nearest(value, KEY_MATERIAL)}", path=value)
