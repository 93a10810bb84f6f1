"""`corral trust [DIR]`: accept a project's corral.toml that changed while a jail could have changed it."""

from __future__ import annotations

import os

from corral.errors import PolicyError


def main(subcommand: str, words: list[str]) -> int:
    if words and words[0] in ("-h", "--help"):
        print("usage: corral trust [DIR]     accept DIR/corral.toml as it is now")
        return 0
    if len(words) > 1:
        raise PolicyError("corral trust takes one directory; without one, it is the one you are in")
    from corral.config import accept_project

    directory = os.path.abspath(words[0] if words else ".")
    if not os.path.isdir(directory):
        raise PolicyError(f"{directory}: no such directory", path=directory)
    accept_project(directory)
    path = os.path.join(directory, "corral.toml")
    there = os.path.exists(path)
    print(f"accepted {path} as it is now" if there else f"there is no {path}; that is accepted, too")
    return 0
