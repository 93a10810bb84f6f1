"""What a command sees in a unit, and what it can do there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cases import case
from systemd.testbed import HOME, UID

if TYPE_CHECKING:
    from systemd.conftest import Bed

# path: what a write there must say, "" for a write that lands
WRITES = {
    "~/work/new": "",
    "~/new": "",
    "/tmp/new": "",
    "/var/tmp/new": "",
    "/dev/shm/new": "",
    "~/.claude/new": "",
    "/usr/new": "Read-only file system",
    "/etc/new": "Read-only file system",
    "/home/new": "Read-only file system",
    "~/.local/bin/new": "Read-only file system",
}


@case("hive-20")
def test_home_is_empty_but_for_what_is_bound_and_the_rest_is_read_only(bed: Bed) -> None:
    grants = [(f"{HOME}/.claude", "rw", "skip"), (f"{HOME}/.local/bin", "ro", "skip")]
    tries = "; ".join(f"echo x 2>/dev/null > {path} && echo ok || echo no" for path in WRITES)
    look = "ls -A ~; ls ~/.local; cat ~/.ssh/id ~/plain; stat -f -c %T ~"
    answer = bed.script(f"({look}); {tries}", policy={"grants": grants})
    lines = answer["stdout"].split("\n")
    assert lines[:5] == [".claude", ".local", "work", "bin", "tmpfs"]
    assert lines[5:-1] == ["no" if refused else "ok" for refused in WRITES.values()]
    assert answer["stderr"].count("No such file or directory") == 2
    says = bed.script("; ".join(f"echo x > {path}" for path in WRITES), policy={"grants": grants})["stderr"]
    assert says.count("Read-only file system") == len(list(filter(None, WRITES.values())))
    assert bed.sh("ls ~/work") == "new\n"
    assert bed.sh("cat ~/new /tmp/new 2>/dev/null || true") == ""
    bed.sh("rm ~/.claude/new")


@case("hive-21")
@pytest.mark.parametrize("place", ["/tmp/work", "/var/tmp/corral-bed-work"])
def test_temporary_directories_are_private_and_a_workspace_in_one_still_works(bed: Bed, place: str) -> None:
    bed.sh(f"rm -rf {place} && mkdir {place} && echo host > {place}/here && touch /tmp/of-the-host")
    try:
        answer = bed.script(f"ls -A /tmp /var/tmp; cat {place}/here; echo in > {place}/made; pwd", cwd=place)
        assert "of-the-host" not in answer["stdout"]
        assert answer["stdout"].endswith(f"host\n{place}\n")
        assert bed.sh(f"cat {place}/made") == "in\n"
    finally:
        bed.sh(f"rm -rf {place}")


@case("hive-9")
def test_the_key_is_there_when_it_is_given_and_its_name_is_nowhere_when_not(bed: Bed) -> None:
    show = ["bash", "-c", "env"]
    assert "ANTHROPIC_API_KEY=k-1\n" in bed.jail(show, api_key="k-1")["stdout"]
    policies: list[dict[str, object]] = [{}, {"environment": []}]
    for policy in policies:
        answer = bed.jail(show, variables={"ANTHROPIC_API_KEY": "of the caller"}, policy=policy)
        assert "ANTHROPIC" not in answer["stdout"]


@case("hive-10")
def test_further_variables_arrive_as_they_are_and_an_entry_without_a_value_is_left_out(bed: Bed) -> None:
    entries = ["FOO=bar", "BAZ=qux", "NOEQ", "EMPTY=", "EQ=a=b"]
    answer = bed.jail(["/usr/bin/env", "-0"], env=entries)
    found = dict(entry.split("=", 1) for entry in answer["stdout"].split("\0") if entry)
    assert {name: found.get(name) for name in ("FOO", "BAZ", "EMPTY", "EQ")} == {
        "FOO": "bar",
        "BAZ": "qux",
        "EMPTY": "",
        "EQ": "a=b",
    }
    assert "NOEQ" not in found


@case("hive-23")
def test_standard_input_is_nothing_unless_it_is_given(bed: Bed) -> None:
    assert bed.script("readlink /proc/self/fd/0; cat")["stdout"] == "/dev/null\n"
    given = "line\n" * 50_000
    assert bed.script("cat | wc -c", stdin=given)["stdout"].strip() == str(len(given))


@case("hive-26")
def test_an_optional_place_that_is_missing_is_left_out_and_a_needed_one_is_refused(bed: Bed) -> None:
    missing = f"{HOME}/not-there"
    answer = bed.script("ls -A ~", policy={"grants": [(missing, "ro", "skip")]})
    assert (answer["exit_code"], answer["stdout"]) == (0, "work\n")
    refused = bed.script("ls -A ~", policy={"grants": [(missing, "ro")]})
    assert refused["error"]
    assert missing in refused["text"]
    assert refused["started"] == []


@case("hive-27")
def test_files_of_others_are_shown_as_nobodys(bed: Bed) -> None:
    answer = bed.script("stat -c %u /usr ~/work")
    assert answer["stdout"] == f"65534\n{UID}\n"


def test_network_off_has_a_loopback_of_its_own_and_open_has_the_hosts(bed: Bed) -> None:
    show = ["readlink", "/proc/self/ns/net"]
    host = bed.sh("readlink /proc/self/ns/net")
    assert bed.jail(show, policy={"network": "open"})["stdout"] == host
    assert bed.jail(show)["stdout"] != host


def test_a_place_inside_a_writable_one_can_be_kept_read_only(bed: Bed) -> None:
    bed.sh("mkdir -p ~/work/keep && echo mine > ~/work/keep/file")
    grants = [(f"{HOME}/work/keep", "ro")]
    answer = bed.script("echo x > keep/file; echo y > beside; cat keep/file", policy={"grants": grants})
    assert answer["stdout"] == "mine\n"
    assert "Read-only file system" in answer["stderr"]
    assert bed.sh("cat ~/work/beside") == "y\n"


def test_what_the_policy_hides_is_gone(bed: Bed) -> None:
    bed.sh("mkdir -p ~/work/private && echo s > ~/work/private/file && echo o > ~/work/open")
    grants = [(f"{HOME}/work/private", "hide", "skip")]
    answer = bed.script("cat private/file; cat open", policy={"grants": grants})
    assert answer["stdout"] == "o\n"
    assert "denied" in answer["stderr"] or "No such file" in answer["stderr"]


def test_the_callers_own_limits_and_umask_hold_in_the_unit_too(bed: Bed) -> None:
    program = (
        "import os, resource, json; os.chdir('work'); os.umask(0o027); from corral import *;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (333, 444));"
        "jail = open_jail('systemd-run');"
        "print(jail.run_capture(RunOpts(None, ['bash', '-c', 'ulimit -Sn; ulimit -Hn; umask'])).stdout)"
    )
    assert bed.python(program).stdout.split() == ["333", "444", "0027"]


def test_a_limit_that_the_manager_cannot_hold_is_held_by_the_launcher(bed: Bed) -> None:
    grow = ["/usr/bin/python3", "-c", "a = bytearray(300 << 20); print(len(a))"]
    assert bed.jail(grow)["stdout"] == f"{300 << 20}\n"
    held = bed.jail(grow, policy={"limits": {"memory": 64 << 20}})
    assert held["exit_code"] != 0
    fork = "import os, time\nfor n in range(60):\n if os.fork() == 0: time.sleep(9)\nprint('all')"
    many = ["/usr/bin/python3", "-c", fork]
    assert bed.jail(many)["stdout"] == "all\n"
    bounded = bed.jail(many, policy={"limits": {"processes": 20}})
    assert "Resource temporarily unavailable" in bounded["stderr"]


def test_a_unit_has_all_that_its_proof_shows(bed: Bed) -> None:
    program = (
        "import json, os; os.chdir('work'); from corral import *;"
        "environment = LocalEnvironment('.', Policy.workspace_write(backend='systemd-run'));"
        "print(json.dumps([environment.posture.enforcing, environment.posture.not_covered])); environment.close()"
    )
    enforcing, not_covered = json.loads(bed.python(program).stdout)
    assert enforcing is True
    assert set(not_covered) <= {"processes", "pathname-sockets", "signals", "abstract-sockets", "terminals"}
