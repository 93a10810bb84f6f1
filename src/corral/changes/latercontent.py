"""Files of which the content decides whether something runs later: which of their settings changed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable

from corral.changes.gitconfig import programs_in


def _git_config(before: bytes, after: bytes) -> str:
    """Settings that name a program, new or with another value."""
    old, new = programs_in(before), programs_in(after)
    if new is None:
        return "a git config that cannot be read"
    told = sorted({name for name, value in new if (name, value) not in (old or [])})
    return f"git settings that name programs or further settings: {', '.join(told)}" if told else ""


def _git_config_perhaps(before: bytes, after: bytes) -> str:
    """A file that is called as those of bare repositories are, and may be anything else."""
    return _git_config(before, after) if programs_in(after) else ""


_PACKAGE_KEYS = ("scripts", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "gypfile", "hooks")


def _package_json(before: bytes, after: bytes) -> str:
    return _changed_keys(before, after, json.loads, [(key,) for key in _PACKAGE_KEYS], "npm runs them")


_PYPROJECT_KEYS = [
    ("build-system",),
    ("tool", "pytest"),
    ("tool", "hatch"),
    ("tool", "setuptools"),
    ("tool", "poe"),
]
_PYPROJECT_KEYS += [
    ("tool", "pdm"),
    ("tool", "poetry", "build"),
    ("tool", "uv"),
    ("tool", "tox"),
    ("tool", "taskipy"),
]


def _pyproject(before: bytes, after: bytes) -> str:
    def load(content: bytes) -> object:
        return tomllib.loads(content.decode())

    return _changed_keys(before, after, load, _PYPROJECT_KEYS, "builds and tests run what they name")


def _composer_json(before: bytes, after: bytes) -> str:
    return _changed_keys(before, after, json.loads, [("scripts",), ("config",)], "composer runs them")


def _changed_keys(
    before: bytes, after: bytes, load: Callable[[bytes], object], keys: list[tuple[str, ...]], why: str
) -> str:
    try:
        new = load(after)
    except (ValueError, RecursionError):
        return "it cannot be read, so what it runs cannot be told"
    try:
        old = load(before) if before else {}
    except (ValueError, RecursionError):
        old = {}
    told = [".".join(key) for key in keys if (value := _at(new, key)) is not None and value != _at(old, key)]
    return f"{', '.join(told)} changed; {why}" if told else ""


def _at(table: object, key: tuple[str, ...]) -> object:
    for name in key:
        table = table.get(name) if isinstance(table, dict) else None
    return table


# Each rule has its patterns, and what looks at the content before and after and says why, or nothing.
BY_CONTENT: dict[str, tuple[tuple[str, ...], Callable[[bytes, bytes], str]]] = {
    "git-config": (
        (".git/config", ".git/**/config", "config.worktree", ".gitconfig", ".config/git/**", ".gitmodules"),
        _git_config,
    ),
    "git-config-elsewhere": (("config",), _git_config_perhaps),
    "package-scripts": (("package.json",), _package_json),
    "python-build": (("pyproject.toml",), _pyproject),
    "composer-scripts": (("composer.json",), _composer_json),
}
