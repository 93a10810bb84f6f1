"""Root's jails: what they leave on the disk, and on the host's list of mounts."""

from __future__ import annotations

import shlex
import stat

import pytest

from homes.dweller import Dweller
from jail.world import PYTHON

pytestmark = pytest.mark.jail

# Every way to give a file the set-uid bit: by name, by descriptor, and while it is made.
SET_ID = """
import ctypes, os
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o6755, 0)
libc = ctypes.CDLL(None)
made = os.open("made", os.O_CREAT | os.O_RDWR, 0o755)
for number, attempt in enumerate((
    lambda: os.chmod("made", 0o4755),
    lambda: os.chmod("made", 0o2755),
    lambda: os.fchmod(made, 0o4755),
    lambda: os.chmod("made", 0o4755, dir_fd=os.open(".", os.O_RDONLY)),
    lambda: os.open("opened", os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    lambda: os.mknod("node", 0o104755),
    lambda: libc.syscall(437, -100, b"by-struct", how, 24) >= 0 or os.stat("by-struct"),
    lambda: libc.syscall(452, -100, b"made", 0o4755, 0) == 0 or os.stat("/nowhere"),
)):
    try:
        attempt()
        print("succeeded:", number)
    except OSError:
        pass
os.chmod("made", 0o1711)
"""


@pytest.mark.parametrize("mode", ["strict", "workspace-write"])
def test_no_set_uid_file_of_roots_is_left_behind(root: Dweller, mode: str) -> None:
    assert root.says(f"{PYTHON} -I -c {shlex.quote(SET_ID)}", mode=mode) == ""
    found = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in root.project.iterdir()}
    assert found == {"made": 0o1711}
    assert (root.project / "made").lstat().st_uid == 0


@pytest.mark.parametrize("mode", ["strict", "workspace-write"])
def test_a_jail_of_roots_mounts_nothing_on_a_host_that_shares_its_mounts(root: Dweller, mode: str) -> None:
    """As systemd does with all of them. Without a user namespace a copy of the mounts is a peer of the host's."""
    witness = root.world.base / "mounts"
    script = f'cp /proc/self/mountinfo {witness}; "$@"; cmp /proc/self/mountinfo {witness}'
    root.before = ["unshare", "--mount", "--propagation", "shared", "sh", "-c", script, "sh"]
    assert root.says("echo inside", mode=mode) == "inside\n"
