"""Runs on the other kernel: what Corral finds there, what it proves, and a few real runs. Prints one JSON object.

Every run is a sentence and whether it was true. One that must be refused stands beside one that must work.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral import Grant, Limits, LocalEnvironment, NotEnforceable, Policy
from corral.claims import CLAIMS
from corral.doctor import examine
from corral.jail.cgroups import new_group
from corral.jail.enclosure import Enclosure
from corral.jail.host import Host, find_host, launcher_path
from corral.jail.ladder import RUNGS, available, held
from corral.jail.proofs import proven
from corral.sandbox import Sandbox
from kernels.inside_homes import default_run, homes_of, is_far

MODES = ("read-only", "workspace-write")
HOME_MODES = ("casual", "bare", "strict")
PROCESSES = 350  # above the kernel's least pid_max (301) and what the jail itself has


def main() -> None:
    home = Path.home()
    found = {"release": os.uname().release, "homes": homes_of(home)} if is_far() else everything(home)
    print(json.dumps(found))


def everything(home: Path) -> dict[str, Any]:
    host = find_host(str(home))
    return {
        "release": os.uname().release,
        "abi": host.abi,
        "missing": {"proc": host.no_proc, "overlay": host.no_overlay},
        "rungs": {name: available(name, host) for name in RUNGS},
        "doctor": [[finding.name, finding.ok, finding.detail, finding.remedy] for finding in examine()],
        "proofs": {name: proofs_of(name, host) for name in RUNGS if not available(name, host)},
        "modes": {
            **{mode: chosen(Policy(mode=mode)) for mode in (*MODES, *HOME_MODES)},  # type: ignore[arg-type]
            "review": chosen(Policy(review=True)),
        },
        "command": command_line(),
        "group": group_holds(),
        "default": default_run(home),
        "runs": {name: runs_on(name, home) for name in RUNGS if is_accepted(name)},
        "homes": homes_of(home) if host.namespaces else {},
    }


# ---- probe and ladder ----


def proofs_of(tier: str, host: Host) -> dict[str, Any]:
    """Every claim that the tier makes here, tried; remembered for the ladder below."""
    found = {}
    for mode in MODES:
        policy = Policy(mode=mode, backend=tier)  # type: ignore[arg-type]
        claims = tuple(claim for claim in CLAIMS if claim in held(tier, policy, host))
        proof = proven(policy, tier, claims, None)
        found[mode] = {"proven": proof.proven, "failed": dict(proof.failed)}
    return found


def chosen(policy: Policy) -> dict[str, Any]:
    """What the ladder picks, or its refusal."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as workspace:
        try:
            enclosure = Enclosure(workspace, policy)
        except NotEnforceable as refusal:
            return {"tier": "none", "refusal": str(refusal)}
        choice = enclosure.choice
        enclosure.close()
    return {
        "tier": choice.backend,
        "enforcing": choice.enforcing,
        "covered": choice.covered,
        "not_covered": choice.not_covered,
        "passed_over": choice.passed_over,
    }


def is_accepted(tier: str) -> bool:
    with tempfile.TemporaryDirectory(dir=Path.home()) as workspace:
        try:
            Enclosure(workspace, Policy(backend=tier)).close()  # type: ignore[arg-type]
        except NotEnforceable:
            return False
    return True


def command_line() -> dict[str, Any]:
    """`corral run`, as a person sees it; the command would end with 7."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as workspace:
        corral = "import sys; from corral.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", corral, "run", "-m", "workspace-write", "--", "sh", "-c", "exit 7"]
        done = subprocess.run(words, cwd=workspace, capture_output=True, text=True, timeout=120)
    return {"status": done.returncode, "said": (done.stdout + done.stderr).strip()}


def group_holds() -> bool:
    """A control group and the launcher alone, which need no tier: it ends what passes its memory, and nothing else."""
    said = []
    for megabytes in (50, 200):
        group = new_group(Limits(memory=100 << 20))
        if group is None:
            return False
        plan = ["fd", "0", str(group.procs), "supervise", "0", "group", "0", "--"]
        words = [launcher_path(), *plan, "/usr/bin/python3", "-c", FILL_FILE.format(megabytes)]
        done = subprocess.run(words, pass_fds=(group.procs,), capture_output=True, text=True, timeout=60)
        said.append((done.returncode, done.stdout, group.passed_memory()))
        group.remove()
    return said == [(0, "kept\n", False), (-signal.SIGKILL, "", True)] and groups() == []


# ---- runs ----


class Workplace:
    """A project and what lies beside it, in a home that a jail shows read-only."""

    def __init__(self, home: Path, tier: str) -> None:
        self.tier = tier
        self.home = home
        self.top = Path(tempfile.mkdtemp(dir=home))
        self.project = self.top / "project"
        self.project.mkdir()
        (self.top / "kept").write_text("kept\n")
        (self.project / "narrow").mkdir()
        (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        (home / ".ssh/id_ed25519").write_text("secret\n")

    def environment(self, **how: Any) -> LocalEnvironment:
        lifetime = how.pop("lifetime", "command")
        return LocalEnvironment(self.project, Policy(backend=self.tier, **how), lifetime=lifetime)  # type: ignore[arg-type]

    def shell(self, line: str, timeout: float = 60, **how: Any) -> Any:
        with self.environment(**how) as env:
            return env.shell(line, timeout=timeout)

    def python(self, program: str, **how: Any) -> Any:
        with self.environment(**how) as env:
            return env.run(["/usr/bin/python3", "-c", program], timeout=60)


def runs_on(tier: str, home: Path) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for sentence, attempt in RUNS.items():
        place = Workplace(home, tier)
        try:
            said[sentence] = attempt(place)
        except NotEnforceable:
            said[sentence] = "refused"
        except Exception:  # noqa: BLE001 - whatever happens is the answer
            said[sentence] = traceback.format_exc(limit=-3)
        finally:
            shutil.rmtree(place.top)
    return said


def exit_code_comes_back(place: Workplace) -> bool:
    return bool(place.shell("exit 7").exit_code == 7)


def write_inside_lands(place: Workplace) -> bool:
    done = place.shell("echo new > note && mkdir a b && mv note a/note && mv a/note b/note && cat b/note")
    return bool(done.ok and done.stdout == "new\n" and (place.project / "b/note").read_text() == "new\n")


def write_outside_refused(place: Workplace) -> bool:
    done = place.shell("echo new > ../note; ! echo more >> ../kept && ! mkdir ../made && ! rm -f ../kept")
    return bool(done.ok and sorted(os.listdir(place.top)) == ["kept", "project"])


def truncation_outside_refused(place: Workplace) -> bool:
    done = place.python(TRUNCATE)
    return bool(
        done.stdout == "inside ok, outside refused\n" and (place.top / "kept").read_text() == "kept\n"
    )


TRUNCATE = """
import os
open("full", "w").write("full")
os.truncate("full", 0)
assert os.path.getsize("full") == 0
try:
    os.truncate("../kept", 0)
except OSError:
    print("inside ok, outside refused")
"""


def read_only_mode_writes_nothing(place: Workplace) -> bool:
    done = place.shell("! echo new > note && t=$(mktemp) && echo x > $t && cat $t", mode="read-only")
    return bool(done.ok and done.stdout == "x\n" and os.listdir(place.project) == ["narrow"])


def network_is_off(place: Workplace) -> bool:
    """Somebody listens outside, and can be reached from there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        done = place.python(
            f"import socket\ntry: socket.create_connection(('127.0.0.1', {port}), 5)\nexcept OSError: print('off')"
        )
    return bool(done.stdout == "off\n")


def network_opens(place: Workplace) -> bool:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = place.python(
            f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('open')",
            network="open",
        )
    return bool(done.stdout == "open\n")


def tree_ends(place: Workplace) -> bool:
    """A daemon, in a session of its own, deaf to requests, with an odd argument to find it by."""
    mark = f"31{time.monotonic_ns()}"
    daemon = f"trap '' TERM HUP; setsid sleep {mark} </dev/null >/dev/null 2>&1 &"
    done = place.shell(f"{daemon} until pgrep -cxf 'sleep {mark}'; do sleep 0.1; done")
    return bool(done.stdout.endswith("1\n") and not processes_with(mark))


def processes_with(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if mark in words:
            found.append(pid)
    return found


def timeout_ends(place: Workplace) -> bool:
    began = time.monotonic()
    done = place.shell("echo begun; sleep 300", timeout=3)
    return bool(done.timed_out and done.stdout == "begun\n" and time.monotonic() - began < 60)


def memory_limit_ends(place: Workplace) -> bool:
    """None of them takes more than the limit; together they do."""
    done = place.python(
        "import os, time\n"
        "for _ in range(8):\n"
        "    if not os.fork():\n"
        "        taken = bytearray(60 << 20)\n"
        "        time.sleep(60)\n"
        "os.wait()",
        limits=Limits(memory=200 << 20),
    )
    return bool(done.over == "memory")


# So many megabytes in a file in memory that is never mapped: no process has them, and no sum of what they have.
FILL_FILE = """
import os, sys
file = os.memfd_create("filled")
for _ in range({}):
    os.write(file, bytes(1 << 20))
print("kept")
"""


def memory_files_count(place: Workplace) -> bool:
    limits = Limits(memory=200 << 20)
    much = place.python(FILL_FILE.format(300), limits=limits)
    less = place.python(FILL_FILE.format(100), limits=limits)
    return bool(much.over == "memory" and much.stdout == "" and less.ok and less.stdout == "kept\n")


def shared_memory_counts_once(place: Workplace) -> bool:
    """Eight processes with the same sixty megabytes are no more than one with them."""
    program = """
import os, time
taken = bytearray(60 << 20)
for _ in range(8):
    if not os.fork():
        time.sleep(3)
        os._exit(0)
for _ in range(8):
    os.wait()
"""
    return bool(place.python(program, limits=Limits(memory=200 << 20)).ok)


def only_the_command_that_passed_it_ends(place: Workplace) -> bool:
    with place.environment(lifetime="environment", limits=Limits(memory=200 << 20)) as env:
        env.shell("echo kept > /tmp/note; sleep 300 >/dev/null 2>&1 </dev/null &")
        much = env.run(["/usr/bin/python3", "-c", FILL_FILE.format(300)], timeout=60)
        after = env.shell("cat /tmp/note; pgrep -cx sleep", timeout=60)
        left = groups()
    return bool(much.over == "memory" and after.stdout == "kept\n1\n" and len(left) == 1)


def no_group_is_left(place: Workplace) -> bool:
    """Not by a run, nor by a caller that was killed while it had one: the next one sweeps that away."""

    def start_and_die() -> None:
        env = place.environment(limits=Limits(memory=200 << 20))
        process = env.start(["sleep", "300"])  # noqa: F841 - it ends when nobody has it
        os.kill(os.getpid(), signal.SIGKILL)

    in_a_child(start_and_die)
    left, deadline = len(groups()), time.monotonic() + 30
    while groups() and time.monotonic() < deadline:  # what still runs in one is ended first
        in_a_child(lambda: place.shell("true", limits=Limits(memory=200 << 20)))
    return left == 1 and groups() == []


def in_a_child(act: Callable[[], object]) -> None:
    """Another caller: where its groups go is found anew, and what is left there swept."""
    pid = os.fork()
    if not pid:
        try:
            act()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def groups() -> list[str]:
    return [path.name for path in Path("/sys/fs/cgroup").rglob("corral-run-*")]


# Whatever of the tree of control groups it finds or can mount, it writes.
RAISE = """
import glob, os, subprocess
mount = "mkdir -p /tmp/groups && mount -t cgroup2 none /tmp/groups && echo max > /tmp/groups/memory.max"
print(subprocess.call(["unshare", "-Urm", "-C", "sh", "-c", mount + "; echo max > /tmp/groups/../memory.max"]))
for path in glob.glob("/sys/fs/cgroup/**/memory.max", recursive=True):
    try:
        open(path, "w").write("max")
    except OSError:
        continue
"""


def limit_stays(place: Workplace) -> bool:
    """In every mode. In casual a sandbox in it may mount a tree of groups, and sees none that has a limit of ours."""
    modes = ["workspace-write", *(["casual"] if os.getuid() and place.tier == "namespaces" else [])]
    fill = f"{RAISE}{FILL_FILE.format(300)}"
    runs = [place.python(fill, limits=Limits(memory=200 << 20), mode=mode) for mode in modes]
    return all(run.over == "memory" and "kept" not in run.stdout for run in runs)


def a_person_is_told(place: Workplace) -> bool:
    corral = "import sys; from corral.cli import main; sys.exit(main())"
    how = ["run", "--backend", place.tier, "-m", "workspace-write", "--limit", "memory=200M"]
    python = ["--", "/usr/bin/python3", "-c", FILL_FILE.format(300)]
    words = [sys.executable, "-c", corral, *how, *python]
    done = subprocess.run(words, cwd=place.project, capture_output=True, text=True, timeout=120)
    said = "corral: the memory limit was passed; the run was ended"
    return done.returncode == 137 and said in done.stderr and groups() == []


def processes_are_limited(place: Workplace) -> bool:
    program = """
import os, time
made = []
try:
    while len(made) < 600:
        pid = os.fork()
        if not pid:
            time.sleep(60)
            os._exit(0)
        made.append(pid)
except OSError:
    pass
print(len(made))
"""
    done = place.python(program, limits=Limits(processes=PROCESSES))
    return bool(250 < int(done.stdout) <= PROCESSES)


def keys_are_hidden(place: Workplace) -> bool:
    done = place.shell(f"cat {place.home}/.ssh/id_ed25519; cat ../kept")
    return bool(done.stdout == "kept\n")


def keys_stay_hidden(place: Workplace) -> bool:
    """By somebody else's spawner, while it runs: a layer made for that run alone hides names, not files."""
    (place.home / ".netrc").write_text("old secret\n")
    (place.home / "netrc.new").write_text("new secret\n")
    policy = Policy(backend=place.tier)  # type: ignore[arg-type]
    with Sandbox(policy, place.project) as sandbox:
        words = sandbox.wrap_argv(
            ["sh", "-c", f"echo up; read _; cat {place.home}/.netrc ../kept 2>/dev/null"]
        )
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            is_up = run.stdout.readline() == "up\n"
            (place.home / "netrc.new").rename(place.home / ".netrc")
            said, _ = run.communicate("go\n", timeout=60)
    return is_up and said == "kept\n"


def grants_narrow(place: Workplace) -> bool:
    done = place.shell("echo x > wide && ! echo x > narrow/x", grants=(Grant.ro("narrow"),))
    return bool(done.ok and (place.project / "wide").exists() and not os.listdir(place.project / "narrow"))


def has_a_terminal(place: Workplace) -> bool:
    with (
        place.environment() as env,
        env.start(["sh", "-c", "test -t 0 && echo yes > /dev/tty"], pty=True) as it,
    ):
        done = it.wait(60)
    return bool(done.ok and "yes" in done.stdout)


def commands_share_a_jail(place: Workplace) -> bool:
    """A background job of one call is there for the next, with the network off."""
    serve = "import socket; s = socket.create_server(('127.0.0.1', 8123)); s.accept()[0].send(b'served')"
    fetch = (
        "import socket, time\n"
        "for _ in range(100):\n"
        "  try: print(socket.create_connection(('127.0.0.1', 8123)).recv(9).decode()); break\n"
        "  except OSError: time.sleep(0.2)"
    )
    with place.environment(lifetime="environment") as env:
        env.background("server", ["/usr/bin/python3", "-c", serve])
        done = env.run(["/usr/bin/python3", "-c", fetch], timeout=60)
    return bool(done.stdout == "served\n")


RUNS: dict[str, Callable[[Workplace], bool]] = {
    "an exit code comes back": exit_code_comes_back,
    "a write inside lands": write_inside_lands,
    "a write outside is refused": write_outside_refused,
    "truncation outside is refused": truncation_outside_refused,
    "read-only writes nothing": read_only_mode_writes_nothing,
    "the network is off": network_is_off,
    "the network opens": network_opens,
    "the tree ends": tree_ends,
    "a time-out ends it": timeout_ends,
    "the memory limit ends it": memory_limit_ends,
    "memory in files counts": memory_files_count,
    "memory that is shared counts once": shared_memory_counts_once,
    "in a shared jail only the command that passed the limit ends": only_the_command_that_passed_it_ends,
    "no control group is left": no_group_is_left,
    "a person is told of the memory limit": a_person_is_told,
    "a limit is not raised from inside": limit_stays,
    "processes are limited": processes_are_limited,
    "keys are hidden": keys_are_hidden,
    "a key saved meanwhile stays hidden": keys_stay_hidden,
    "a grant narrows": grants_narrow,
    "it has a terminal": has_a_terminal,
    "commands share a jail": commands_share_a_jail,
}

if __name__ == "__main__":
    main()
