"""Which Landlock a host has, asked without side effects."""

from __future__ import annotations

import ctypes
import sys

import pytest

import corral
from corral import LandlockUnavailable, NotEnforceable, probe_landlock
from leaks import no_leaks

pytestmark = pytest.mark.jail


def test_the_abi_is_the_kernels_own_answer_and_asking_changes_nothing() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with no_leaks():
        assert probe_landlock() == max(libc.syscall(444, None, 0, 1), 0)


def test_too_old_a_landlock_names_what_is_there_and_what_is_needed() -> None:
    found = probe_landlock()
    assert probe_landlock(needed=found) == found
    with pytest.raises(LandlockUnavailable, match=f"ABI {found}; ABI {found + 90} is needed") as caught:
        probe_landlock(needed=found + 90)
    assert (caught.value.found, caught.value.needed) == (found, found + 90)
    assert isinstance(caught.value, NotEnforceable)


def test_off_linux_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert corral.probe_landlock() == 0
    with pytest.raises(LandlockUnavailable, match="no Landlock; ABI 3 is needed"):
        corral.probe_landlock(needed=3)
