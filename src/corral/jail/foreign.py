"""A posix_spawn that lets go of the interpreter's lock.

``os.posix_spawn`` holds it until the child has exec'ed: half a millisecond in which no other thread runs, an event loop
least of all. The C library's own function, called from a worker thread, does not.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Both C libraries' structures are smaller: 80 and 336 bytes at most.
FILE_ACTIONS_BYTES, ATTRIBUTES_BYTES, SIGNAL_SET_BYTES = 256, 512, 128
SETSIGDEF, SETSID = 0x04, 0x80

_spawn = ctypes.CDLL(None).posix_spawn
# All else is done in no time, and keeps the lock: giving it up means to wait for it with all other threads.
_libc = ctypes.PyDLL(None)
_libc.posix_spawn_file_actions_addopen.argtypes = (
    *(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint),
)
_libc.posix_spawnattr_setflags.argtypes = (ctypes.c_void_p, ctypes.c_short)


def spawn(
    path: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    file_actions: Iterable[tuple[Any, ...]],
    setsigdef: Iterable[int],
    setsid: bool,
) -> int:
    """As ``os.posix_spawn``, of which it knows what a launch needs."""
    actions = ctypes.create_string_buffer(FILE_ACTIONS_BYTES)
    attributes = ctypes.create_string_buffer(ATTRIBUTES_BYTES)
    _check(_libc.posix_spawn_file_actions_init(actions))
    try:
        for action in file_actions:
            _add(actions, action)
        _check(_libc.posix_spawnattr_init(attributes))
        try:
            _set(attributes, setsigdef, setsid)
            pid = ctypes.c_int()
            _check(
                _spawn(
                    ctypes.byref(pid),
                    os.fsencode(path),
                    actions,
                    attributes,
                    _strings([os.fsencode(word) for word in argv]),
                    _variables(environment),
                )
            )
            return pid.value
        finally:
            _libc.posix_spawnattr_destroy(attributes)
    finally:
        _libc.posix_spawn_file_actions_destroy(actions)


def _add(actions: Any, action: tuple[Any, ...]) -> None:
    kind, *operands = action
    if kind == os.POSIX_SPAWN_DUP2:
        _check(_libc.posix_spawn_file_actions_adddup2(actions, *operands))
    elif kind == os.POSIX_SPAWN_OPEN:
        fd, path, flags, mode = operands
        _check(_libc.posix_spawn_file_actions_addopen(actions, fd, os.fsencode(path), flags, mode))
    else:
        raise AssertionError(f"no launch needs the file action {kind}")


def _set(attributes: Any, setsigdef: Iterable[int], setsid: bool) -> None:
    signals = ctypes.create_string_buffer(SIGNAL_SET_BYTES)
    _libc.sigemptyset(signals)
    for number in setsigdef:
        _libc.sigaddset(signals, number)
    _check(_libc.posix_spawnattr_setsigdefault(attributes, signals))
    _check(_libc.posix_spawnattr_setflags(attributes, SETSIGDEF | (SETSID if setsid else 0)))


_last: tuple[dict[str, str], Any] = ({}, None)


def _variables(environment: Mapping[str, str]) -> Any:
    """One launch is much like the last."""
    global _last
    known, strings = _last
    if strings is None or known != environment:
        pairs = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in environment.items()]
        strings = _strings(pairs)
        _last = dict(environment), strings
    return strings


def _strings(words: list[bytes]) -> Any:
    for word in words:
        if b"\0" in word:
            raise ValueError("embedded null byte")
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
