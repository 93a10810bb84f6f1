"""Sensitive names on file systems that really do not tell cases apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hostfacts import skip_unless_host

TRIAL = Path(__file__).with_name("folding_trial.py")


@pytest.mark.parametrize("kind", ["ext4", "vfat", "fuse"])
def test_another_case_is_no_way_to_a_sensitive_file(kind: str, tmp_path: Path) -> None:
    skip_unless_host("mounting")
    skip_unless_host(f"folding-{kind}")
    apart = ["unshare", "--mount", "--propagation", "private"]
    done = subprocess.run(
        [*apart, sys.executable, TRIAL, kind, tmp_path], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stderr
