"""SHA-256 without :mod:`hashlib`, which costs 3 ms on the path of `corral run`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256  # Python 3.12 and newer
    except ImportError:
        from _sha256 import sha256


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
