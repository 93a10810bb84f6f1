"""Spills: files of ours that hold what did not fit into an answer. read_file accepts them, and nobody can plant one:
they lie in the state directory, which no jail shows, and each has the digest of its content in its name."""

from __future__ import annotations

import contextlib
import os
import time

from corral.digest import digest, sha256
from corral.files.content import read_all
from corral.paths.beneath import Anchor
from corral.paths.opening import READ
from corral.tools.failures import Failure
from corral.tools.limits import SPILL_BYTES, SPILL_FILES, SPILL_SECONDS

PREFIX, SUFFIX = "corral-shell-", ".log"
DIGEST_CHARACTERS = 32


class Spill:
    """One that is being written. At most ``SPILL_BYTES`` are kept; ``dropped`` counts what came after."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._name = f".{os.urandom(8).hex()}"
        self._fd = os.open(
            self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=anchor.fd
        )
        self._digest = sha256()
        self.size = 0
        self.dropped = 0

    def write(self, data: bytes) -> None:
        kept = data[: SPILL_BYTES - self.size]
        self.dropped += len(data) - len(kept)
        self.size += len(kept)
        self._digest.update(kept)
        from corral.files.atomic import write_all

        write_all(self._fd, kept)

    def finish(self) -> str:
        """The absolute path under which read_file has it."""
        name = f"{PREFIX}{os.urandom(4).hex()}-{self._digest.hexdigest()[:DIGEST_CHARACTERS]}{SUFFIX}"
        os.rename(self._name, name, src_dir_fd=self._anchor.fd, dst_dir_fd=self._anchor.fd)
        self._name = ""
        self.discard()
        return f"{self._anchor.path}/{name}"

    def discard(self) -> None:
        """Harmless afterwards."""
        if self._name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._anchor.fd)
            self._name = ""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Spills:
    """Of one workspace. ``directory`` None: there is no state directory, and so there are none."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._anchor: Anchor | None = None

    def _opened(self, *, make: bool) -> Anchor | None:
        if self._anchor is None and self._directory is not None:
            if make:
                os.makedirs(self._directory, 0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._anchor = Anchor(self._directory)
        return self._anchor

    def new(self) -> Spill:
        anchor = self._opened(make=True)
        if anchor is None:
            raise Failure("there is no state directory that can be written", "permission_denied")
        self._make_room(anchor)
        return Spill(anchor)

    def read(self, path: str) -> bytes | None:
        """Its content; None if the path is not one of ours at all; a Failure if it only looks like one."""
        if SUFFIX not in path or self._directory is None or not path.startswith("/"):
            return None
        directory, _, name = path.rpartition("/")
        if not name.startswith(PREFIX) or directory != os.path.realpath(self._directory):
            return None
        anchor = self._opened(make=False)
        try:
            if anchor is None:
                raise FileNotFoundError
            fd = anchor.opener(anchor.fd, name, READ)
        except OSError:
            raise Failure(f"unregistered shell spill file: {path}", "path_outside_sandbox") from None
        try:
            content = read_all(fd, os.fstat(fd).st_size, path, SPILL_BYTES)
        finally:
            os.close(fd)
        if not name.endswith(f"-{digest(content)[:DIGEST_CHARACTERS]}{SUFFIX}"):
            raise Failure(f"unregistered shell spill file: {path}", "path_outside_sandbox")
        return content

    def paths(self) -> list[str]:
        """The newest first."""
        anchor = self._opened(make=False)
        if anchor is None:
            return []
        return [f"{anchor.path}/{name}" for _, name in sorted(self._listed(anchor), reverse=True)]

    def _listed(self, anchor: Anchor) -> list[tuple[float, str]]:
        found = []
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=anchor.fd)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.name.startswith(PREFIX):
                        with contextlib.suppress(FileNotFoundError):
                            found.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
        finally:
            os.close(fd)
        return found

    def _make_room(self, anchor: Anchor) -> None:
        oldest = time.time() - SPILL_SECONDS
        listed = sorted(self._listed(anchor), reverse=True)
        for number, (made, name) in enumerate(listed):
            if number >= SPILL_FILES - 1 or made < oldest:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=anchor.fd)

    def close(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None
