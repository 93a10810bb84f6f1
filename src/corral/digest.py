"""SHA-256 without :mod:`hashlib`, which costs 3 ms on the path of `corral run`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256  # Python 3.12 and newer
    except ImportError:
        from _sha256 import sha256


def digest(content: bytes) -> str:
    faster = sys.modules.get(
        "_hashlib"
    )  # with the processor's own instructions; somebody has paid for it already
    return (sha256 if faster is None else faster.openssl_sha256)(content).hexdigest()
