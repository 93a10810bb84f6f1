"""The operation table of launcher/launch.h, as data.

A copy: the run as an ordinary user has the installed wheel and not the sources. tests/test_plan.py compares it
with the header.
"""

from __future__ import annotations

OPERATIONS: dict[str, str] = {
    "open": "dawnnNN",
    "fd": "dn",
    "status": "s",
    "life": "s",
    "parent": "",
    "session": "",
    "close": "",
    "rlimit": "nn",
    "deadline": "n",
    "memory": "n",
    "oom": "n",
    "enter": "sn",
    "namespaces": "n",
    "supervise": "n",
    "join": "",
    "group": "s",
    "private": "",
    "ids": "nnnn",
    "loopback": "",
    "mount": "dwwn",
    "overlay": "dssn",
    "copy": "dossswn",
    "tree": "dsn",
    "idmap": "ss",
    "readonly": "",
    "whiteout": "sw",
    "make": "dswwn",
    "attach": "ss",
    "pivot": "s",
    "attributes": "sn",
    "pids": "n",
    "init": "",
    "chdir": "s",
    "stdio": "n",
    "keep": "s",
    "become": "nn",
    "nonewprivs": "",
    "ruleset": "nnnn",
    "allow": "sn",
    "port": "nn",
    "restrict": "",
    "hand": "",
    "rules": "s",
    "nocaps": "",
    "unset": "w",
    "retain": "w",
    "seccomp": "w",
}
SLOTS = 1024
