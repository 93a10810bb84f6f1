"""Which files there are, and one Policy from them: defaults, the user's file, a profile of it, the project's file."""

from __future__ import annotations

import os

from corral.config.source import read, shown_path
from corral.errors import ConfigError
from corral.policy import Policy
from corral.record import Record
from corral.state import config_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.config.schema import Layer
    from corral.config.source import Source

FILE = "corral.toml"


class Loaded(Record):
    """A policy and where it comes from. ``given`` are the fields of Policy that a file has set: what is not there is
    a default, and the caller's to choose."""

    policy: Policy
    files: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


def load_policy(
    profile: str | None = None,
    project: str | os.PathLike[str] | None = None,
    user: str | os.PathLike[str] | None = None,
) -> Policy:
    """The policy that the files say. See :func:`load`."""
    return load(profile, project, user).policy


def load(
    profile: str | None = None,
    project: str | os.PathLike[str] | None = None,
    user: str | os.PathLike[str] | None = None,
) -> Loaded:
    """Read the user's config (or the file named by ``user``, which must then exist), apply one of its profiles, and
    let ``project``/corral.toml tighten the result. A wrong file is a ConfigError; a missing one means defaults."""
    own = _read_user_file(user)
    if own is None and profile is not None:
        raise ConfigError(f"{shown_path(_user_file())}: is not there, so there is no profile {profile!r}")
    layers, fields = _user_layers(own, profile) if own is not None else ([], {})
    policy, files, given = Policy(**fields), [own.path] if own is not None else [], _given(layers)
    notices: list[str] = []
    theirs = _read_project_file(project, own) if project is not None else None
    if theirs is not None:
        policy, layer, working = _tightened(policy, fields, theirs)
        files.append(theirs.path)
        given = _given([*layers, layer])
        if working:
            notices.append(f"{shown_path(theirs.path)}: the project tightens {', '.join(working)}")
    if own is not None:
        notices = [*_weakened(own.path, policy), *notices]
    return Loaded(policy, tuple(files), tuple(notices), given)


# ---- the user's file ----


def _user_file() -> str:
    return os.path.join(config_directory(), FILE)


def _read_user_file(user: str | os.PathLike[str] | None) -> Source | None:
    if user is None:
        return read(_user_file(), follow=True)
    path = os.path.abspath(os.fspath(user))
    found = read(path, follow=True)
    if found is None:
        raise ConfigError(f"{shown_path(path)}: no such config file", path=path)
    return found


def _user_layers(source: Source, profile: str | None) -> tuple[list[Layer], dict[str, Any]]:
    """The table at the top, the profile asked for, and the fields they set. Every other profile is checked too: a
    wrong line is wrong before it is needed."""
    # Here and below: where there is no file, nothing is imported for it.
    from corral.config.merging import merge
    from corral.config.schema import PROFILES, read_layer

    base = read_layer(source, source.data)
    fields = merge({}, base)
    chosen = ([base], fields)
    profiles = source.data.get(PROFILES, {})
    if not isinstance(profiles, dict):
        raise source.refuse((PROFILES,), "profile is a table for each profile (did you mean [profile.NAME]?)")
    for name, table in profiles.items():
        if not isinstance(table, dict):
            why = f"no profile has the key {name!r} (did you mean [profile.NAME]?)"
            raise source.refuse((PROFILES, name), why)
        layer = read_layer(source, table, (PROFILES, name))
        merged = merge(fields, layer)
        if name == profile:
            chosen = ([base, layer], merged)
    if profile is not None and profile not in profiles:
        there = f"there is {', '.join(profiles)}" if profiles else "there is none"
        raise source.refuse((PROFILES,), f"no profile {profile!r}; {there}", (profile, profiles))
    return chosen


def _weakened(file: str, policy: Policy) -> list[str]:
    """What a person should be told each time: where their own config leaves the fence open."""
    notices = []
    if policy.mode == "off":
        notices.append(f"{shown_path(file)}: mode is off: commands are not jailed")
    if not policy.require:
        notices.append(
            f"{shown_path(file)}: require is false: what cannot be enforced here runs all the same"
        )
    return notices


def _given(layers: list[Layer]) -> tuple[str, ...]:
    if not layers:
        return ()
    from corral.config.schema import KEYS

    return tuple(dict.fromkeys(KEYS[key][0] for layer in layers for key in layer.values))


# ---- the project's file ----


def _read_project_file(project: str | os.PathLike[str], own: Source | None) -> Source | None:
    path = os.path.join(os.path.abspath(os.fspath(project)), FILE)
    theirs = read(path, follow=False)
    if theirs is not None and own is not None and theirs.identity == own.identity:
        return None  # at work in the config directory itself
    if os.path.isdir(os.path.join(state_directory(), "projects")):
        from corral.config.trust import check_content

        check_content(path, None if theirs is None else theirs.content)
    return theirs


def _tightened(user: Policy, fields: dict[str, Any], source: Source) -> tuple[Policy, Layer, tuple[str, ...]]:
    from corral.config.project import tighten
    from corral.config.schema import read_layer

    layer = read_layer(source, source.data, kind="project")
    policy, working = tighten(user, fields, layer)
    return policy, layer, working
