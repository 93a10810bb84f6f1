"""Writable globs: their grammar, what they match, and the bound a whole command gets for each.

A command can be bound to directories and to existing files, not to patterns. Where that bound would be wider
than what the glob says, the glob is refused with the one that was probably meant, never widened in silence.
"""

from __future__ import annotations

from corral.errors import PathEscape, PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_META = "*?["


def check_globs(globs: Iterable[str]) -> tuple[str, ...]:
    if isinstance(globs, str):
        raise PolicyError(f"writable is a list of globs, not one string: [{globs!r}]")
    checked = tuple(_check(glob) for glob in globs)
    if not checked:
        raise PolicyError(
            "the list of writable globs is empty; leave it out to make the whole workspace writable"
        )
    return checked


def _check(glob: str) -> str:
    """The ten checks, in order; returns the glob without a leading ``./``."""
    if not glob or "\0" in glob:
        raise PolicyError("an empty writable glob; name a path below the workspace, like out/**")
    segments = glob.split("/")
    clean = "/".join(s for s in segments if _plain(s) not in ("", ".")) or "."
    if _is_absolute(glob) or _is_absolute(clean):
        raise _escape(glob, "it is absolute; globs are relative to the workspace")
    if ".." in map(_plain, segments):
        raise _escape(glob, "it has a .. in it")
    if "{" in glob or "}" in glob:
        raise PolicyError(
            f"writable glob {glob!r}: brace expansion is not supported; write one glob for each"
        )
    for segment in segments:
        if "**" in segment and segment != "**":
            raise PolicyError(f"writable glob {glob!r}: ** must be its own path segment")
    if segments.count("**") > 1:
        raise PolicyError(f"writable glob {glob!r}: only one ** is allowed")
    if "**" in segments and any(c in s for s in segments[: segments.index("**")] for c in _META):
        raise PolicyError(f"writable glob {glob!r}: metachars before ** are not supported")
    if any(_malformed(segment) for segment in segments):
        raise PolicyError(f"writable glob {glob!r} is malformed")
    return clean


def _is_absolute(glob: str) -> bool:
    """On any system that a config may have been written for."""
    return glob[0] in "/~" or (glob[0].isalpha() and glob[1:2] == ":") or glob.startswith("\\\\")


def _plain(segment: str) -> str:
    """The name that a segment without patterns stands for: a backslash takes the next character as it is."""
    pieces = segment.split("\\\\")
    return "\\".join(piece.replace("\\", "") for piece in pieces)


def check_name_pattern(pattern: str) -> None:
    """A pattern that stands for single names, not paths."""
    if pattern in ("", ".", "..") or "/" in pattern or "\0" in pattern:
        raise PolicyError(f"a sensitive name is one name of a path, or a pattern of one, not {pattern!r}")
    if _malformed(pattern):
        raise PolicyError(f"sensitive name {pattern!r} is malformed")


def _escape(glob: str, why: str) -> PathEscape:
    return PathEscape(f"writable glob {glob!r} escapes the workspace: {why}", path=glob, rule="writable")


def _malformed(segment: str) -> bool:
    """A class that never closes, is empty or has a range without an end; a backslash with nothing behind it."""
    i = 0
    while i < len(segment):
        if segment[i] == "[":
            after = _class_end(segment, i + 1)
            if after is None:
                return True
            i = after
        elif segment[i] == "\\":
            if i + 1 == len(segment):
                return True
            i += 2
        else:
            i += 1
    return False


def _class_end(segment: str, i: int) -> int | None:
    """The position behind the class that opened before ``i``, or None if it is malformed."""
    at: int | None = i + 1 if segment.startswith("^", i) else i
    members = 0
    while at is not None and not (members and segment.startswith("]", at)):
        at = _member_end(segment, at)
        if at is not None and segment.startswith("-", at):
            at = _member_end(segment, at + 1)
        members += 1
    return None if at is None else at + 1


def _member_end(segment: str, i: int) -> int | None:
    if segment[i : i + 1] in ("", "-", "]"):
        return None
    end = i + 2 if segment[i] == "\\" else i + 1
    return end if end <= len(segment) else None


def bound(glob: str) -> tuple[str, bool]:
    """The directory (or, literal globs, the path) below the root that a command is bound to, and whether it is
    the literal path itself. ``out/**`` → out; ``out/*.md`` → out; ``out/a.md`` → that path."""
    segments = glob.split("/")
    fixed: list[str] = []
    for segment in segments:
        if any(c in segment for c in _META):
            return "/".join(fixed) or ".", False
        fixed.append(_plain(segment))
    return "/".join(fixed), True


def matches(glob: str, path: str) -> bool:
    """Whether a checked glob means this path, which is clean and relative. ``P/**`` is P and all below it; a ``**``
    in front or in between stands for any number of directories, none included."""
    segments = glob.split("/")
    if "**" not in segments:
        return matches_name(glob, path)
    at = segments.index("**")
    prefix = _plain("/".join(segments[:at]))
    if prefix:
        if path == prefix:
            return at == len(segments) - 1
        if not path.startswith(prefix + "/"):
            return False
        path = path[len(prefix) + 1 :]
    rest = "/".join(segments[at + 1 :])
    if not rest:
        return True
    names = path.split("/")
    return any(matches_name(rest, "/".join(names[i:])) for i in range(len(names)))


def matches_name(pattern: str, text: str) -> bool:
    """As Go's ``path.Match``: ``*`` and ``?`` do not cross a slash, a class may. Linear but for one step back."""
    i = j = 0
    star = resume = -1
    while j < len(text) or i < len(pattern):
        if i < len(pattern) and pattern[i] == "*":
            star, resume, i = i, j, i + 1
            continue
        after = _one(pattern, i, text[j]) if i < len(pattern) and j < len(text) else None
        if after is not None:
            i, j = after, j + 1
        elif star >= 0 and resume < len(text) and text[resume] != "/":
            resume += 1
            i, j = star + 1, resume
        else:
            return False
    return True


def _one(pattern: str, i: int, char: str) -> int | None:
    """The position behind the piece of pattern at ``i`` if that stands for this character."""
    if pattern[i] == "?":
        return i + 1 if char != "/" else None
    if pattern[i] == "[":
        return _in_class(pattern, i + 1, char)
    if pattern[i] == "\\":
        i += 1
    return i + 1 if pattern[i] == char else None


def _in_class(pattern: str, i: int, char: str) -> int | None:
    negated = pattern[i] == "^"
    start = i = i + negated
    found = False
    while i == start or pattern[i] != "]":
        low, i = _member(pattern, i)
        high, i = _member(pattern, i + 1) if pattern[i] == "-" else (low, i)
        found = found or low <= char <= high
    return i + 1 if found != negated else None


def _member(pattern: str, i: int) -> tuple[str, int]:
    return (pattern[i + 1], i + 2) if pattern[i] == "\\" else (pattern[i], i + 1)
