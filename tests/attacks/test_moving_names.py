"""A mount point cannot be renamed, but the directory above it could: then the name outside is the jail's to fill."""

from __future__ import annotations

import pytest

from homes.dweller import Dweller

pytestmark = pytest.mark.jail

MOVE = "mv deep/er deep/moved; mkdir -p deep/er/kept; echo evil > deep/er/kept/hook; mv deep moved-too"


def test_what_lies_above_a_read_only_place_stays_where_it_is(anybody: Dweller, mode: str) -> None:
    kept = anybody.project / "deep/er/kept"
    kept.mkdir(parents=True)
    (kept / "hook").write_text("good")
    done = anybody.runs(f"{MOVE}; touch deep/er/new deep/new", "--ro", "deep/er/kept", mode=mode)
    assert done.stderr.count("Device or resource busy") == 2, done.stderr
    assert (kept / "hook").read_text() == "good"
    # All around it is writable as before.
    assert (anybody.project / "deep/er/new").exists()
    assert (anybody.project / "deep/new").exists()
    assert not (anybody.project / "deep/moved").exists()


def test_what_is_hidden_is_not_found_beside_by_the_next_run(anybody: Dweller, mode: str) -> None:
    secret = anybody.project / "deep/secret"
    secret.parent.mkdir()
    secret.write_text("hidden words")
    anybody.runs("mv deep moved; mv deep/secret beside", "--hide", "./deep/secret", mode=mode)
    done = anybody.runs(
        "cat deep/secret moved/secret beside; echo seen", "--hide", "./deep/secret", mode=mode
    )
    assert done.stdout == "seen\n"
    assert secret.read_text() == "hidden words"


def test_a_directory_held_in_place_gives_nothing_read_only_away(anybody: Dweller, mode: str) -> None:
    """One read-only place in another: holding what lies between must not make it writable."""
    inner = anybody.project / "outer/between/inner"
    inner.mkdir(parents=True)
    options = ("--ro", "outer", "--ro", "outer/between/inner")
    assert anybody.runs("touch outer/between/new", *options, mode=mode).returncode == 1
    assert anybody.runs("touch new", *options, mode=mode).returncode == 0
