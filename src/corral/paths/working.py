"""The working directory of a session: inside its root, whatever links lead there."""

from __future__ import annotations

import errno
import os

from corral.errors import PathEscape, PolicyError


def check_working_directory(root: str, cwd: str) -> str:
    """Its real path. It may be missing, in part or whole; then what exists of it decides. Both sides are resolved,
    so it does not matter by which name the root was reached."""
    real_root = os.path.realpath(root)
    if "\0" in cwd:
        raise PolicyError("working_dir with a NUL byte", path=cwd, rule="working_dir")
    real = os.path.realpath(os.path.join(root, cwd))
    try:
        os.stat(real)
    except FileNotFoundError:
        pass
    except OSError as error:
        what = "a loop of links" if error.errno == errno.ELOOP else error.strerror
        raise PolicyError(f"working_dir {cwd}: {what}", path=cwd, rule="working_dir") from None
    if real != real_root and not real.startswith(real_root.rstrip("/") + "/"):
        raise PathEscape(
            f"working_dir {cwd} leads outside {root}",
            path=cwd,
            rule="working_dir",
            grant=f"start in {real}, or add it to the roots",
        )
    return real
