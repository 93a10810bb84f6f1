"""Which files there are, and one Policy from them: defaults, the user's file, the command's, the jail's, a profile,
and the project's file on top, which can only tighten."""

from __future__ import annotations

import os

from corral.config.settings import COMMANDS, RunSettings
from corral.config.source import read, shown_path
from corral.errors import ConfigError
from corral.policy import Policy
from corral.record import Record
from corral.state import config_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.config.schema import Kind, Layer
    from corral.config.source import Source

FILE = "corral.toml"
COMMAND_FILES, JAIL_FILES = "commands", "jails"


class Loaded(Record):
    """A policy and where it comes from. ``given`` are the fields of Policy that a file has set: what is not there is
    a default, and the caller's to choose. ``settings``: what the files say that is no policy."""

    policy: Policy
    files: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    settings: RunSettings = RunSettings()


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
    *,
    command: str | None = None,
    jail: str | None = None,
    default_jail: str | None = None,
) -> Loaded:
    """Read the user's config (or the file named by ``user``, which must then exist), the file of the ``command`` as it
    was typed and that of the ``jail``, apply a profile, and let ``project``/corral.toml tighten the result. Without
    ``jail``, the files may name one; ``default_jail`` is the name if they do not. A wrong file is a ConfigError; a
    missing one means defaults."""
    own = _user_sources(user, command)
    user_files = _UserFiles(own, profile)
    if jail is None:
        jail = user_files.jail() or default_jail
    user_files.add_jail(_jail_sources(jail))
    layers, fields = user_files.finished()
    policy = Policy(**fields)
    files, given, notices = [source.path for source in user_files.sources], _given(layers), []
    theirs = _read_project_file(project, user_files.sources) if project is not None else None
    if theirs is not None:
        policy, layer, working = _tightened(policy, fields, theirs)
        files.append(theirs.path)
        given = _given([*layers, layer])
        if working:
            notices.append(f"{shown_path(theirs.path)}: the project tightens {', '.join(working)}")
    notices = [*_weakened(layers, policy), *notices]
    return Loaded(policy, tuple(files), tuple(notices), given, _settings(layers, command))


# ---- the user's files ----


def _user_file() -> str:
    return os.path.join(config_directory(), FILE)


def _user_sources(user: str | os.PathLike[str] | None, command: str | None) -> list[Source]:
    """The user's own file and the one for this command; a file that is named takes the place of both."""
    if user is not None:
        path = os.path.abspath(os.fspath(user))
        found = read(path, follow=True)
        if found is None:
            raise ConfigError(
                f"{shown_path(path)}: no such config file; --config-optional passes over a missing one",
                path=path,
            )
        return _with_includes([found])
    found = read(_user_file(), follow=True)
    sources = [] if found is None else [found]
    # As it was typed: `corral run /bin/NAME` is another command.
    if command and "/" not in command and not command.startswith("."):
        sources += _named_source(COMMAND_FILES, command)
    return _with_includes(sources)


def _jail_sources(jail: str | None) -> list[Source]:
    if jail is None or "/" in jail or jail.startswith("."):
        return []  # not a name; the policy refuses it
    return _with_includes(_named_source(JAIL_FILES, jail))


def _named_source(directory: str, name: str) -> list[Source]:
    if "\0" in name or len(os.fsencode(name)) > 200:
        return []
    found = read(os.path.join(config_directory(), directory, f"{name}.toml"), follow=True)
    return [] if found is None else [found]


def _with_includes(sources: list[Source]) -> list[Source]:
    if not sources:
        return []
    # Here and below: where there is no file, nothing is imported for it.
    from corral.config.included import with_includes

    return [each for source in sources for each in with_includes(source)]


class _UserFiles:
    """The layers of the user's files as they are read, and the fields of Policy that they set."""

    def __init__(self, sources: list[Source], profile: str | None) -> None:
        self.sources: list[Source] = []
        self.profile = profile
        self._base: list[Layer] = []
        self._profiles: list[tuple[str, Layer]] = []
        self._read(sources, "user")

    def add_jail(self, sources: list[Source]) -> None:
        self._read(sources, "jail")

    def jail(self) -> str | None:
        """The name of a jail that the files read so far give."""
        layers = [*self._base, *self._chosen()]
        named: list[str] = [layer.values["jail"] for layer in layers if "jail" in layer.values]
        return named[-1] if named else None

    def finished(self) -> tuple[list[Layer], dict[str, Any]]:
        """All layers that count, and their fields. Every profile is checked, asked for or not: a wrong line is wrong
        before it is needed."""
        if self.profile is not None and not self._chosen():
            raise self._no_profile(self.profile)
        fields: dict[str, Any] = {}
        if not self.sources:
            return [], fields
        from corral.config.merging import merge

        for layer in self._base:
            fields = merge(fields, layer)
        chosen = fields
        for name, layer in self._profiles:
            if name == self.profile:
                chosen = merge(chosen, layer)
            else:
                merge(fields, layer)
        return [*self._base, *self._chosen()], chosen

    def _chosen(self) -> list[Layer]:
        return [layer for name, layer in self._profiles if name == self.profile]

    def _read(self, sources: list[Source], kind: Kind) -> None:
        if not sources:
            return
        from corral.config.schema import PROFILES, read_layer

        for source in sources:
            if any(source.identity == other.identity for other in self.sources):
                continue  # included by an earlier one
            self.sources.append(source)
            self._base.append(read_layer(source, source.data, kind=kind))
            profiles = source.data.get(PROFILES, {})
            if not isinstance(profiles, dict):
                why = "profile is a table for each profile (did you mean [profile.NAME]?)"
                raise source.refuse((PROFILES,), why)
            for name, table in profiles.items():
                if not isinstance(table, dict):
                    why = f"no profile has the key {name!r} (did you mean [profile.NAME]?)"
                    raise source.refuse((PROFILES, name), why)
                self._profiles.append((name, read_layer(source, table, (PROFILES, name), kind)))

    def _no_profile(self, profile: str) -> ConfigError:
        if not self.sources:
            return ConfigError(
                f"{shown_path(_user_file())}: is not there, so there is no profile {profile!r}"
            )
        names = list(dict.fromkeys(name for name, _ in self._profiles))
        there = f"there is {', '.join(names)}" if names else "there is none"
        return self.sources[-1].refuse(("profile",), f"no profile {profile!r}; {there}", (profile, names))


def _settings(layers: list[Layer], command: str | None) -> RunSettings:
    if not layers and os.path.basename(command or "") not in COMMANDS:
        return RunSettings()
    from corral.config.settings import settings_from

    return settings_from(layers, command)


def _weakened(layers: list[Layer], policy: Policy) -> list[str]:
    """What a person should be told each time: where their own config leaves the fence open."""
    told = {
        "mode": (policy.mode == "off", "mode is off: commands are not jailed"),
        "require": (
            not policy.require,
            "require is false: what cannot be enforced here runs all the same",
        ),
    }
    notices = []
    for key, (is_weak, why) in told.items():
        files = [layer.source.path for layer in layers if key in layer.values]
        if is_weak and files:
            notices.append(f"{shown_path(files[-1])}: {why}")
    return notices


def _given(layers: list[Layer]) -> tuple[str, ...]:
    if not layers:
        return ()
    from corral.config.schema import KEYS

    return tuple(dict.fromkeys(KEYS[key][0] for layer in layers for key in layer.values))


# ---- the project's file ----


def _read_project_file(project: str | os.PathLike[str], own: list[Source]) -> Source | None:
    path = os.path.join(os.path.abspath(os.fspath(project)), FILE)
    theirs = read(path, follow=False)
    if theirs is not None and any(theirs.identity == source.identity for source in own):
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
