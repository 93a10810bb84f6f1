"""Selftest: try to break out of a jail on this host, case by case, and say what happened.

Each module of :data:`GROUPS` holds a few cases. Their text is sent into the jail and run there by an interpreter of the
host; nothing of Corral needs to be visible inside.
"""

from __future__ import annotations

GROUPS = (
    "files",
    "links",
    "metadata",
    "secrets",
    "descriptors",
    "aliases",
    "persistence",
    "sockets",
    "processes",
    "terminal",
    "network",
    "kernel",
    "environment",
    "limits",
    "leftovers",
)
