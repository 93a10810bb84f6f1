"""The root of a strict jail: an empty directory tree in which only what is on the list exists."""

from __future__ import annotations

import os
import stat

from corral.jail import kernel
from corral.jail.view import READ_ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.view import View

# What a program needs of the system, read-only. A name that is a link on this host becomes the same link.
SYSTEM = (
    *("/usr", "/etc", "/opt", "/sys", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix", "/gnu", "/snap", "/var/lib/ca-certificates", "/var/lib/dpkg/alternatives"),
)
# What every program expects to be there.
DIRECTORIES = ("/tmp", "/var/tmp", "/run", "/proc", "/dev")
LINKS = {"/var/run": "/run"}


def add_root(view: View, more: tuple[str, ...] = ()) -> str:
    """Take what is on the list, and ``more``, put it into a new root, and leave the old one behind. Returns the new
    root's slot."""
    draft = view.draft
    wanted = (*SYSTEM, *more)
    taken = [(path, _take(view, path)) for path in wanted if os.path.isdir(path) and not os.path.islink(path)]
    why = "a root with nothing in it"
    root = view.tmpfs("mode=755,nr_inodes=65536,size=16m", why)
    draft.add("attach", root, draft.open_path("/tmp", stat.S_IFDIR, why), why=why)
    draft.add("pivot", root, why="nothing else exists from here on")
    view.empty["/"] = root
    for path, slot in taken:
        view.put(path, slot, f"{path}, read-only")
    for path in SYSTEM:
        if os.path.islink(path):
            draft.fill("make", root, path[1:], f"->{os.readlink(path)}", 0, why=f"{path}, a link")
    for path in DIRECTORIES:
        if path not in more:
            view.empty[path] = view.make_directory(path)
    for path, target in LINKS.items():
        parent = view.make_directory(os.path.dirname(path))
        draft.fill("make", parent, os.path.basename(path), f"->{target}", 0, why=f"{path}, a link")
    return root


def _take(view: View, path: str) -> str:
    draft = view.draft
    attrs = READ_ONLY if path != "/sys" else READ_ONLY | kernel.MOUNT_NOEXEC
    opened = draft.open_path(path, stat.S_IFDIR, f"{path}, read-only")
    return draft.fill("tree", opened, attrs, why=f"{path}, read-only")
