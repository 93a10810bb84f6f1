"""Which tools there are. A tool's module is imported when it is first called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.tools.tool import Tool

# In the order in which they are listed. Each is the module of that name in this package, and its ``TOOL``.
NAMES: tuple[str, ...] = (
    *("read_file", "multi_read", "write_file", "edit_file", "multi_edit", "apply_patch", "search_replace"),
    *("search_files", "find_files", "list_dir", "stat_file", "diff_files", "checksum_tree"),
    *("detect_project", "list_tools", "undo", "memory", "related_context", "run_shell"),
)

_loaded: dict[str, Tool] = {}


def load(name: str) -> Tool:
    """The tool of that name; KeyError if there is none."""
    tool = _loaded.get(name)
    if tool is None:
        if name not in NAMES:
            raise KeyError(name)
        made: Tool = __import__(f"corral.tools.{name}", fromlist=["TOOL"]).TOOL
        tool = _loaded[name] = made
    return tool


def load_all(names: Iterable[str] = NAMES) -> list[Tool]:
    return [load(name) for name in names]
