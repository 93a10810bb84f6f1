"""The object store before an agent may add to it: what is loose becomes a pack, each object checked against its name.

git takes a loose object at its word, and whoever may add loose objects may replace them. Packs are read first and lie
in a directory that is read-only inside. So nothing that was there before a run can be changed by it, and what an agent
left behind under a false name is found before the next one.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zlib

from corral.errors import PolicyError
from corral.files.removing import remove_tree
from corral.workspace.gitcommand import GitFailed, git

_FAN_OUT = re.compile(r"[0-9a-f]{2}")
_REST = re.compile(r"[0-9a-f]{38}([0-9a-f]{24})?")


def seal(common: str) -> int:
    """How many objects were packed. PolicyError if one of them is not what its name says; nothing is changed then."""
    names = loose_objects(common)
    if not names:
        return 0
    packs = os.path.join(common, "objects", "pack")
    workshop = tempfile.mkdtemp(prefix="corral-", dir=packs)
    try:
        base = os.path.join(workshop, "pack")
        stem = f"{base}-{_packed(common, base, names)}"
        _verify(common, f"{stem}.idx", names)
        for name in sorted(
            os.listdir(workshop), key=lambda name: name.endswith(".idx")
        ):  # the index makes it count
            os.rename(os.path.join(workshop, name), os.path.join(packs, name))
    finally:
        remove_tree(workshop)
    git(common, "prune-packed", "--quiet")
    return len(names)


def loose_objects(common: str) -> list[str]:
    objects = os.path.join(common, "objects")
    found = []
    for first in filter(_FAN_OUT.fullmatch, os.listdir(objects)):
        directory = os.path.join(objects, first)
        if os.path.islink(directory) or not os.path.isdir(directory):
            raise PolicyError(
                f"{directory} was replaced by something that is no directory; remove it", path=directory
            )
        found += [first + rest for rest in os.listdir(directory) if _REST.fullmatch(rest)]
    return sorted(found)


def _packed(common: str, base: str, names: list[str]) -> str:
    try:
        return git(common, "pack-objects", "--quiet", base, stdin="\n".join(names).encode() + b"\n").strip()
    except GitFailed as error:
        raise _false(common, names, error) from None


def _verify(common: str, index: str, names: list[str]) -> None:
    """Reads each object out of the new pack and compares it with its name."""
    try:
        git(common, "verify-pack", index)
    except GitFailed as error:
        raise _false(common, names, error) from None


def _false(common: str, names: list[str], error: GitFailed) -> PolicyError:
    files = ((name, os.path.join(common, "objects", name[:2], name[2:])) for name in names)
    wrong = next((path for name, path in files if not _is_what_it_says(name, path)), f"an object ({error})")
    return PolicyError(
        f"{wrong} is not what its name says: an agent, or the disk, changed it. Remove the file, then fetch or commit "
        f"its content again; `git --git-dir={common} fsck` names all such",
        path=wrong,
    )


def _is_what_it_says(name: str, path: str) -> bool:
    digest = hashlib.new("sha1" if len(name) == 40 else "sha256")
    content = zlib.decompressobj()
    try:
        with open(path, "rb") as file:
            while piece := file.read(1 << 16):
                digest.update(content.decompress(piece))
    except (OSError, zlib.error):
        return False
    return digest.hexdigest() == name
