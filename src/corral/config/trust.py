"""Project files that a jail could have changed.

Where a jail cannot hold the project's own corral.toml read-only, the caller has its digest remembered before the
run. If the file is another one at the next start, a person has to look at it first. The records lie in the state
directory, which every jail hides or, at the least, cannot write.
"""

from __future__ import annotations

import os

from corral.config.source import read_content, shown_path, write_whole
from corral.digest import digest
from corral.errors import ConfigError
from corral.state import made_state_directory, state_directory

FILE = "corral.toml"
RECORDS = "projects"


def remember_project(project: str | os.PathLike[str]) -> bool:
    """Keep the digest of the project's file, before a jail starts that could change it. False if there is no file, or
    no state directory to keep it in (inside another jail: the outer one keeps it). A file that differs from an earlier
    record is refused, as :func:`check_project` does; only :func:`accept_project` replaces a record."""
    path = _file_of(project)
    content = read_content(path)
    check_content(path, content)
    return content is not None and _record(path, content)


def check_project(project: str | os.PathLike[str]) -> None:
    """Raises ConfigError if the file was remembered and is another one now, or gone."""
    path = _file_of(project)
    if _remembered(path) is not None:
        check_content(path, read_content(path))


def accept_project(project: str | os.PathLike[str]) -> bool:
    """A person has looked: the file as it is now is the one that is trusted. If it is gone, so is the record."""
    path = _file_of(project)
    content = read_content(path)
    if content is not None:
        return _record(path, content)
    try:
        os.unlink(_record_of(path))
    except FileNotFoundError:
        return False
    return True


def check_content(path: str, content: bytes | None) -> None:
    """The same check for bytes that were read already, so that what is checked is what is used."""
    remembered = _remembered(path)
    if remembered is None or (content is not None and remembered == digest(content)):
        return
    what = "was removed" if content is None else "changed"
    directory = os.path.dirname(path)
    raise ConfigError(
        f"{shown_path(path)}: {what} while a jail that could not protect it was in use; "
        f"look at it, then accept it with: corral trust {shown_path(directory)}",
        path=path,
        rule="project-config",
        grant=f"corral trust {directory}",
    )


def _file_of(project: str | os.PathLike[str]) -> str:
    return os.path.join(os.path.realpath(os.fspath(project)), FILE)


def _record_of(path: str) -> str:
    directory = os.path.realpath(os.path.dirname(path))
    return os.path.join(state_directory(), RECORDS, digest(os.fsencode(directory)))


def _remembered(path: str) -> str | None:
    record = _record_of(path)
    try:
        with open(record, "rb") as file:
            return file.read(64).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{shown_path(record)}: cannot be read: {error.strerror}", path=record) from None


def _record(path: str, content: bytes) -> bool:
    if made_state_directory() is None:
        return False
    try:
        # As `sha256sum` writes it, so that a person can check it with that.
        write_whole(
            _record_of(path), f"{digest(content)}  ".encode() + os.fsencode(path) + b"\n", durable=True
        )
    except OSError as error:
        raise ConfigError(
            f"{shown_path(_record_of(path))}: cannot be written: {error.strerror}", path=path
        ) from None
    return True
