"""Started by sudo: a jail with a copied or empty home is the user's who called sudo, and runs as that user."""

from __future__ import annotations

import os
import pwd


def become_sudo_user() -> None:
    """Give root up for good. Nothing happens where sudo was not used, or by root."""
    name = os.environ.get("SUDO_USER", "")
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return
    if account.pw_uid == 0:
        return
    os.initgroups(name, account.pw_gid)
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    os.environ.update(HOME=account.pw_dir, USER=name, LOGNAME=name)
