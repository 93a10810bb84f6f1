"""nonewprivs, nocaps, seccomp: none to keep, none to gain, and calls that are refused."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from corral.jail.kernel import SYSCALLS
from hostfacts import skip_unless_host
from launcher.driver import Words, launch, namespaces, python, refused_step

pytestmark = pytest.mark.jail

EPERM, EACCES, EINVAL = 1, 13, 22
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


def status(plan: Words, *names: str) -> dict[str, str]:
    """Lines of /proc/self/status of a command run by the plan."""
    done = launch(plan, ["cat", "/proc/self/status"])
    assert done.returncode == 0, done
    lines = dict(line.split(":\t", 1) for line in done.stdout.decode().splitlines())
    return {name: lines[name] for name in names}


def capabilities(plan: Words) -> dict[str, int]:
    return {name: int(value, 16) for name, value in status(plan, *SETS).items()}


# ---- no_new_privs ----


@pytest.mark.parametrize(("plan", "expected"), [([], "0"), (["nonewprivs"], "1")])
def test_no_new_privileges_is_set_when_asked_for(plan: list[str], expected: str) -> None:
    assert status(plan, "NoNewPrivs") == {"NoNewPrivs": expected}
    assert status(["supervise", 0, *plan], "NoNewPrivs") == {"NoNewPrivs": expected}


# ---- capabilities ----


def test_in_a_user_namespace_all_five_sets_are_empty() -> None:
    skip_unless_host("user-namespaces")
    before = capabilities([*namespaces("mnt"), "init"])
    assert before["CapBnd"] != 0
    assert capabilities([*namespaces("mnt"), "init", "nocaps"]) == dict.fromkeys(SETS, 0)


def test_as_uid_0_in_a_user_namespace_all_five_sets_are_empty_too() -> None:
    skip_unless_host("user-namespaces")
    as_root = [*namespaces("mnt")[:2], "ids", 0, os.getuid(), 0, os.getgid(), "init"]
    assert capabilities(as_root)["CapEff"] != 0
    assert capabilities([*as_root, "nocaps"]) == dict.fromkeys(SETS, 0)


def test_without_a_namespace_everything_that_can_be_emptied_is() -> None:
    held = capabilities(["supervise", 0, "nonewprivs", "nocaps"])
    assert {name: held[name] for name in SETS if name != "CapBnd"} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapAmb"), 0
    )
    if os.geteuid() == 0:
        assert capabilities([])["CapEff"] != 0
        assert held["CapBnd"] == 0
    else:  # only who holds CAP_SETPCAP can empty it; no_new_privs makes it useless
        assert held["CapBnd"] == capabilities([])["CapBnd"]


def test_a_root_without_capabilities_cannot_do_what_root_can(tmp_path: Path) -> None:
    """The identity stays and owns its files; only the privileges are gone."""
    skip_unless_host("user-namespaces")
    attempt = [
        "sh",
        "-c",
        f"chown 12 {tmp_path}/mine && exit 3; mount -t tmpfs t {tmp_path} && exit 4; echo mine > {tmp_path}/mine",
    ]
    (tmp_path / "mine").touch()
    plan = [*namespaces("mnt")[:2], "ids", 0, os.getuid(), 0, os.getgid(), "init", "nocaps"]
    assert launch(plan, attempt).returncode == 0
    assert (tmp_path / "mine").read_text() == "mine\n"
    assert launch(plan[:-1], ["mount", "-t", "tmpfs", "t", tmp_path]).returncode == 0


# ---- seccomp ----

LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_hex(*instructions: tuple[int, int, int, int]) -> str:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions).hex()


def refusing(call: str, action: int) -> str:
    number = SYSCALLS[call][COLUMN]
    return filter_hex(
        (LOAD_NUMBER, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, action), (RETURN, 0, 0, ALLOW)
    )


ALLOW_ALL = filter_hex((RETURN, 0, 0, ALLOW))
MAKE_SOCKET = python("import socket; socket.socketpair(); socket.socket(); print('made')")


def test_a_filter_refuses_its_call_and_no_other() -> None:
    assert launch(["nonewprivs", "seccomp", ALLOW_ALL], MAKE_SOCKET).stdout == b"made\n"
    done = launch(["nonewprivs", "seccomp", refusing("socket", ERRNO | 77)], MAKE_SOCKET)
    assert b"[Errno 77]" in done.stderr
    assert b"socketpair" not in done.stderr


def test_a_filter_that_kills_is_seen_as_a_signal() -> None:
    done = launch(["supervise", 0, "nonewprivs", "seccomp", refusing("socket", KILL)], MAKE_SOCKET)
    assert done.returncode == -31


def test_filters_add_up() -> None:
    plan = [
        "nonewprivs",
        "seccomp",
        refusing("unshare", ERRNO | 78),
        "seccomp",
        refusing("socket", ERRNO | 77),
    ]
    assert b"[Errno 77]" in launch(plan, MAKE_SOCKET).stderr
    unshare = python(
        "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.unshare(0), ctypes.get_errno())"
    )
    assert launch(plan, unshare).stdout == b"-1 78\n"


@pytest.mark.parametrize(
    "word",
    [
        "",
        ALLOW_ALL[:-1],
        ALLOW_ALL[:-2],
        ALLOW_ALL + "0",
        ALLOW_ALL.upper(),
        "zz" + ALLOW_ALL[2:],
        ALLOW_ALL[:-1] + "\n",
        "0x" + ALLOW_ALL[2:],
        " " * 16,
        ALLOW_ALL * 4097,
    ],
    ids=[
        "empty",
        "odd",
        "half",
        "longer",
        "upper-case",
        "letters",
        "newline",
        "prefix",
        "spaces",
        "too-long",
    ],
)
def test_hex_that_is_no_program_is_refused(word: str, tmp_path: Path) -> None:
    done = launch(["nonewprivs", "seccomp", word], ["touch", tmp_path / "witness"])
    assert refused_step(done) == (1, EINVAL)
    assert not (tmp_path / "witness").exists()


def test_a_program_the_kernel_does_not_take_is_refused(tmp_path: Path) -> None:
    jumps_out = filter_hex((JUMP_IF_EQUAL, 200, 200, 0), (RETURN, 0, 0, ALLOW))
    done = launch(["nonewprivs", "seccomp", jumps_out], ["touch", tmp_path / "witness"])
    assert refused_step(done) == (1, EINVAL)
    assert not (tmp_path / "witness").exists()


def test_the_longest_program_the_kernel_takes_is_taken() -> None:
    longest = filter_hex(*[(LOAD_NUMBER, 0, 0, 0)] * 4095, (RETURN, 0, 0, ALLOW))
    assert launch(["nonewprivs", "seccomp", longest], ["true"]).returncode == 0


def test_without_no_new_privileges_an_ordinary_user_gets_no_filter() -> None:
    done = launch(["seccomp", ALLOW_ALL], ["true"])
    if os.geteuid() == 0:
        assert done.returncode == 0
    else:
        assert refused_step(done) == (0, EACCES)
