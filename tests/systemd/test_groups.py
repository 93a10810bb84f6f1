"""A group of a manager's is not ours alone unless it is marked so, as the system's manager marks what it delegates."""

from __future__ import annotations

import subprocess

from systemd.conftest import Bed

LOOK = """
import os
from corral.jail import delegation
own = delegation._own_directory()
print(own, delegation._is_managed(own))
os.setxattr(own, "user.delegate", b"1")
print(own, delegation._is_managed(own))
"""


def in_a_unit(bed: Bed, program: str) -> subprocess.CompletedProcess[str]:
    unit = ("systemd-run", "--user", "--wait", "--pipe", "--quiet", f"--setenv=PYTHONPATH={bed.python_path}")
    return bed.testbed.run(*unit, "/usr/bin/python3", "-B", "-c", program)


def test_only_a_group_that_is_marked_as_delegated_is_ours_alone(bed: Bed) -> None:
    """The user's own manager marks none (252), so that the sum is kept beside a group in one of its slices."""
    done = in_a_unit(bed, LOOK)
    assert done.returncode == 0, done.stderr
    plain, marked = (line.split() for line in done.stdout.splitlines())
    assert plain[0].startswith("/sys/fs/cgroup/user/app.slice/")
    assert plain[0].endswith(".service")
    assert (plain[1], marked[1]) == ("True", "False")


def test_a_unit_has_a_group_beside_it_where_the_manager_has_the_controller(bed: Bed) -> None:
    """All its groups are ours to write; what they can count is the host's to give."""
    said = in_a_unit(
        bed, "from corral.jail import delegation; print(delegation.outlook().group or 'none')"
    ).stdout.strip()
    controllers = bed.sh("cat /sys/fs/cgroup/user/cgroup.controllers").split()
    assert said == ("beside" if "memory" in controllers else "none")
