"""File names as tools print them: quoted for a shell, in the quotes of a locale, as a Python literal, or bare."""

from __future__ import annotations

import re

_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_C_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_OCTAL = re.compile(rb"\\#?([0-7]{3})")

# How a quoted name looks in a line. An apostrophe inside a word ("couldn't") opens nothing.
QUOTED = re.compile(
    r"""(?<![\w’'])(?:
        b?"(?:[^"\\]|\\.)*" |
        b?'(?:[^'\\]|\\.)*'(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|\\')* |
        '[^']*'(?:\$'(?:[^'\\]|\\.)*'|'[^']*'|\\')* |
        \$'(?:[^'\\]|\\.)*'(?:'[^']*')* |
        ‘[^’]*’ | `[^'`]*'
    )(?!\w)""",
    re.VERBOSE,
)
_PIECE = re.compile(
    rb"""\$'((?:[^'\\]|\\.)*)'|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\$]+|.)""", re.DOTALL
)


def unquoted(name: str) -> str:
    """The name behind what GNU tools, shells, git, rsync and the like printed; bytes that are no text survive."""
    raw = name.encode("utf-8", "surrogateescape")
    if raw[:1] == b"`" or raw.startswith("‘".encode()):
        raw = raw.removeprefix("‘".encode()).removeprefix(b"`")
        raw = raw.removesuffix("’".encode()).removesuffix(b"'")
        return _text(_C_ESCAPE.sub(_unescape, raw))
    if raw[:1] in (b"'", b'"', b"$"):
        pieces = [_piece(match) for match in _PIECE.finditer(raw)]
        return _text(b"".join(pieces))
    return name


def python_literal(name: str) -> str:
    """A name as `repr` writes it, ``b'…'`` included."""
    import ast

    try:
        value = ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return unquoted(name)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _piece(match: re.Match[bytes]) -> bytes:
    ansi, single, double, escaped, bare = match.groups()
    if ansi is not None:
        return _C_ESCAPE.sub(_unescape, ansi)
    if single is not None:
        # mkdir and others write '\303\251' where the locale has no such character.
        return _OCTAL.sub(lambda octal: bytes([int(octal[1], 8) & 255]), single)
    if double is not None:
        return _OCTAL.sub(lambda octal: bytes([int(octal[1], 8) & 255]), double)
    return bytes(escaped if escaped is not None else bare)


def _unescape(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, char = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 255])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return _ESCAPES.get(char, char)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
