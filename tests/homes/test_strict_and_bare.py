"""Strict and bare: a home that starts empty and is kept, and in strict nothing else but what is on the list."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import case
from cli.typed import CORRAL
from homes.dweller import Dweller
from hostfacts import landlock_abi
from jail.world import SECRET, python

pytestmark = pytest.mark.jail

MODES = ("casual", "bare", "strict")
STATUS = "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"


@case("jai-66")
def test_strict_is_another_user_inside_and_you_on_disk(dweller: Dweller) -> None:
    line = "id -u; touch made; stat -c %u . made ~; id -un"
    uid, *owners, name = dweller.says(line, mode="strict").split()
    assert int(uid) != os.getuid()
    assert owners == [uid] * 3
    assert name == dweller.says("id -un", mode="casual").strip()
    assert (dweller.project / "made").stat().st_uid == os.getuid()


@case("jai-66", "jai-69")
@pytest.mark.parametrize("mode", ["strict", "bare"])
def test_a_private_home_starts_empty_and_is_kept(dweller: Dweller, mode: str) -> None:
    assert dweller.says("ls -A ~; touch ~/.kept", mode=mode) == "work\n"
    assert dweller.says("ls -A ~", mode=mode) == ".kept\nwork\n"
    assert not (dweller.home / ".kept").exists()
    assert (dweller.jail() / "home/.kept").stat().st_uid == os.getuid()
    assert dweller.says("ls -A ~", "-j", "other", mode=mode) == "work\n"


@case("jai-67")
def test_strict_shows_nothing_that_is_not_on_its_list(dweller: Dweller) -> None:
    private, public = dweller.world.base / "private", dweller.world.base / "public"
    private.write_text(SECRET)
    private.chmod(0o600)
    public.write_text(SECRET)
    public.chmod(0o644)
    for path in (private, public, dweller.home / ".profile", dweller.home / ".ssh/id_test", Path("/root")):
        assert "No such file" in dweller.runs(f"ls {path}", mode="strict").stderr
    assert dweller.says(f"cat {public}", "-r", str(public), mode="strict") == SECRET
    assert dweller.says("grep -c ^root: /etc/passwd", mode="strict") == "1\n"
    assert dweller.runs("cat /etc/shadow", mode="strict").returncode != 0


@contextlib.contextmanager
def listening(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        with socket.socket(socket.AF_UNIX) as witness:
            witness.connect(address)
        try:
            yield
        finally:
            if address.startswith("/"):
                os.unlink(address)


CONNECT = "import socket,sys; a=sys.argv[1].replace('@','\\0'); socket.socket(socket.AF_UNIX).connect(a)"


@case("jai-68")
@pytest.mark.parametrize("mode", MODES)
def test_sockets_of_the_host_are_out_of_reach(dweller: Dweller, mode: str) -> None:
    assert dweller.says("ls -A /run; ls -A /run/user 2>/dev/null || true", mode=mode) == "corral\n"
    name = f"@corral-{secrets.token_hex(4)}"
    if landlock_abi() >= 6:
        with listening(name.replace("@", "\0")):
            done = dweller.types("run", "-m", mode, *python(CONNECT, name))
            assert "Operation not permitted" in done.stderr
    inside = f"/tmp/corral-{secrets.token_hex(4)}"
    with listening(inside):
        done = dweller.types("run", "-m", mode, *python(CONNECT, inside))
        assert "No such file" in done.stderr


@case("jai-69")
def test_bare_is_you_with_all_readable_but_home(dweller: Dweller) -> None:
    assert dweller.says("id -u", mode="bare") == f"{os.getuid()}\n"
    neighbour = dweller.world.base / "neighbour"
    neighbour.write_text("text")
    assert dweller.says(f"cat {neighbour}", mode="bare") == "text"
    assert dweller.runs("cat ~/.profile", mode="bare").returncode != 0
    assert dweller.runs(f"echo x >> {neighbour}", mode="bare").returncode != 0
    said, _ = dweller.sees("run", "-m", "bare", "--hide", "outside", "true")
    assert f"{dweller.home}/outside needs no hiding in bare" in said


# ---- from inside ----

TAKE_DOWN = """
for place in $(cut -d' ' -f5 /proc/self/mountinfo | sort -u); do
    umount -l "$place" 2>/dev/null && echo "unmounted $place"
    test -w "$place" || { mount -o remount,bind,rw "$place" 2>/dev/null && test -w "$place" && echo "opened $place"; }
done
touch /etc/made /usr/made 2>/dev/null && echo "wrote to the system"
echo tried
"""


@case("jai-71")
@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_a_namespace_made_inside_takes_no_mount_down(dweller: Dweller, mode: str) -> None:
    (dweller.project / "try.sh").write_text(TAKE_DOWN)
    assert dweller.says("unshare -Urm sh try.sh", mode=mode) == "tried\n"


@case("jai-71")
@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_another_sandbox_nests(dweller: Dweller, mode: str) -> None:
    bwrap = "bwrap --ro-bind / / --dev /dev --proc /proc --bind $PWD $PWD --unshare-all"
    assert dweller.says(f"{bwrap} sh -c 'echo x > made; echo nested'", mode=mode) == "nested\n"
    assert (dweller.project / "made").exists()
    assert dweller.runs("bwrap --bind / / touch /etc/made ~/.ssh/made", mode=mode).returncode != 0
    assert not (dweller.home / ".ssh/made").exists()


@case("jai-71")
@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_a_jail_of_ours_nests_and_a_copy_of_the_copy_is_refused(dweller: Dweller, mode: str) -> None:
    corral = f"{CORRAL} run -r {sys.prefix}"
    line = f"{corral} -m bare sh -c 'touch made; ls -A ~; ! touch /etc/made 2>/dev/null && echo held'"
    assert dweller.says(line, "-r", sys.prefix, mode=mode) == "work\nheld\n"
    assert (dweller.project / "made").exists()
    done = dweller.runs(f"{corral} -m casual true", "-r", sys.prefix, mode=mode)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1)


@pytest.mark.parametrize("mode", ["casual", "bare"])
def test_a_write_jail_nests_and_renames_between_directories_work_in_it(dweller: Dweller, mode: str) -> None:
    """The Landlock layer around it has no rules on files, and would forbid them to a layer that has."""
    moves = "mkdir a b; touch a/name; mv a/name b/; ln b/name a/; ls a b"
    line = f"{CORRAL} run -r {sys.prefix} -m workspace-write sh -c '{moves}; touch ~/x 2>/dev/null; true'"
    held = "test -e ~/x || echo held"
    assert dweller.says(f"{line}; {held}", "-r", sys.prefix, mode=mode) == "a:\nname\n\nb:\nname\nheld\n"


@case("jai-71")
def test_strict_makes_no_namespaces(dweller: Dweller) -> None:
    assert dweller.runs("unshare -Urm true", mode="strict").returncode != 0


@case("jai-72")
@pytest.mark.parametrize("mode", MODES)
def test_there_is_no_privilege_to_be_had(dweller: Dweller, mode: str) -> None:
    told = dict(line.split(":\t") for line in dweller.says(STATUS, mode=mode).splitlines())
    assert told.pop("NoNewPrivs") == "1"
    assert told.pop("Seccomp") == "2"
    assert set(told) == {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    assert {int(value, 16) for value in told.values()} == {0}
    assert dweller.runs("su -c id root < /dev/null", mode=mode).returncode != 0
    assert "uid=0" not in dweller.runs("su -c id root < /dev/null", mode=mode).stdout


# ---- before anything runs ----


@pytest.mark.parametrize(("mode", "kind"), [("casual", "copy"), ("bare", "private"), ("strict", "private")])
def test_explain_tells_of_the_home(dweller: Dweller, mode: str, kind: str) -> None:
    told = dweller.reads_json("explain", "--json", "-m", mode, "-j", "one", "true")["home"]
    assert (told["kind"], told["jail"], told["path"]) == (kind, "one", str(dweller.home))
    assert (told["uid"] == str(os.getuid())) is (mode != "strict")
    assert Path(told["kept"]).parent == dweller.jail("one")
    text = dweller.reads("explain", "-m", mode, "-j", "one", "true")
    assert f"home         {dweller.home}, " in text
    assert f"jail one, kept in {told['kept']}" in text
    assert dweller.reads_json("explain", "--json", "-m", "workspace-write", "true")["home"] == {
        "kind": "real"
    }
    assert dweller.reads("jails").startswith("no jails yet")
