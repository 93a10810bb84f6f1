"""Casual and bare leave user namespaces open. Root in one of those takes nothing off that the jail has put on."""

from __future__ import annotations

import shlex

import pytest

from homes.dweller import Dweller
from jail.world import PYTHON, SECRET

pytestmark = pytest.mark.jail

ATTACK = """
import ctypes, os, sys
home, covered = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
assert libc.unshare(0x10020000) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    open(f"/proc/self/{name}", "w").write(text)
points = [line.split()[4] for line in open("/proc/self/mountinfo")]
for point in reversed(points):
    for flags in (0, 2):
        if libc.umount2(point.encode(), flags) == 0:
            print("unmounted", point)
for point in points:
    if libc.mount(b"none", point.encode(), None, 0x1020, None) == 0 and os.access(point, os.W_OK):
        try:
            os.close(os.open(f"{point}/written", os.O_CREAT | os.O_WRONLY))
            print("made writable", point)
        except OSError:
            pass
os.mkdir("/tmp/under")
for top in ("/", os.path.dirname(home), home, os.path.dirname(covered)):
    if libc.mount(top.encode(), b"/tmp/under", None, 0x1000, None) == 0:
        print("without what is mounted in it", top)
    if libc.mount(b"o", b"/tmp/under", b"overlay", 0, f"lowerdir={top}:/opt".encode()) == 0:
        print("as a layer", top)
for path in (f"{home}/.ssh/id_test", covered, "/proc/1/root/etc/passwd", "/proc/1/environ"):
    try:
        print(*["read"] * bool(text := open(path).read()), text, end="")
    except OSError:
        pass
os.mkdir("/tmp/own")
assert libc.mount(b"t", b"/tmp/own", b"tmpfs", 0, None) == 0
print("mounts of its own")
"""


@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_nothing_is_unmounted_made_writable_or_looked_under(dweller: Dweller, mode: str) -> None:
    covered = dweller.project / "secret"
    covered.write_text(SECRET)
    line = f"{PYTHON} -I -c {shlex.quote(ATTACK)} {dweller.home} {covered}"
    assert dweller.says(line, "--hide", "./secret", mode=mode) == "mounts of its own\n"
