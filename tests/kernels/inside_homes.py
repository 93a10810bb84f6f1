"""Runs on the other kernel: the modes with a home of their own, and reviews. Every run is a sentence and whether it was
true, as in inside.py."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral import LocalEnvironment, NotEnforceable, Policy

CORRAL = [sys.executable, "-c", "import sys; from corral.cli import main; sys.exit(main())"]
LOCAL_DISK = "/var/tmp"
FAR_HOME = "corral.far_home"  # on the kernel's command line: home is on NFS


class Household:
    """A home with a key, a file, a directory and a project, and what lies beside it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = Path(tempfile.mkdtemp(prefix="project-", dir=home))
        self.storage = tempfile.mkdtemp(prefix="corral-", dir=LOCAL_DISK)
        self.jail = self.project.name
        (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        (home / ".ssh/id_ed25519").write_text("secret\n")
        (home / ".profile").write_text("plain\n")
        (home / "kept").mkdir(exist_ok=True)
        (home / "kept/old").write_text("old\n")

    def remove(self) -> None:
        for top in (self.project, self.storage):
            subprocess.run(
                ["chmod", "-R", "u+rwx", str(top)], check=True
            )  # overlayfs leaves a directory without rights
            shutil.rmtree(top)

    def environment(self, mode: str, **how: Any) -> LocalEnvironment:
        how.setdefault("jail", self.jail)
        return LocalEnvironment(self.project, Policy(mode=mode, **how))  # type: ignore[arg-type]

    def shell(self, line: str, mode: str, **how: Any) -> Any:
        with self.environment(mode, **how) as env:
            return env.shell(line, timeout=60)

    def says(self, line: str, mode: str, **how: Any) -> str:
        done = self.shell(line, mode, **how)
        assert done.ok, done
        return str(done.stdout)

    def types(self, *words: str) -> tuple[int, str]:
        """At a terminal, as far as the messages go: the status, and all that was said."""
        theirs, ours = pty.openpty()
        try:
            done = subprocess.run(
                [*CORRAL, *words],
                cwd=self.project,
                stdout=subprocess.PIPE,
                stderr=ours,
                text=True,
                timeout=120,
            )
            said = os.read(theirs, 1 << 16).decode() if done.returncode or "run" in words else ""
        finally:
            os.close(ours)
            os.close(theirs)
        return done.returncode, done.stdout + said


def attempted(runs: dict[str, Callable[[Household], bool]], home: Path) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for sentence, attempt in runs.items():
        house = Household(home)
        try:
            said[sentence] = attempt(house)
        except NotEnforceable as refusal:
            said[sentence] = f"refused: {refusal}"
        except Exception:  # noqa: BLE001 - whatever happens is the answer
            said[sentence] = traceback.format_exc(limit=-3)
        finally:
            house.remove()
    return said


def homes_of(home: Path) -> dict[str, Any]:
    if os.getuid() == 0:
        return attempted(FOR_ROOT, home)
    return attempted(FAR if is_far() else NEAR, home)


def is_far() -> bool:
    return FAR_HOME in Path("/proc/cmdline").read_text()


def default_run(home: Path) -> dict[str, Any]:
    """`corral run` without a mode: what it takes, and what it says about that. The command would end with 7."""
    house = Household(home)
    try:
        status, said = house.types("run", "sh", "-c", "exit 7")
    finally:
        house.remove()
    return {"status": status, "said": said}


# ---- casual ----


def home_is_copied(house: Household) -> bool:
    line = "echo more >> ~/.profile && echo new > ~/new && echo real > note && cat ~/.profile ~/new"
    with house.environment("casual") as env:
        done = env.shell(line, timeout=60)
        changed = {change.path for change in env.changes()}
    return bool(
        done.stdout == "plain\nmore\nnew\n"
        and changed == {".profile", "new"}
        and (house.home / ".profile").read_text() == "plain\n"
        and not (house.home / "new").exists()
        and (house.project / "note").read_text() == "real\n"
    )


def removal_is_copied(house: Household) -> bool:
    """A directory that is made anew shows nothing of the old one, then and at the next run."""
    house.says("rm ~/.profile && rm -r ~/kept && mkdir ~/kept && touch ~/kept/new", "casual")
    seen = house.says("ls ~/kept; test -e ~/.profile || echo gone", "casual")
    other = house.says("ls ~/kept; cat ~/.profile", "casual", jail=f"{house.jail}-other")
    return (seen, other) == ("new\ngone\n", "old\nplain\n") and (house.home / "kept/old").exists()


def masks_hold(house: Household) -> bool:
    """Also for what is saved meanwhile, and a hidden name can be used anew inside."""
    line = "cat ~/.ssh/id_ed25519; mkdir ~/.ssh && echo mine > ~/.ssh/config && ls ~/.ssh; cat ~/.profile"
    again = house.shell(line, "casual").stdout, house.says("ls ~/.ssh", "casual")
    return again == ("config\nplain\n", "config\n") and os.listdir(house.home / ".ssh") == ["id_ed25519"]


def the_rest_is_read_only(house: Household) -> bool:
    line = "! touch /usr/x && ! touch /etc/x && echo x > /tmp/x && cat /var/tmp/x && unshare -Urm true && echo nests"
    return house.shell(line, "casual").stdout == "x\nnests\n" and not os.path.exists("/tmp/x")


def second_joins(mode: str) -> Callable[[Household], bool]:
    """Another process, while the first runs: one home and one /tmp, writes seen both ways."""

    def joins(house: Household) -> bool:
        words = ["run", "-m", mode, "-j", house.jail, "sh", "-c", "cat ~/a /tmp/a && echo two > ~/b"]
        with house.environment(mode) as env:
            line = "echo one > ~/a; cp ~/a /tmp/a; echo up; read _; cat ~/b"
            with env.start(["sh", "-c", line], stdin=subprocess.PIPE) as first:
                assert next(iter(first)).data == b"up\n"
                second = house.types(*words)
                first.write("go\n")
                done = first.wait(60)
        assert (second[0], second[1][:8], done.stdout[-4:]) == (0, "one\none\n", "two\n"), (second, done)
        return True

    return joins


# ---- bare, strict, review ----


def bare_keeps_a_home(house: Household) -> bool:
    first = house.says("ls -A ~; echo x > ~/own; echo real > note", "bare")
    second = house.says("cat ~/own; id -u", "bare")
    real = (house.project / "note").read_text() == "real\n" and not (house.home / "own").exists()
    return real and (first, second) == (f"{house.project.name}\n", f"x\n{os.getuid()}\n")


def strict_shows_a_list(house: Household) -> bool:
    """Nothing else exists, the user is another one inside, and what is made is ours outside."""
    first = house.says("ls -A ~; ls /; echo x > ~/own; echo real > note; stat -c %u note", "strict")
    second = house.shell("cat ~/own; id -u; cat /etc/shadow; ! touch /usr/x /x", "strict")
    shown = first.split()
    inside = shown[-1]
    return bool(
        shown[0] == house.project.name
        and inside not in ("0", str(os.getuid()))
        and not {"root", "lost+found"} - {house.home.parts[1]} & set(shown)
        and second.stdout == f"x\n{inside}\n"
        and os.stat(house.project / "note").st_uid == os.getuid()
        and not (house.home / "own").exists()
    )


def review_waits(house: Household) -> bool:
    for name in ("changed", "removed"):
        (house.project / name).write_text("old\n")
    with house.environment("workspace-write", review=True) as env:
        done = env.shell(
            "echo more >> changed && rm removed && mkdir d && echo new > d/made && cat changed", timeout=60
        )
        before = sorted(os.listdir(house.project)), (house.project / "changed").read_text()
        listed = {change.path for change in env.changes()}
        env.apply()
        left = env.changes()
    return bool(
        done.stdout == "old\nmore\n"
        and before == (["changed", "removed"], "old\n")
        and {"changed", "removed", "d/made"} <= listed
        and not left
        and sorted(os.listdir(house.project)) == ["changed", "d"]
        and (house.project / "changed").read_text() == "old\nmore\n"
    )


NEAR: dict[str, Callable[[Household], bool]] = {
    "casual keeps a write to home in the changes": home_is_copied,
    "casual keeps a removal in the changes": removal_is_copied,
    "casual hides keys": masks_hold,
    "casual leaves the rest read-only and nests": the_rest_is_read_only,
    "casual: a second run joins": second_joins("casual"),
    "bare keeps a home of its own": bare_keeps_a_home,
    "bare: a second run joins": second_joins("bare"),
    "strict shows what is on its list": strict_shows_a_list,
    "strict: a second run joins": second_joins("strict"),
    "review waits to be applied": review_waits,
}


# ---- root ----


def is_refused_to_root(house: Household) -> bool:
    said = [house.types("run", "-m", mode, "true") for mode in ("casual", "bare")]
    return all(status == 125 and "does not run as root; use `sudo -u USER" in text for status, text in said)


def owners_of_processes() -> set[int]:
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError):  # gone since
            found.add(os.stat(f"/proc/{pid}").st_uid)
    return found


def strict_is_another_user(house: Household) -> bool:
    """For the kernel too: seen from outside."""
    line = "echo x > note; id -u; read _"
    with house.environment("strict") as env, env.start(["sh", "-c", line], stdin=subprocess.PIPE) as run:
        inside = next(iter(run)).data.decode().strip()
        owners = owners_of_processes()
        run.write("go\n")
        run.wait(60)
    made_by = os.stat(house.project / "note").st_uid
    return int(inside) in owners and (inside, made_by) != ("0", int(inside)) and made_by == 0


FOR_ROOT: dict[str, Callable[[Household], bool]] = {
    "casual and bare are refused": is_refused_to_root,
    "strict shows what is on its list": strict_shows_a_list,
    "strict is another user for the kernel": strict_is_another_user,
    "strict: a second run joins": second_joins("strict"),
    "review waits to be applied": review_waits,
}


# ---- home on NFS ----


REMEDY = "name a directory on a local disk with --storage DIR (config: storage), or "


def copy_is_refused(house: Household) -> bool:
    """Before anything is made or mounted: the file system by its name, and both remedies."""
    status, said = house.types("run", "-m", "casual", "touch", "made")
    reviewed, text = house.types("run", "-m", "workspace-write", "--review", "touch", "made")
    words = f"{house.home} is nfs4, which cannot hold what is changed in a copy; {REMEDY}"
    return (
        (status, reviewed) == (125, 125)
        and f"{words}use -m bare or -m workspace-write" in said
        and f"{words}run without --review" in text
        and not os.listdir(house.project)
        and not (house.home / ".local/state/corral/jails").exists()
    )


def storage_elsewhere(house: Household) -> bool:
    line = "cat ~/.profile; echo more >> ~/.profile; rm ~/kept/old; ! cat ~/.ssh/id_ed25519 && echo x > note"
    first = house.shell(line, "casual", storage=house.storage).stdout
    second = house.says("cat ~/.profile; ls ~/kept", "casual", storage=house.storage)
    real = (house.home / ".profile").read_text() == "plain\n" and (house.home / "kept/old").exists()
    return real and (first, second) == ("plain\n", "plain\nmore\n") and (house.project / "note").exists()


def review_elsewhere(house: Household) -> bool:
    with house.environment("workspace-write", review=True, storage=house.storage) as env:
        env.shell("echo new > made", timeout=60)
        waits = not (house.project / "made").exists()
        env.apply()
    return waits and (house.project / "made").read_text() == "new\n"


def default_is_less(house: Household) -> bool:
    status, said = house.types(
        "run", "sh", "-c", "cat ~/.profile; ! echo x > ~/new && ! cat ~/.ssh/id_ed25519 && exit 7"
    )
    return (
        status == 7
        and f"workspace-write (namespaces), not casual: {house.home}" in said
        and "is nfs4" in said
    )


FAR: dict[str, Callable[[Household], bool]] = {
    "a copy is refused, naming NFS and the remedies": copy_is_refused,
    "a copy is kept on another disk": storage_elsewhere,
    "a review is kept on another disk": review_elsewhere,
    "without a mode it is workspace-write": default_is_less,
    "bare keeps a home of its own": bare_keeps_a_home,
    "strict shows what is on its list": strict_shows_a_list,
}
