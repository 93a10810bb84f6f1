"""The probe for macOS, with programs that stand for `sandbox-exec`: one that fences nothing is found out.

The real one runs on macOS only; where it is imitated here, Linux namespaces do the fencing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral import Policy
from corral.jail.seatbelt_probe import prove
from hostfacts import skip_unless_host

pytestmark = pytest.mark.jail

AFTER_THE_DASHES = 'while [ "$1" != -- ]; do shift; done; shift\n'


def stand_in(directory: Path, body: str) -> str:
    path = directory / "sandbox-exec"
    path.write_text(f"#!/bin/bash\n{body}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f'{AFTER_THE_DASHES}exec "$@"', "was not refused"),
        ("exit 0", "no answer"),
        ("exit 65", "no answer"),
        ("kill -9 $$", "no answer"),
        ("echo '{}'", "no answer"),
        ("echo '[1]'", "no answer"),
    ],
)
def test_a_program_that_fences_nothing_or_crashes_proves_nothing(
    tmp_path: Path, body: str, reason: str
) -> None:
    proof = prove(Policy(), program=stand_in(tmp_path, body))
    assert not proof.enforcing
    assert "writes" not in proof.proven
    assert reason in dict(proof.failed)["writes"]


def test_a_program_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    proof = prove(Policy(), program=str(tmp_path / "missing"))
    assert (proof.enforcing, proof.proven) == (False, ())


def test_a_program_that_fences_writes_is_seen_to_do_so(tmp_path: Path) -> None:
    """All but its writable places read-only: it holds what is said of writing, and nothing of networks and keys."""
    skip_unless_host("user-namespaces")
    body = (
        'binds=(); for word; do case "$word" in -DWRITABLE_ROOT_*) path=${word#*=}; binds+=(--bind "$path" "$path");; '
        'esac; done\nfor word; do case "$word" in -DREAD_ONLY_*) path=${word#*=}; binds+=(--ro-bind "$path" "$path");; '
        f'esac; done\n{AFTER_THE_DASHES}exec bwrap --ro-bind / / --dev /dev "${{binds[@]}}" --unshare-user -- "$@"'
    )
    proof = prove(Policy(), program=stand_in(tmp_path, body))
    assert {"writes", "truncate", "read-only-inside", "project-config"} <= set(proof.proven), proof.reason
    assert {"keys", "hidden", "tcp", "udp", "temp"} <= {claim for claim, _ in proof.failed}
    assert not proof.enforcing
    assert not os.path.exists(tmp_path / "new")
