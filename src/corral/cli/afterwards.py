"""One line for a person when a run is over: what is kept in a copied home, and what of the project runs code later."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.enclosure import Enclosure

    Stamp = tuple[int, int, int] | None

# Names in a project that somebody or something runs later, outside. Known names only: a walk would grow with the tree.
RUN_LATER = (
    *(
        ".envrc",
        ".mise.toml",
        ".tool-versions",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "justfile",
        "Taskfile.yml",
    ),
    *(
        "package.json",
        ".npmrc",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "conftest.py",
        "tox.ini",
        "noxfile.py",
    ),
    *("build.rs", "Cargo.toml", ".cargo/config.toml", "build.gradle", "pom.xml", "Rakefile", "Gemfile"),
    *(".git/config", ".git/hooks", ".gitmodules", ".gitattributes", ".pre-commit-config.yaml", ".husky"),
    *(".github/workflows", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", "Dockerfile"),
    *(".vscode/tasks.json", ".vscode/settings.json", ".idea", ".devcontainer/devcontainer.json"),
    *(".mcp.json", ".cursor/mcp.json", ".claude/settings.json", ".claude/hooks", ".claude/commands"),
    *("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".codex/config.toml", ".aider.conf.yml"),
)
MOST = 1000


class Watch:
    """Made before the run; `tell` afterwards."""

    def __init__(self, enclosure: Enclosure) -> None:
        self._root = enclosure.root.path
        self._reviewed = enclosure.review is not None
        self._jail = enclosure.jail
        self._copied = enclosure.home is not None and enclosure.home.copied
        self._before = self._look()

    def _look(self) -> dict[str, Stamp]:
        return {name: _stamp(os.path.join(self._root, name)) for name in RUN_LATER}

    def tell(self) -> None:
        parts = []
        if self._jail is not None and self._copied:
            kept = _count(self._jail.part("changes"))
            if kept:
                parts.append(f"{kept} kept in the copied home (corral changes -j {self._jail.name})")
        if self._jail is not None and self._reviewed:
            waiting = _count(self._jail.part("review/changes"))
            if waiting:
                parts.append(f"{waiting} of the workspace wait for you (corral changes --review)")
        after = self._look()
        changed = [name for name in RUN_LATER if after[name] != self._before[name]]
        if changed:
            parts.append(f"changed here, and run by somebody later: {', '.join(changed)}")
        if parts:
            print(f"corral: {' · '.join(parts)}", file=sys.stderr)


def _stamp(path: str) -> Stamp:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size


def _count(upper: str) -> str:
    """How many files lie in a layer, without looking at more than a person would read about."""
    found, waiting = 0, [upper]
    while waiting and found < MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        found += 1
        except OSError:
            continue
    if not found:
        return ""
    return f"{found}{'+' if found >= MOST else ''} change{'' if found == 1 else 's'}"
