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
        self.owners = (
            ""  # slot of a user namespace that says whose the places are inside; empty: whose they are
        )
        self.waiting: list[tuple[str, str, int, str]] = []  # path, slot, kind, why
        self.growing: dict[
            str, str
        ] = {}  # directories of the jail's own, where mount points may be missing: path → slot
        self.private: set[str] = set()  # where nothing of the host is seen but what is put there
        self.empty: dict[str, str] = {}  # directories of ours that nothing is in yet: path → slot
        self.filled: set[str] = set()  # where something with content of its own was put

    def take(self, place: Place, attrs: int, why: str) -> str:
        """A clone of a pinned place, to go where it came from."""
        slot = self.clone(place, attrs, why)
        self.wait(place.path, slot, place.kind, why)
        return slot

    def take_path(self, path: str, attrs: int, why: str) -> None:
        """The same for a directory that lies in a pinned place, and is not pinned itself."""
        slot = self._clone(self.draft.open_path(path, stat.S_IFDIR, why), path, attrs, why)
        self.wait_directory(path, slot, why)

    def clone(self, place: Place, attrs: int, why: str) -> str:
        return self._clone(self.draft.open_place(place, why), place.path, attrs, why)

    def _clone(self, opened: str, path: str, attrs: int, why: str) -> str:
        slot = self.draft.fill("tree", opened, attrs, why=why)
        if self.owners:
            self.draft.add("idmap", slot, self.owners, why=f"{path} is the inside user's")
        return slot

    def wait(self, path: str, slot: str, kind: int, why: str) -> None:
        self.waiting.append((path, slot, kind, why))

    def wait_directory(self, path: str, slot: str, why: str) -> None:
        self.wait(path, slot, stat.S_IFDIR, why)

    def wait_private(self, path: str, slot: str, why: str) -> None:
        """A directory of the jail's own over the host's."""
        self.private.add(path)
        self.wait(path, slot, stat.S_IFDIR, why)

    def tmpfs(self, options: str, why: str, attrs: int = PRIVATE) -> str:
        return self.draft.fill("mount", "tmpfs", options, attrs, why=why)

    def put(self, path: str, slot: str, why: str, kind: int = stat.S_IFDIR) -> None:
        self.draft.add("attach", slot, self._target(path, kind, why), why=why)
        self.empty.pop(path, None)
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
        return top is None or (top in self.filled and top not in self.private)

    def make_directory(self, path: str) -> str:
        """In a directory of ours. Returns its slot."""
        return self._target(path, stat.S_IFDIR, f"{path}, empty")

    def _deepest(self, path: str) -> str | None:
        tops = [top for top in (*self.empty, *self.filled) if is_below(path, top)]
        return max(tops, key=len, default=None)

    def _target(self, path: str, kind: int, why: str) -> str:
        """Where to attach: a mount point made in a directory of ours, else what lies at the path by now."""
        top = self._deepest(path)
        if top in self.empty:
            return self._made(path, kind, top, self.empty[top])
        if top in self.growing and path != top:
            return self._grown(path, kind, top)
        return self.draft.open_path(path, kind, why)

    def _made(self, path: str, kind: int, top: str, slot: str) -> str:
        here = top.rstrip("/")
        if path == top:
            return slot
        for name in path[len(here) + 1 :].split("/"):
            here = f"{here}/{name}"
            shape = ("file", 0o644) if here == path and kind != stat.S_IFDIR else ("dir", 0o755)
            slot = self.draft.fill("make", slot, name, *shape, why=f"a mount point for {path}")
            if shape[0] == "dir" and here != path:
                self.empty[here] = slot
        return slot

    def _grown(self, path: str, kind: int, top: str) -> str:
        """An earlier run may have removed it, or put something else in its place: a link is refused."""
        slot = self.growing[top]
        names = path[len(top) + 1 :].split("/")
        for name in names[:-1]:
            slot = self.draft.fill(
                "make", slot, name, "dir?", 0o711, why=f"{path}, as the jail's own home has it"
            )
        last = ("dir?", 0o711) if kind == stat.S_IFDIR else ("file?", 0o600)
        return self.draft.fill("make", slot, names[-1], *last, why=f"{path}, as the jail's own home has it")
