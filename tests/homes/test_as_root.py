"""Started by root: casual and bare are refused, strict runs as somebody else, and sudo's caller is who it is for."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import corral
from cases import case
from homes.dweller import Dweller
from hostfacts import skip_unless_host
from jail.test_root import OPEN, REFUSED, STILL_WORK
from jail.world import PYTHON, python
from run import interpreter_for, scratch_directory, throw_away_user

pytestmark = pytest.mark.jail

STATUS = "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb):' /proc/self/status"


@pytest.fixture
def root(request: pytest.FixtureRequest) -> Dweller:
    skip_unless_host("root-attacks")
    return Dweller(*request.getfixturevalue("fresh_home"))


@case("jai-73")
@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_modes_without_file_rules_are_not_for_root(root: Dweller, mode: str) -> None:
    said = root.is_refused("run", "-m", mode, "true", code=125)
    assert "does not run as root" in said
    assert "sudo -u USER" in said
    assert "-m strict" in said


@case("jai-73")
def test_without_a_mode_root_has_the_default_of_tools_and_is_told(root: Dweller) -> None:
    said, out = root.sees("run", "sh", "-c", "touch made; ! touch ../made 2>/dev/null && echo held")
    assert out == "held\n"
    assert "workspace-write (namespaces), not casual: mode casual does not run as root" in said


@case("jai-73", "jai-66")
def test_strict_of_roots_is_another_user_for_the_kernel_and_root_on_disk(root: Dweller) -> None:
    (root.project / "old").write_text("old")
    line = f"{STATUS}; stat -c %u . old ~; echo new > old; touch made ~/kept; mkdir dir; mv made dir/"
    done = root.says(line, mode="strict").splitlines()
    told = dict(line.split(":", 1) for line in done[:-3])
    assert set(told.pop("Uid").split()) == set(told.pop("Gid").split()) == {"60999"}
    assert told.pop("Groups").split() == []
    assert {int(value, 16) for value in told.values()} == {0}
    assert done[-3:] == ["60999"] * 3
    made = [root.project / "dir/made", root.project / "dir", root.project / "old", root.jail() / "home/kept"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(0, 0)}
    assert root.says("ls ~", mode="strict") == "kept\nwork\n"


@case("jai-73")
def test_strict_of_roots_cannot_change_the_host(root: Dweller) -> None:
    done = root.types("run", "-m", "strict", *python(OPEN, *REFUSED, *STILL_WORK))
    got = json.loads(done.stdout)
    assert {attempt: got[attempt] for attempt in STILL_WORK} == dict.fromkeys(STILL_WORK, "ok")
    assert [attempt for attempt in REFUSED if got[attempt] == "ok"] == []
    for line in ("mount -t tmpfs tmpfs /mnt", "touch /etc/made", "ls /root/.ssh", "chown 0 made", "kill 1"):
        assert root.runs(line, mode="strict").returncode != 0, line


@case("jai-68")
def test_strict_of_roots_does_not_reach_a_socket_in_run(root: Dweller) -> None:
    path = f"/run/corral-test-{os.getpid()}.sock"
    connect = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        try:
            os.chmod(path, 0o777)
            server.listen()
            assert subprocess.run([PYTHON, "-c", connect, path]).returncode == 0
            assert "No such file" in root.types("run", "-m", "strict", *python(connect, path)).stderr
        finally:
            os.unlink(path)


@case("jai-73")
@pytest.mark.parametrize("words", [[], ["-m", "casual"], ["-m", "bare"]])
def test_under_sudo_it_is_the_caller_of_sudo(words: list[str]) -> None:
    skip_unless_host("root-only")
    with scratch_directory() as scratch, throw_away_user(scratch / "home") as user:
        shutil.copytree(Path(corral.__file__).parent, scratch / "package/corral")
        project = scratch / "home/project"
        project.mkdir()
        os.chown(project, user.pw_uid, user.pw_gid)
        start = "import sys; from corral.cli import main; sys.exit(main())"
        line = f"{STATUS}; pwd; echo $HOME $USER; touch made ~/made; cat /etc/shadow 2>/dev/null"
        done = subprocess.run(
            [interpreter_for(user), "-c", start, "run", *words, "sh", "-c", line],
            cwd=project,
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": f"{scratch}/package",
                "HOME": "/root",
                "USER": "root",
                "SUDO_USER": user.pw_name,
                "SUDO_UID": str(user.pw_uid),
                "SUDO_GID": str(user.pw_gid),
            },
            capture_output=True,
            text=True,
        )
        *_, where, home, name = done.stdout.split()
        fields = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
        assert set(fields.pop("Uid").split()) == {str(user.pw_uid)}
        assert set(fields.pop("Gid").split()) == {str(user.pw_gid)}
        fields.pop("Groups")
        assert {int(value, 16) for value in fields.values()} == {0}
        assert (where, home, name) == (str(project), str(scratch / "home"), user.pw_name)
        assert (project / "made").stat().st_uid == user.pw_uid
        assert not (scratch / "home/made").exists()
        assert (scratch / "home/.local/state/corral").stat().st_uid == user.pw_uid


def test_strict_as_root_works_below_the_temporary_directories_too(root: Dweller) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        project = Path(name, "deep/project")
        project.mkdir(parents=True)
        assert root.says("id -u; touch made", mode="strict", cwd=project) == "60999\n"
        assert (project / "made").stat().st_uid == 0
