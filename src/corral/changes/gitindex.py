"""Whether two git indexes say the same but for inode numbers and times. Read without git."""

from __future__ import annotations

from collections.abc import Iterator

STAT_BYTES = 40
MODE_AT = 24
HASHES = (20, 32)  # SHA-1, SHA-256
TOLD_EXTENSIONS = (b"TREE", b"REUC", b"sdir", b"link")


def same_but_for_stat_data(one: bytes, other: bytes) -> bool:
    if not (one.startswith(b"DIRC") and other.startswith(b"DIRC")):
        return False
    for hash_bytes in HASHES:
        try:
            return list(_told(one, hash_bytes)) == list(_told(other, hash_bytes))
        except (IndexError, ValueError):
            continue
    return False


def _told(index: bytes, hash_bytes: int) -> Iterator[bytes]:
    """What an index says: for each entry mode, object, flags and name; then the extensions that are no cache."""
    version = int.from_bytes(index[4:8], "big")
    count = int.from_bytes(index[8:12], "big")
    end = len(index) - hash_bytes
    if version not in (2, 3, 4):
        raise ValueError(version)
    at, name = 12, b""
    for _ in range(count):
        flags_at = at + STAT_BYTES + hash_bytes
        fixed = flags_at + 2
        if index[flags_at] & 0x40:  # extended
            fixed += 2
        start = fixed
        if version == 4:
            cut, start = _variable_length(index, fixed)
            stop = index.index(b"\0", start, end)
            name = name[: len(name) - cut] + index[start:stop]
            following = stop + 1
        else:
            stop = index.index(b"\0", start, end)
            name = index[start:stop]
            following = at + (stop - at + 8) // 8 * 8
        yield index[at + MODE_AT : at + MODE_AT + 4]
        yield index[at + STAT_BYTES : fixed]
        yield name
        at = following
    while at + 8 <= end:
        signature, size = index[at : at + 4], int.from_bytes(index[at + 4 : at + 8], "big")
        if at + 8 + size > end or not signature.isalpha():
            raise ValueError(signature)
        if signature in TOLD_EXTENSIONS:
            yield signature + index[at + 8 : at + 8 + size]
        at += 8 + size
    if at != end:
        raise ValueError(at)


def _variable_length(index: bytes, at: int) -> tuple[int, int]:
    value = index[at] & 0x7F
    while index[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (index[at] & 0x7F)
    return value, at + 1
