"""`corral init`: write the commented default config, never over one that is there."""

from __future__ import annotations

import os

from corral.errors import PolicyError
from corral.state import config_directory


def main(subcommand: str, words: list[str]) -> int:
    if words and words[0] in ("-h", "--help"):
        print("usage: corral init     write the commented default config; keeps one that is there")
        return 0
    if words:
        raise PolicyError("corral init takes no arguments; it writes your corral.toml")
    from corral.config import default_text

    directory = config_directory()
    path = os.path.join(directory, "corral.toml")
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        print(
            f"{path} is there already; nothing was changed. To see the defaults, move it away and run this again"
        )
        return 0
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror}; name another directory in CORRAL_CONFIG_DIR") from None
    with open(fd, "w") as file:
        file.write(default_text())
    print(f"wrote {path}; take the first # off a line to change what it says")
    return 0
