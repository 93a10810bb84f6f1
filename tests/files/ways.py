"""Every way to a path that a file half has."""

from __future__ import annotations

from collections.abc import Callable

from corral.environment.files import FileHalf

# None may be laxer than another.
OPERATIONS: dict[str, Callable[[FileHalf, str], object]] = {
    "read": lambda files, path: files.read_bytes(path),
    "open": lambda files, path: files.open(path),
    "write": lambda files, path: files.write_file(path, b"x"),
    "create": lambda files, path: files.write_file(path, b"x", existing="refuse"),
    "open to write": lambda files, path: files.open(path, "w"),
    "remove": lambda files, path: files.remove_file(path),
    "remove tree": lambda files, path: files.remove_tree(path),
    "rename from": lambda files, path: files.rename(path, "elsewhere"),
    "rename to": lambda files, path: files.rename("plain", path),
    "make": lambda files, path: files.make_dir(path),
    "list": lambda files, path: files.list_dir(path),
    "stat": lambda files, path: files.stat(path),
    "walk": lambda files, path: list(files.walk(path)),
    "glob": lambda files, path: files.glob(path),
}
