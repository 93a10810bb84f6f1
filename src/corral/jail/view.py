"""The file system a command sees, written down as mounts: what goes where, parents before children."""

from __future__ import annotations

import stat

from corral.jail import kernel
from corral.jail.site import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.jail.plan import Draft
    from corral.paths.places import Place

PRIVATE = kernel.MOUNT_NOSUID | kernel.MOUNT_NODEV
READ_ONLY = PRIVATE | kernel.MOUNT_RDONLY


class View:
    """Sources are taken first, while all is still writable; after the read-only sweep they are put in place."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.waiting: list[tuple[str, str, int, str]] = []  # path, slot, kind, why
        self.empty: dict[str, str] = {}  # directories of ours that nothing is in yet: path → slot
        self.filled: set[str] = set()  # where something with content of its own was put

    def take(self, place: Place, attrs: int, why: str) -> str:
        """A clone of a pinned place, to go where it came from."""
        slot = self.clone(place, attrs, why)
        self.wait(place.path, slot, place.kind, why)
        return slot

    def clone(self, place: Place, attrs: int, why: str) -> str:
        return self.draft.fill("tree", self.draft.open_place(place, why), attrs, why=why)

    def wait(self, path: str, slot: str, kind: int, why: str) -> None:
        self.waiting.append((path, slot, kind, why))

    def tmpfs(self, options: str, why: str, attrs: int = PRIVATE) -> str:
        return self.draft.fill("mount", "tmpfs", options, attrs, why=why)

    def put(self, path: str, slot: str, why: str, kind: int = stat.S_IFDIR) -> None:
        self.draft.add("attach", slot, self._target(path, kind, why), why=why)
        self.filled.add(path)

    def put_empty(self, path: str, slot: str, why: str) -> None:
        self.put(path, slot, why)
        self.filled.discard(path)
        self.empty[path] = slot

    def put_waiting(self) -> None:
        for path, slot, kind, why in sorted(self.waiting, key=lambda item: item[0].split("/")):
            self.put(path, slot, why, kind)

    def shows(self, path: str) -> bool:
        """Whether the host's file at this path can be seen; not if one of our empty directories covers it."""
        top = self._deepest(path)
        return top is None or top in self.filled

    def _deepest(self, path: str) -> str | None:
        tops = [top for top in (*self.empty, *self.filled) if is_below(path, top)]
        return max(tops, key=len, default=None)

    def _target(self, path: str, kind: int, why: str) -> str:
        """Where to attach: a mount point made in a directory of ours, else what lies at the path by now."""
        top = self._deepest(path)
        if top is None or top not in self.empty:
            return self.draft.open_path(path, kind, why)
        here, slot = top, self.empty[top]
        names = path[len(top) + 1 :].split("/")
        for name in names:
            here = f"{here}/{name}"
            shape = ("file", 0o644) if here == path and kind != stat.S_IFDIR else ("dir", 0o755)
            slot = self.draft.fill("make", slot, name, *shape, why=f"a mount point for {path}")
            if shape[0] == "dir" and here != path:
                self.empty[here] = slot
        return slot
