"""A user's config directory, a state directory and a project on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from corral.config import Loaded, load
from corral.errors import ConfigError

# Nothing is written into the tree, a slow host is no failure, and a desk may be used again.
PROPERTY = settings(database=None, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Desk:
    """All of them empty at first."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.config = top / "config"
        self.state = top / "state"
        self.project = top / "project"
        for directory in (self.home, self.config, self.project):
            directory.mkdir()
        self.user_file = self.config / "corral.toml"
        self.project_file = self.project / "corral.toml"

    def user(self, text: str) -> None:
        self.user_file.write_text(text)

    def theirs(self, text: str) -> None:
        self.project_file.write_text(text)

    def writes(self, name: str, text: str) -> Path:
        """Another file in the config directory: ``commands/make.toml``."""
        path = self.config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, profile: str | None = None) -> Loaded:
        return load(profile, self.project)

    def refusal(self, file: Path, line: int, profile: str | None = None) -> str:
        """Loading is refused; the rest of the message after FILE:LINE, which must be right."""
        with pytest.raises(ConfigError) as caught:
            self.load(profile)
        message = str(caught.value)
        start = f"{file}:{line}: "
        assert message.startswith(start), f"{message!r} does not begin with {start!r}"
        assert "\n" not in message
        assert caught.value.path == str(file)
        return message.removeprefix(start)
