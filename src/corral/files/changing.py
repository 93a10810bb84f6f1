"""The two changes that a host may want to make itself: putting a file below an anchor, and taking one away.

Each asks first, makes directories then, and comes to the file last, so that what is refused leaves nothing behind.
A host's own hook does the same, and may call these for its last step.
"""

from __future__ import annotations

import os
import stat

from corral.errors import NotAFileButDirectory
from corral.files.atomic import Pending, look_at, refuse_unless_file
from corral.paths.beneath import all_is_well
from corral.paths.names import components

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from corral.paths.beneath import Anchor, Check

    # "x": only a file that is not there yet.
    OpenMode = Literal["w", "x"]
    # Anchor, path below it, mode; the file that is being written, to be committed by the environment.
    OpenHook = Callable[[Anchor, str, OpenMode], Pending]
    # Anchor, path below it.
    RemoveHook = Callable[[Anchor, str], None]


def open_for_write(
    anchor: Anchor, path: str, mode: OpenMode = "w", *, check: Check = all_is_well, given: str = ""
) -> Pending:
    """A new content for a path below the anchor, missing directories made. ``check`` is told the path before
    anything is made. ``given``: what errors call it, if not so."""
    if mode not in ("w", "x"):
        raise ValueError(f"mode {mode!r}; there is w and x")
    refuse_name_of_directory(path, given)
    parent = anchor.parent(path, check, make=True)
    parent.path = given or path
    return Pending(parent, existing="refuse" if mode == "x" else "replace")


def remove_beneath(anchor: Anchor, path: str, *, check: Check = all_is_well, given: str = "") -> None:
    """Anything but a directory. A link is removed itself, never what it leads to."""
    refuse_name_of_directory(path, given)
    with anchor.parent(path, check) as parent:
        parent.path = given or path
        info = look_at(parent)
        if info is not None and stat.S_ISDIR(info.st_mode):
            refuse_unless_file(info, parent.path)
        try:
            os.unlink(parent.name, dir_fd=parent.fd)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, parent.path) from None


def refuse_name_of_directory(path: str, given: str = "") -> None:
    """``a/`` can only mean a directory."""
    if path.endswith(("/", "/.")) and components(path):
        shown = given or path
        raise NotAFileButDirectory(f"{shown} names a directory", path=shown, rule="regular file")
