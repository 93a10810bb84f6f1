"""Paths: pinned places, writable globs, names that hold secrets."""
