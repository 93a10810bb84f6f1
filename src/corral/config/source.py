"""One config file: its bytes, the plain data in them, and how to say on which line something is wrong.

Parsing costs more than all the rest, so the plain data is kept in the state directory together with the bytes it
came from, and used only if the file still has exactly these bytes: no time stamp can lie.
"""

from __future__ import annotations

import marshal
import os
import stat

from corral.errors import ConfigError
from corral.state import made_state_directory, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Where = tuple[str | int, ...]

LARGEST_FILE = 1024 * 1024
_CACHE = "config-cache"
_CACHE_FORMAT = b"corral config 1\n"
_PRIME = 2**128 - 159


class Source:
    """A file that was read; what it means is not known here."""

    def __init__(self, path: str, content: bytes, identity: tuple[int, int]) -> None:
        self.path = path
        self.content = content
        self.identity = identity
        self._data: dict[str, Any] | None = None
        self._lines: dict[Where, int] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """What TOML says it holds; a ConfigError if it is no TOML."""
        if self._data is None:
            self._data = self._parsed()
        return self._data

    def refuse(self, where: Where, why: str, near: tuple[str, Iterable[str]] | None = None) -> ConfigError:
        """The error to raise: file, line, what is wrong, and the nearest right name if one is near."""
        text = f"{shown_path(self.path)}:{self.line(where)}: {why}"
        if near is not None:
            text += _nearest(*near)
        return ConfigError(text, path=self.path, rule=dotted(where))

    def line(self, where: Where) -> int:
        """The line of a key, of an item in a list, or of the nearest thing around it."""
        if self._lines is None:
            from corral.config.lines import key_lines

            self._lines = key_lines(self.content.decode())
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def _parsed(self) -> dict[str, Any]:
        name = f"{_CACHE}/{_fingerprint(os.fsencode(os.path.abspath(self.path)))}"
        cached = _cached(os.path.join(state_directory(), name), self.content)
        if cached is not None:
            return cached
        data = _parse(self.path, self.content)
        _keep(name, self.content, data)
        return data


def read(path: str, *, follow: bool) -> Source | None:
    """The file at this path; None if there is none."""
    found = _contents(path, follow)
    return None if found is None else Source(path, *found)


def read_content(path: str) -> bytes | None:
    """Its bytes alone, following no link."""
    found = _contents(path, follow=False)
    return None if found is None else found[0]


def _contents(path: str, follow: bool) -> tuple[bytes, tuple[int, int]] | None:
    """Bytes and identity. Opening never waits and never acts on a device."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.islink(path):
            return None
        if os.path.islink(path) and (not follow or not os.path.exists(path)):
            what = "it leads nowhere" if follow else "a project's file must be a plain one"
            raise ConfigError(f"{shown_path(path)}: is a symbolic link; {what}", path=path) from None
        raise _unreadable(path, error) from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            kind = "a directory" if stat.S_ISDIR(info.st_mode) else "not a plain file"
            raise ConfigError(f"{shown_path(path)}: is {kind}; a config is a file", path=path)
        content = _all_of(fd)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(fd)
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{shown_path(path)}: is larger than 1 MiB; that is no config", path=path)
    return content, (info.st_dev, info.st_ino)


def _all_of(fd: int) -> bytes:
    """Everything, but never much more than a config may be."""
    content = b""
    while len(content) <= LARGEST_FILE:
        more = os.read(fd, LARGEST_FILE + 1 - len(content))
        if not more:
            break
        content += more
    return content


def _unreadable(path: str, error: OSError) -> ConfigError:
    return ConfigError(f"{shown_path(path)}: cannot be read: {error.strerror}", path=path)


def shown_path(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def dotted(where: Where) -> str:
    """A key as it is written: ``limits.wall``, ``rw[2]``."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            plain = part.isascii() and part.replace("-", "").replace("_", "").isalnum()
            text += ("." if text else "") + (part if plain else ascii(part))
    return text


def _nearest(word: str, words: Iterable[str]) -> str:
    from corral.policy import nearest

    return nearest(word.lower().replace("_", "-"), words) or nearest(word, words)


# ---- parsing ----


def _parse(path: str, content: bytes) -> dict[str, Any]:
    import tomllib

    def refused(line: int, why: str) -> ConfigError:
        return ConfigError(f"{shown_path(path)}:{line}: {why}", path=path)

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise refused(content.count(b"\n", 0, error.start) + 1, "is not valid UTF-8") from None
    if text.startswith("\ufeff"):
        raise refused(1, "begins with a byte order mark; save it as plain UTF-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refused(*_syntax_error(str(error), text)) from None
    except RecursionError:
        raise refused(1, "lists or tables are nested too deeply") from None
    except ValueError as error:  # an integer with thousands of digits
        longest = max(text.split("\n"), key=len)
        raise refused(
            text.count("\n", 0, text.index(longest)) + 1, f"a number is too long: {error}"
        ) from None


def _syntax_error(message: str, text: str) -> tuple[int, str]:
    """tomllib's own words; the place it names at the end becomes our line."""
    why, _, place = message.rpartition(" (at ")
    why = {
        "Cannot overwrite a value": "a key is set twice",
        "Invalid value": "invalid value; strings need quotes",
    }.get(why, why[:1].lower() + why[1:])
    words = place.rstrip(")").replace(",", "").split()
    if words[:1] == ["line"]:
        line = int(words[1])
        # A line that ends too early is reported where the next begins.
        return line, f"{why} (column {words[3]})"
    return text.rstrip("\n").count("\n") + 1, f"{why} (the file ends there)"


# ---- the cache ----


def _fingerprint(data: bytes) -> str:
    """A name or a checksum without importing a hash. Not a defence: the state directory is the user's alone."""
    return f"{int.from_bytes(data, 'big') % _PRIME:032x}{len(data):x}"


def _cached(path: str, content: bytes) -> dict[str, Any] | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            return None
        stored = os.read(fd, info.st_size + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    head, _, payload = stored.partition(b"\0")
    if head != _CACHE_FORMAT + _fingerprint(payload).encode():
        return None
    try:
        source, data = marshal.loads(payload)
    except (ValueError, TypeError, EOFError):  # written by another version of Python
        return None
    return data if source == content and isinstance(data, dict) else None


def _keep(name: str, content: bytes, data: dict[str, Any]) -> None:
    try:
        payload = marshal.dumps((content, data))
    except ValueError:  # a date; no key of ours takes one
        return
    state = made_state_directory()
    if state is None:
        return
    try:
        write_whole(
            os.path.join(state, name), _CACHE_FORMAT + _fingerprint(payload).encode() + b"\0" + payload
        )
    except OSError:
        return


def write_whole(path: str, content: bytes, *, durable: bool = False) -> None:
    """All of it or nothing, 0600, in a directory made 0700."""
    import _thread

    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}.{_thread.get_ident():x}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
