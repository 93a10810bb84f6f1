"""Runs the tests: all of them as who you are, and, started by root, those marked `jail` as an ordinary user too.

The ordinary user is made for the run and gone after it. It has its own home, no capability, no further group, and
tests the built wheel, installed where it can read but not write it. Arguments that are not ours go to pytest; a path
below tests/ is that of the copy which the user can read.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PNPM = "pnpm@9"  # the last one for the node of Debian 12
SHARED_SCRATCH = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["root", "user"], help="one of the two runs that root gets")
    options, pytest_arguments = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.umask(0o022)

    outcomes: dict[str, Outcome] = {}
    if os.geteuid() != 0:
        if options.only == "root":
            parser.error("--only root needs root")
        print("Not started by root: one run, as you.", flush=True)
        outcomes |= run_at_once({"as you": as_we_are(pytest_arguments)})
    else:
        runs: dict[str, Run] = {}
        with contextlib.ExitStack() as stack:
            if options.only != "root":
                runs["as an ordinary user"] = stack.enter_context(ordinary_user(pytest_arguments))
            if options.only != "user":
                runs["as root"] = as_we_are(pytest_arguments)
            outcomes |= run_at_once(runs)
    print()
    for who, (_, summary) in outcomes.items():
        print(f"{who}: {summary}")
    return 1 if any(status for status, _ in outcomes.values()) else 0


# Exit status of pytest and the last line that it printed.
Outcome = tuple[int, str]


# A command, where it is run, and its environment.
Run = tuple[list[str], Path, dict[str, str]]


def as_we_are(pytest_arguments: list[str]) -> Run:
    return [sys.executable, "-m", "pytest", *pytest_arguments], ROOT, dict(os.environ)


@contextlib.contextmanager
def ordinary_user(pytest_arguments: list[str]) -> Iterator[Run]:
    """A user who is gone afterwards, with all that is needed installed."""
    with scratch_directory() as scratch, throw_away_user(scratch / "home") as user:
        python = install_wheel_for(user, scratch)
        suite = scratch / "suite"
        shutil.copytree(ROOT / "tests", suite / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", suite)
        shutil.copytree(ROOT / "docs", suite / "docs")
        for page in ROOT.glob("*.md"):
            shutil.copy(page, suite)
        pytest = [
            *(str(python), "-m", "pytest", "-p", "no:cacheprovider", "-m", "jail and not soak"),
            *(f"--config-file={suite}/pyproject.toml", f"--basetemp={user.pw_dir}/pytest"),
            *in_copy(pytest_arguments, suite),
        ]
        environment = {
            "HOME": user.pw_dir,
            "USER": user.pw_name,
            "LOGNAME": user.pw_name,
            "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "CORRAL_TEST_IDENTITY": "user",
            "CORRAL_TEST_UID": str(user.pw_uid),
        }
        yield [*as_user(user), *pytest], Path(user.pw_dir), environment


def in_copy(pytest_arguments: list[str], suite: Path) -> list[str]:
    """The arguments with the paths of the copied tests; all of them if no path is among them."""
    moved = [f"{suite}/{word}" if word.startswith("tests/") else word for word in pytest_arguments]
    return moved if moved != pytest_arguments else [*moved, f"{suite}/tests"]


def run_at_once(runs: dict[str, Run]) -> dict[str, Outcome]:
    """Side by side: most of a test's time is spent waiting. The one named last is shown as it goes, the others when all
    have ended."""
    kept: dict[str, list[str]] = {who: [] for who in runs}
    shown = next(reversed(runs))
    with contextlib.ExitStack() as stack:
        started = {who: stack.enter_context(started_pytest(run)) for who, run in runs.items()}
        readers = [
            threading.Thread(target=kept[who].extend, args=(started[who].stdout,))
            for who in runs
            if who != shown
        ]
        for reader in readers:
            reader.start()
        for line in started[shown].stdout or ():
            print(line, end="", flush=True)
            kept[shown].append(line)
        for reader in readers:
            reader.join()
    for who in runs:
        if who != shown:
            print(f"\n{who}:\n{''.join(kept[who])}", flush=True)
    summaries = {who: next((line for line in reversed(kept[who]) if line.strip(" =\n")), "") for who in runs}
    return {who: (started[who].returncode, summaries[who].strip(" =\n")) for who in runs}


@contextlib.contextmanager
def started_pytest(run: Run) -> Iterator[subprocess.Popen[str]]:
    command, cwd, environment = run
    with subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True) as pytest:
        try:
            yield pytest
        except BaseException:  # an interrupt: leaving the block would wait for pytest to come to its end
            pytest.terminate()
            raise


def install_wheel_for(user: pwd.struct_passwd, scratch: Path) -> Path:
    """Build the wheel, install it with what the tests import, and give back the interpreter that has it."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, f"--wheel-dir={scratch}", str(ROOT)], check=True)
    (wheel,) = scratch.glob("*.whl")
    subprocess.run([interpreter_for(user), "-m", "venv", "--without-pip", scratch / "venv"], check=True)
    python = scratch / "venv/bin/python"
    install = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--compile"]
    subprocess.run([*install, f"{wheel}[test]"], check=True)
    if shutil.which("npm") is not None:  # for one test, which is skipped where the registry is out of reach
        npm = [
            "npm",
            "install",
            "--global",
            "--silent",
            "--no-fund",
            "--no-audit",
            f"--prefix={scratch}/venv",
        ]
        subprocess.run([*npm, PNPM], stdout=subprocess.DEVNULL, timeout=120)
    return python


def interpreter_for(user: pwd.struct_passwd) -> str:
    """A Python that the user can run too: one below a private home is of no use to others."""
    candidates = ["/usr/bin/python3", os.path.realpath(sys.executable)]
    can_it_run = ["-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"]
    for candidate in candidates:
        with contextlib.suppress(FileNotFoundError):
            command = [*as_user(user), candidate, *can_it_run]
            if subprocess.run(command, cwd="/", stderr=subprocess.DEVNULL).returncode == 0:
                return candidate
    sys.exit(f"no Python 3.11 that an ordinary user can run; tried {', '.join(candidates)}")


def as_user(user: pwd.struct_passwd) -> list[str]:
    identity = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return ["setpriv", *identity, "--inh-caps=-all", "--ambient-caps=-all", "--"]


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    # Not below /tmp, which a jail replaces by its own.
    with tempfile.TemporaryDirectory(prefix="corral-tests-", dir="/var/tmp") as name:
        scratch = Path(name)
        scratch.chmod(0o755)
        yield scratch


@contextlib.contextmanager
def throw_away_user(home: Path) -> Iterator[pwd.struct_passwd]:
    name = f"corral-test-{os.getpid()}"
    make = ["useradd", "--user-group", "--no-create-home", f"--home-dir={home}", "--shell=/bin/sh", name]
    subprocess.run(make, check=True)
    try:
        user = pwd.getpwnam(name)
        if next(processes_of(user.pw_uid), None) is not None:
            sys.exit(f"uid {user.pw_uid} was free but runs processes; not touching them")
        home.mkdir(mode=0o755)
        os.chown(home, user.pw_uid, user.pw_gid)
        try:
            yield user
        finally:
            end_processes_of(user.pw_uid)
            remove_files_of(user.pw_uid)
    finally:
        subprocess.run(["userdel", name], check=True)


def processes_of(uid: int) -> Iterator[int]:
    """Descriptors of all living processes that have the uid among theirs; each is open for one step only."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError), open_process(int(pid)) as process:
            text = Path(f"/proc/{pid}/status").read_text(errors="replace")
            status = dict(line.split(":", 1) for line in text.splitlines())
            if str(uid) in status["Uid"].split() and "zombie" not in status["State"]:
                yield process


@contextlib.contextmanager
def open_process(pid: int) -> Iterator[int]:
    process = os.pidfd_open(pid)
    try:
        yield process
    finally:
        os.close(process)


def end_processes_of(uid: int) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        remaining = 0
        for process in processes_of(uid):
            remaining += 1
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        if remaining == 0:
            return
        time.sleep(0.02)
    print(f"processes of uid {uid} do not end", file=sys.stderr)


def remove_files_of(uid: int) -> None:
    """What the user left in directories that all users share; its home goes with the scratch directory."""
    for entry in (entry for directory in SHARED_SCRATCH for entry in os.scandir(directory)):
        if entry.stat(follow_symlinks=False).st_uid == uid:
            print(f"left behind, removed: {entry.path}", file=sys.stderr)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
