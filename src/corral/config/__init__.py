"""corral.toml: the user's, and the project's on top of it, read into a Policy. See docs/configuration.md.

A warm start imports only what it needs: `tomllib` and all that explains an error come in when they are called for.
"""

from __future__ import annotations

from corral.config.loading import Loaded, load, load_policy
from corral.config.settings import RunSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.config.default import default_text
    from corral.config.trust import accept_project, check_project, remember_project

    DEFAULT_TEXT: str

__all__ = [
    "DEFAULT_TEXT",
    "Loaded",
    "RunSettings",
    "accept_project",
    "check_project",
    "default_text",
    "load",
    "load_policy",
    "remember_project",
]


def __getattr__(name: str) -> object:
    if name in ("DEFAULT_TEXT", "default_text"):
        from corral.config.default import default_text

        return default_text if name == "default_text" else default_text()
    if name in ("accept_project", "check_project", "remember_project"):
        from corral.config import trust

        return getattr(trust, name)
    raise AttributeError(f"module 'corral.config' has no attribute {name!r}")
