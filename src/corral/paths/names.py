"""Path strings before the kernel sees them: what names they have, and what their errors are called."""

from __future__ import annotations

import errno
import os

from corral.errors import BadPath, PathEscape
from corral.paths.opening import PATH_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    Names = tuple[str, ...]


def components(path: str) -> list[str]:
    """The names of a relative path, without the empty ones and ``.``."""
    if not path or "\0" in path:
        raise BadPath("an empty path" if not path else "a NUL byte in a path", path=path, rule="path")
    try:
        size = len(path) if path.isascii() else len(os.fsencode(path))
    except UnicodeEncodeError:
        raise BadPath("a path that no file can have", path=path, rule="path") from None
    if size >= PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    if path[0] == "/":
        raise PathEscape(f"{path} is absolute; name it relative to its root", path=path, rule="outside")
    return [name for name in path.split("/") if name and name != "."]


def plain_names(path: str, names: Sequence[str]) -> Names:
    """Where the path leads if no link is on its way: ``..`` taken back."""
    if ".." not in names:
        return tuple(names)
    kept: list[str] = []
    for name in names:
        if name != "..":
            kept.append(name)
        elif kept:
            kept.pop()
        else:
            raise escapes(path)
    return tuple(kept)


def escapes(path: str, why: str = "leads outside its root") -> PathEscape:
    return PathEscape(f"{path} {why}", path=path, rule="outside")


class LeadsOut(PathEscape):
    """An escape that says where to: an absolute path, for whoever may look there as well."""

    target = ""


def leads_out(path: str, target: str, *rest: str) -> LeadsOut:
    error = LeadsOut(f"{path} goes through a link that leads outside its root", path=path, rule="outside")
    error.target = "/".join((target, *rest))
    return error


def raise_named(error: OSError, path: str) -> NoReturn:
    """The kernel's answer with the path as it was given; a link, or a way out, is an escape. EACCES never is."""
    if error.errno in (errno.ELOOP, errno.EXDEV):
        raise escapes(path, "goes through a symbolic link") from None
    raise type(error)(error.errno, error.strerror, path) from None
