"""A jail of root's: kernel uid 0 owns the host's devices and password files, capabilities or not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostfacts import skip_unless_host
from jail.world import World, answers, new_mark, python

pytestmark = pytest.mark.jail

# Opened, never written: an attack that gets through must do no harm. A file that is hidden by an empty one is empty.
OPEN = """
import errno, json, os, stat, sys
def answer(path, flags):
    try:
        fd = os.open(path, flags)
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        return "empty" if flags & 3 == os.O_RDONLY and is_file and not os.read(fd, 1) else "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
how = {"r": os.O_RDONLY, "w": os.O_WRONLY}
print(json.dumps({a: answer(a[2:], how[a[0]] | os.O_NONBLOCK | os.O_NOCTTY) for a in sys.argv[1:]}))
"""

REFUSED = (
    *("w:/proc/sys/kernel/core_pattern", "w:/proc/sys/kernel/modprobe", "w:/proc/sysrq-trigger"),
    *("w:/proc/sys/kernel/hostname", "w:/proc/irq/default_smp_affinity", "w:/proc/sys/vm/drop_caches"),
    *("w:/dev/kmsg", "r:/dev/kmsg", "r:/dev/mem", "r:/dev/port", "w:/dev/loop-control", "r:/dev/fuse"),
    *("r:/etc/shadow", "r:/etc/gshadow", "r:/etc/shadow-", "w:/etc/passwd", "r:/proc/kcore", "r:/proc/kmsg"),
    *("w:/sys/kernel/uevent_helper", "w:/sys/power/state"),
)
STILL_WORK = (
    *("r:/proc/sys/kernel/core_pattern", "r:/proc/cpuinfo", "r:/etc/passwd", "r:/etc/group", "r:/bin/sh"),
    *("w:/dev/null", "r:/dev/zero", "r:/dev/urandom", "w:/dev/full"),
)


def raw_disks() -> list[str]:
    return [f"r:{path}" for path in sorted(Path("/dev").iterdir()) if path.is_block_device()]


def test_root_inside_a_jail_opens_nothing_that_is_the_hosts(backend: str, world: World) -> None:
    skip_unless_host("root-attacks")
    attempts = (*REFUSED, *raw_disks(), *STILL_WORK)
    with world.environment(backend, network="open") as environment:
        got = answers(environment.plan(python(OPEN, *attempts)))
    assert {attempt: got[attempt] for attempt in STILL_WORK} == dict.fromkeys(STILL_WORK, "ok")
    assert [attempt for attempt in attempts if got[attempt] == "ok" and attempt not in STILL_WORK] == []


def test_every_capability_set_of_a_command_is_empty(backend: str, world: World) -> None:
    with world.environment(backend) as environment:
        status = environment.run(["cat", "/proc/self/status"]).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    sets = ("CapInh", "CapPrm", "CapEff", "CapAmb") + (("CapBnd",) if os.getuid() == 0 else ())
    assert {name: int(fields[name], 16) for name in sets} == dict.fromkeys(sets, 0)
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_root_cannot_make_a_device_node_of_a_disk(backend: str, world: World) -> None:
    skip_unless_host("root-attacks")
    make = "import os, stat; os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))"
    with world.environment(backend) as environment:
        assert "PermissionError" in environment.run(python(make)).stderr
        assert environment.run(["mkfifo", "pipe"]).exit_code == 0
    assert os.listdir(world.workspace) == ["pipe"]


def test_files_that_come_and_go_in_etc_neither_break_a_run_nor_stay_unseen(
    backend: str, world: World
) -> None:
    """Lock files of useradd, of packages: root's jail names what it may read there, entry by entry."""
    skip_unless_host("root-attacks")
    first, second = Path("/etc", new_mark()), Path("/etc", new_mark())
    try:
        first.write_text("first")
        with world.environment(backend) as environment:
            assert environment.run(["cat", str(first)]).stdout == "first"
            first.unlink()
            assert environment.run(["true"]).ok
            second.write_text("second")
            assert environment.run(["cat", str(second)]).stdout == "second"
    finally:
        for path in (first, second):
            path.unlink(missing_ok=True)


def test_a_device_node_that_lies_in_the_workspace_is_no_device_inside(world: World) -> None:
    """Made on the host before, or unpacked from an archive; the namespaces tier mounts the workspace nodev."""
    skip_unless_host("root-attacks")
    os.mknod(world.workspace / "zero", 0o20666, os.makedev(1, 5))
    with world.environment("namespaces") as environment:
        assert environment.run(["head", "-c1", "zero"]).exit_code != 0
        assert environment.run(["head", "-c1", "/dev/zero"]).exit_code == 0
