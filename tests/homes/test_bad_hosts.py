"""Hosts on which a copy of home, or a jail at all, cannot be made: each is named before anything is made or mounted,
with what can be done about it, and what can still be held is held."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cases import case
from homes.dweller import Dweller, after_mounting
from hostfacts import skip_unless_host
from jail.world import bystander
from proof.surroundings import without

pytestmark = pytest.mark.jail

MODES = ("casual", "bare", "strict")
OTHERWISE = "use -m bare or -m workspace-write"


@case("jai-34")
@pytest.mark.parametrize("mode", MODES)
def test_what_is_mounted_in_a_grant_is_seen(dweller: Dweller, mode: str) -> None:
    grant = dweller.world.base / "grant"
    (grant / "mounted").mkdir(parents=True)
    dweller.before = after_mounting('mount -t tmpfs tmpfs "$1"; echo there > "$1/f"', grant / "mounted")
    line = f"cd {grant}/mounted; cat f; echo x > new && cat new"
    assert dweller.says(line, "-d", str(grant), mode=mode) == "there\nx\n"
    line = f"cd {grant}/mounted; cat f; ! echo x 2>/dev/null > new"
    assert dweller.says(line, "-r", str(grant), mode=mode) == "there\n"


@case("jai-77")
def test_a_home_with_something_mounted_in_it_is_not_copied(dweller: Dweller) -> None:
    (dweller.home / "volume").mkdir()
    dweller.before = after_mounting('mount -t tmpfs tmpfs "$1"', dweller.home / "volume")
    said = dweller.is_refused("run", "-m", "casual", "true", code=125)
    assert said.endswith(f"something is mounted in it: {dweller.home}/volume; unmount it, or {OTHERWISE}")
    for mode in ("bare", "strict", "workspace-write"):
        assert dweller.says("touch f; echo ok", mode=mode) == "ok\n"
    said, out = dweller.sees("run", "echo", "ok")
    assert out == "ok\n"
    assert f"workspace-write (namespaces), not casual: {dweller.home} cannot be copied" in said
    (dweller.project / "mounted").mkdir()
    dweller.before = after_mounting('mount -t tmpfs tmpfs "$1"', dweller.project / "mounted")
    said = dweller.is_refused("run", "-m", "workspace-write", "--review", "true", code=125)
    assert said.endswith(f"{dweller.project}/mounted; unmount it, or run without --review")


@case("jai-75")
def test_a_home_on_an_overlay_is_copied_to_another_disk(dweller: Dweller) -> None:
    base = dweller.world.base
    for name in ("lower", "upper", "work", "container", "disk"):
        (base / name).mkdir()
    script = """
        cd "$1"
        mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work overlay container
        mkdir -p container/project
        echo old > container/file
        cd container/project
    """
    dweller.before = after_mounting(script, base)
    home = base / "container"
    dweller.variables.update(HOME=str(home), CORRAL_STATE_DIR=str(home / "state"))
    said = dweller.is_refused("run", "-m", "casual", "true", code=125)
    assert f"{home} is overlay, which cannot hold what is changed in a copy" in said
    assert said.endswith(f"--storage DIR (config: storage), or {OTHERWISE}")
    assert not (base / "upper/state").exists() or "jails" not in list_names(base / "upper/state")
    line = "cat ~/file; echo new > ~/file; touch made"
    assert dweller.says(line, "--storage", str(base / "disk")) == "old\n"
    assert dweller.says("cat ~/file; ls", "--storage", str(base / "disk")) == "new\nmade\n"
    dweller.variables["CORRAL_STATE_DIR"] = str(base / "disk/state")
    assert dweller.says("cat ~/file") == "old\n"
    assert dweller.says("ls -A ~", mode="bare") == "project\n"


def list_names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


@case("jai-76")
def test_storage_that_takes_no_attributes_is_named_before_anything_is_mounted(dweller: Dweller) -> None:
    disk = dweller.world.base / "disk"
    disk.mkdir()
    dweller.before = after_mounting('mount -t ramfs ramfs "$1"', disk)
    said = dweller.is_refused("run", "-m", "casual", "--storage", str(disk), "true", code=125)
    assert said.startswith(f"{disk}: {disk} is ramfs, which cannot hold what is changed in a copy")
    assert said.endswith(
        f"name a directory on a local disk with --storage DIR (config: storage), or {OTHERWISE}"
    )
    assert dweller.says("touch ~/f; echo ok", "--storage", str(disk), mode="bare") == "ok\n"
    assert dweller.says("echo ok") == "ok\n"


@case("jai-76")
def test_state_may_be_a_link_to_another_disk_and_is_hidden_there_too(dweller: Dweller) -> None:
    """The remedy where home is on a network."""
    disk = dweller.home / "disk"
    shutil.move(dweller.variables["CORRAL_STATE_DIR"], disk)
    link = dweller.home / ".local/state/corral"
    link.parent.mkdir(parents=True)
    link.symlink_to(disk)
    del dweller.variables["CORRAL_STATE_DIR"]
    dweller.says("echo x > ~/kept")
    assert [path.read_text() for path in disk.glob("jails/*/changes/kept")] == ["x\n"]
    assert dweller.says("cat ~/kept") == "x\n"
    for place in ("~/disk", "~/.local/state/corral/"):
        assert "No such file" in dweller.runs(f"ls -A {place}").stderr
    assert "Corral's own" in dweller.is_refused("run", "-m", "casual", "-d", str(disk), "true")


# ---- less than a whole kernel ----


@case("jai-70")
def test_strict_without_landlock_says_so_and_runs_only_where_less_is_accepted(dweller: Dweller) -> None:
    dweller.before = without("landlock")
    dweller.forgets()
    said = dweller.is_refused("run", "-m", "strict", "true", code=125)
    assert "no Landlock" in said
    assert "--degraded" in said
    assert dweller.says("ls -A ~", "--degraded", mode="strict") == "work\n"
    assert dweller.says("echo ok", mode="casual") == "ok\n"


@case("jai-79")
@pytest.mark.parametrize("name", ["plain", "odd \\ , : name"])
def test_a_kernel_that_takes_no_layers_by_descriptor_copies_all_the_same(dweller: Dweller, name: str) -> None:
    """Whole older kernels are booted by `make kernels`."""
    home = dweller.world.base / name
    (home / "project").mkdir(parents=True)
    (home / "file").write_text("old\n")
    dweller.variables.update(HOME=str(home), CORRAL_STATE_DIR=str(home / "state"))
    dweller.before = without("layers-by-descriptor")
    line = "cat ~/file; echo new > ~/file; mkdir ~/.ssh; rm -rf ~/gone"
    assert dweller.says(line, cwd=home / "project") == "old\n"
    dweller.before = ()
    assert dweller.says("cat ~/file; ls -Ad ~/.ssh", cwd=home / "project") == f"new\n{home}/.ssh\n"
    assert (home / "file").read_text() == "old\n"


@case("jai-78")
@pytest.mark.parametrize("mode", MODES)
def test_without_user_namespaces_a_mode_that_was_asked_for_is_refused_with_the_remedy(
    dweller: Dweller, mode: str
) -> None:
    dweller.before = without("namespaces")
    dweller.forgets()
    for more in ([], ["--degraded"]):
        said = dweller.is_refused("run", "-m", mode, *more, "touch", "made", code=125)
        assert said.startswith(f"this host cannot hold mode {mode}: namespaces: ")
        assert "Remedy: allow user namespaces" in said
    assert not (dweller.project / "made").exists()
    doctor = dweller.types("doctor", "-m", mode)
    assert doctor.returncode != 0
    assert "user namespaces" in doctor.stdout


@case("jai-78")
def test_without_user_namespaces_the_default_is_workspace_write_and_says_so(dweller: Dweller) -> None:
    dweller.before = without("namespaces")
    dweller.forgets()
    said, out = dweller.sees("run", "sh", "-c", "touch made; ! touch ../made 2>/dev/null && echo held")
    assert out == "held\n"
    assert (dweller.project / "made").exists()
    assert "workspace-write (landlock), not casual: " in said
    assert "network open" in said


@case("jai-78")
def test_in_a_chroot_the_remedy_is_to_leave_it(dweller: Dweller) -> None:
    root = dweller.world.base / "root"
    shown = [name for name in ("usr", "etc", "proc", "dev", "var", "tmp", "home") if Path("/", name).is_dir()]
    for name in shown:
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    script = f"""
        for name in {" ".join(shown)}; do mount --rbind /$name "$1/$name"; done
        exec unshare --root="$1" --wd="$2" -- sh -c 'shift 9; exec "$@"' sh "$@"
    """
    dweller.before = after_mounting(script, root, dweller.project)
    dweller.forgets()
    said = dweller.is_refused("run", "-m", "casual", "true", code=125)
    assert "outside this chroot" in said


# ---- containers ----


@case("jai-74")
@pytest.mark.parametrize("mode", MODES)
def test_root_of_a_container_has_a_jail_like_anybody(dweller: Dweller, mode: str) -> None:
    skip_unless_host("user-namespaces")
    dweller.before = ["unshare", "--user", "--map-root-user", "--mount"]
    line = "grep CapBnd /proc/self/status; touch made ~/made; mount -o remount,rw / 2>&- || echo no; touch /etc/x"
    done = dweller.runs(line, mode=mode)
    assert done.stdout == "CapBnd:\t0000000000000000\nno\n"
    assert "Read-only file system" in done.stderr
    assert (dweller.project / "made").exists()
    assert not (dweller.home / "made").exists()


@case("jai-74")
@pytest.mark.parametrize("mode", MODES)
def test_where_proc_is_masked_it_runs_and_says_what_is_not_held(dweller: Dweller, mode: str) -> None:
    dweller.before = after_mounting("mount -t tmpfs tmpfs /proc/sys")
    with bystander() as outside:
        line = (
            f"test -e /proc/self/exe && echo proc; cat /proc/{outside.pid}/environ /proc/{outside.pid}/mem;"
            f" ls /proc/{outside.pid}/root/ /proc/{outside.pid}/cwd/; kill {outside.pid}"
        )
        done = dweller.runs(line, mode=mode)
        assert done.stdout == "proc\n"
        assert outside.poll() is None
    assert "processes" in dweller.reads_json("explain", "--json", "-m", mode, "true")["not_covered"]
    said, _ = dweller.sees("run", "-m", mode, "true")
    assert "processes outside can be listed" in said
