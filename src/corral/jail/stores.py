"""Stores: package managers keep one in home and hard-link from it. A home of the jail's own is another file system than
the project, so they are told to copy; pnpm would make a second store in the middle of the project instead."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PNPM_STORE = ".local/share/pnpm/store"
PNPM_FILES = ("pnpm-lock.yaml", "pnpm-workspace.yaml")


def store_variables(home: str, project: str, given: Mapping[str, str]) -> dict[str, str]:
    """What to add to the variables; what a person has said already stays."""
    store = os.path.join(home, PNPM_STORE)
    wanted = {"UV_LINK_MODE": "copy", "pnpm_config_store_dir": store}
    # Before pnpm 11 it has npm's name, about which npm complains; so only where pnpm is at home.
    if any(os.path.exists(os.path.join(project, name)) for name in PNPM_FILES):
        wanted["npm_config_store_dir"] = store
    return {name: value for name, value in wanted.items() if name not in given}
