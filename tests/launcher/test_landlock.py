"""ruleset, allow, port, restrict: rules from descriptors."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from corral.jail import kernel
from hostfacts import landlock_abi
from launcher.driver import REGULAR, Words, launch, opened, python, refused_step

pytestmark = pytest.mark.jail

EPERM, E2BIG, EBADF, ENOMSG, EINVAL = 1, 7, 9, 42, 22
ABI = landlock_abi()
SIZE = kernel.ruleset_size(max(ABI, 1))
ALL = kernel.all_fs_rights(ABI)
READ = kernel.fs_rights(kernel.READ, ABI)
WRITE = kernel.fs_rights(kernel.WRITE, ABI)
BIND, CONNECT = 1, 2
SH = ["sh", "-c"]


def fenced(*rules: object, net: int = 0, scoped: int = 0) -> list[object]:
    """Everything is readable, /dev/null writable, and what the rules add."""
    start = [*opened(900, "/"), *opened(901, "/dev/null", stat.S_IFCHR), "nonewprivs"]
    own = ["allow", 900, READ, "allow", 901, kernel.fs_rights(kernel.DEVICE, ABI, on_file=True)]
    return [*start, "ruleset", ALL, net, scoped, SIZE, *own, *rules, "restrict"]


def before(plan: Words, *steps: object) -> list[object]:
    return [*steps, *plan]


def test_only_what_is_allowed_can_be_written(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    script = f"echo x > {tmp_path}/in/made; echo x > {tmp_path}/out/made; cat {tmp_path}/in/made; echo y > /dev/null"
    plan = before(fenced("allow", 0, WRITE), *opened(0, tmp_path / "in"))
    done = launch(plan, [*SH, script])
    assert (done.returncode, done.stdout) == (0, b"x\n")
    assert b"out/made: Permission denied" in done.stderr
    assert not (tmp_path / "out" / "made").exists()


def test_a_rule_on_one_file_allows_that_file(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    rights = kernel.fs_rights(kernel.WRITE, ABI, on_file=True)
    plan = before(fenced("allow", 0, rights), *opened(0, tmp_path / "one", REGULAR))
    done = launch(plan, [*SH, f"echo 1 > {tmp_path}/one; echo 2 > {tmp_path}/two"])
    assert b"two: Permission denied" in done.stderr
    assert ((tmp_path / "one").read_text(), (tmp_path / "two").read_text()) == ("1\n", "")


def test_a_right_of_directories_on_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    plan = before(fenced("allow", 0, WRITE), *opened(0, tmp_path / "one", REGULAR))
    assert refused_step(launch(plan, ["touch", tmp_path / "witness"]))[1] == EINVAL
    assert not (tmp_path / "witness").exists()


def test_a_rule_holds_for_the_directory_that_was_opened_and_not_for_its_name(tmp_path: Path) -> None:
    """The name is given to another directory after the slot was opened; here by the plan itself."""
    (tmp_path / "in").mkdir()
    fd = os.open(tmp_path / "in", os.O_PATH)
    try:
        (tmp_path / "in").rename(tmp_path / "moved")
        (tmp_path / "in").mkdir()
        plan = before(fenced("allow", 0, WRITE), "fd", 0, fd)
        done = launch(plan, [*SH, f"touch {tmp_path}/moved/made; touch {tmp_path}/in/made"], pass_fds=(fd,))
    finally:
        os.close(fd)
    assert done.returncode != 0
    assert (tmp_path / "moved" / "made").exists()
    assert not (tmp_path / "in" / "made").exists()


def test_a_ruleset_that_is_not_entered_refuses_nothing(tmp_path: Path) -> None:
    plan = before(fenced("allow", 0, WRITE), *opened(0, tmp_path))[:-1]
    assert launch(plan, ["touch", "/dev/null", tmp_path / "made"]).returncode == 0


def test_rules_and_the_entry_need_a_ruleset(tmp_path: Path) -> None:
    for steps in (["allow", 0, READ], ["port", 80, BIND], ["restrict"]):
        done = launch([*opened(0, "/"), "nonewprivs", *steps], ["touch", tmp_path / "witness"])
        assert refused_step(done)[1] in (EBADF, EINVAL), steps
    assert not (tmp_path / "witness").exists()


def test_an_empty_ruleset_and_one_of_a_wrong_size_are_refused() -> None:
    assert refused_step(launch(["ruleset", 0, 0, 0, SIZE], ["true"])) == (0, ENOMSG)
    assert refused_step(launch(["ruleset", ALL, 0, 0, 4], ["true"])) == (0, EINVAL)
    assert refused_step(launch(["ruleset", ALL, 0, 0, 1 << 20], ["true"])) == (0, E2BIG)


def test_rights_the_kernel_does_not_know_are_refused() -> None:
    assert refused_step(launch(["ruleset", 1 << 60, 0, 0, SIZE], ["true"])) == (0, EINVAL)
    plan = before(fenced("allow", 0, 1 << 60), *opened(0, "/"))
    assert refused_step(launch(plan, ["true"]))[1] == EINVAL


def test_an_ordinary_user_needs_no_new_privileges_to_enter() -> None:
    done = launch(["ruleset", ALL, 0, 0, SIZE, *opened(0, "/"), "allow", 0, ALL, "restrict"], ["true"])
    if os.geteuid() == 0:
        assert done.returncode == 0
    else:
        assert refused_step(done) == (3, EPERM)


def test_domains_nest_and_only_tighten(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    outer = before(fenced("allow", 0, WRITE), *opened(0, tmp_path / "in"))
    inner = ["ruleset", ALL, 0, 0, SIZE, "allow", 900, ALL, "restrict"]
    done = launch([*outer, *inner], [*SH, f"touch {tmp_path}/in/made; touch {tmp_path}/out"])
    assert (tmp_path / "in" / "made").exists()
    assert done.returncode != 0
    assert not (tmp_path / "out").exists()


def test_layers_end_with_a_refusal_and_nothing_runs(tmp_path: Path) -> None:
    layer = ["ruleset", ALL, 0, 0, SIZE, "restrict"]
    done = launch(["nonewprivs", *layer * 17], ["touch", tmp_path / "witness"])
    assert refused_step(done)[1] == E2BIG
    assert not (tmp_path / "witness").exists()


def test_a_port_is_allowed_by_its_number() -> None:
    assert ABI >= 4, "rules on ports came with ABI 4"
    with socket.create_server(("127.0.0.1", 0)) as allowed, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [server.getsockname()[1] for server in (allowed, other)]
        connect = python(
            "import socket, sys\n"
            "for port in sys.argv[1:]:\n"
            "    try: socket.create_connection(('127.0.0.1', int(port)), timeout=5); print('connected')\n"
            "    except OSError as error: print(type(error).__name__)",
            *map(str, ports),
        )
        done = launch(fenced("port", ports[0], CONNECT, net=BIND | CONNECT), connect)
        assert done.stdout.split() == [b"connected", b"PermissionError"], done
        assert launch(fenced(), connect).stdout.split() == [b"connected", b"connected"]


def test_a_port_without_a_net_ruleset_or_out_of_range_is_refused() -> None:
    assert refused_step(launch(fenced("port", 80, CONNECT), ["true"]))[1] == EINVAL
    assert refused_step(launch(fenced("port", 1 << 16, CONNECT, net=BIND | CONNECT), ["true"]))[1] == EINVAL


def test_a_scope_keeps_signals_inside() -> None:
    assert ABI >= 6, "scopes came with ABI 6"
    kill = python("import os, sys; os.kill(os.getpid(), 0); os.kill(int(sys.argv[1]), 0)", str(os.getpid()))
    assert launch(fenced(), kill).returncode == 0
    done = launch(fenced(scoped=kernel.SCOPE_SIGNAL), kill)
    assert done.stderr.count(b"PermissionError") == 1, done


# ---- made once, entered by many ----


def handed(*plan: object) -> int:
    """A ruleset that the launcher made and gave to us."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = launch([*plan, "hand"], ["true"], stdout=theirs, stderr=None, capture_output=False)
        assert done.returncode == 0
        content, (fd,), _, _ = socket.recv_fds(ours, 16, 1)
    assert content == b"\0"
    return fd


def test_rules_that_were_handed_over_hold_in_every_run_that_takes_them(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    ruleset = handed(*before(fenced("allow", 0, WRITE), *opened(0, tmp_path / "in"))[:-1])
    (tmp_path / "in").rename(tmp_path / "moved")
    (tmp_path / "in").mkdir()
    try:
        take = ["fd", 5, ruleset, "nonewprivs", "rules", 5]
        for _ in range(2):
            line = f"echo x > {tmp_path}/moved/x && ! echo x > {tmp_path}/in/x && ! echo x > {tmp_path}/out/x"
            done = launch([*take, "restrict"], [*SH, line], pass_fds=(ruleset,))
            assert done.returncode == 0, done.stderr
            assert launch(take, [*SH, f"echo x > {tmp_path}/out/x"], pass_fds=(ruleset,)).returncode == 0
            (tmp_path / "out/x").unlink()
    finally:
        os.close(ruleset)


def test_what_is_no_ruleset_is_refused(tmp_path: Path) -> None:
    plan = ["nonewprivs", *opened(0, tmp_path), "rules", 0, "restrict"]
    assert refused_step(launch(plan, ["true"])) == (3, EBADF)
    assert refused_step(launch(["hand"], ["true"])) == (0, EBADF)
    made = ["ruleset", ALL, 0, 0, SIZE]
    step, _ = refused_step(launch([*made, "hand"], ["true"]))  # our output is a pipe
    assert step == 1
