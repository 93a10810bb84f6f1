"""What a jail costs: launches beside plain ones and beside bwrap, work on files inside and outside, and the memory
of PID 1. All of a table comes from one run; every ratio is of two times taken in the same round. A jail may be taken
down after its call has returned: the last column is the ratio when that is counted too.

    python benchmarks/launch.py [--user NAME] [--rounds N] [--files N] [--quick] [--only TEXT] [--json] [--check]

It measures as whoever starts it, from an install of its own. Root may name a user, and gets a second table for them.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from _measure import Case, Job, Row, Table, files, launches, memory

REPOSITORY = Path(__file__).resolve().parent.parent

# ---- what is measured, over what, and the most it may be (None: shown, not judged) ----

LAUNCHES: tuple[Case, ...] = (
    ("true, landlock", "subprocess.run, captured", 1.6),
    ("true, landlock", "subprocess.run, plain", None),
    ("true, namespaces, network open", "subprocess.run, captured", 2.0),
    ("true, namespaces, network open", "subprocess.run, plain", None),
    ("true, namespaces, network open", "bwrap, network open", 0.6),
    ("true, namespaces, network off", "subprocess.run, captured", 2.5),
    ("true, namespaces, network off", "subprocess.run, plain", None),
    ("true, namespaces, network off", "bwrap, network off", 0.6),
    ("corral run -- true", "python3 -I -S -c pass", 5.0),
)

# For ordinary users: root has no casual.
CASUAL: tuple[Case, ...] = (
    ("corral run -m casual -- true", "python3 -I -S -c pass", 5.5),
    ("the same, joining a run", "corral run -m casual -- true", 1.0),
    ("the same, library", "subprocess.run, plain", 3.0),
    ("the same, a large home", "the same, a home of 10 files", 1.1),
)

# Each is repeated until it takes long enough, in a workspace with a committed tree of small files.
JOBS: tuple[Job, ...] = (
    ("git status", "git status --porcelain > out/status"),
    ("compile", "gcc -c -o out/unit.o unit.c"),
    ("tar", "tar -cf out/tree.tar tree"),
    # Over what is there: ext4 is slow to use again the inodes of files that were just removed, ever slower in a row.
    ("untar", "tar --overwrite -xf tree.tar -C out"),
)
INSIDE_OVER_OUTSIDE = 1.15
PID_1_KB = 64

# ---- the peer: the same namespaces, mounts, filter and captured output ----

BWRAP: tuple[tuple[str, ...], ...] = (
    ("bwrap",),
    ("--unshare-user",),
    ("--unshare-pid",),
    ("--unshare-ipc",),
    ("{--unshare-net}",),  # where Corral's network is off too
    ("--die-with-parent",),
    ("--new-session",),
    ("--cap-drop", "ALL"),
    ("--ro-bind", "/", "/"),
    ("{--dev /dev}",),  # as root; others keep the host's in Corral, and here by --dev-bind /dev /dev
    ("--tmpfs", "/dev/shm"),
    ("--proc", "/proc"),
    ("--tmpfs", "/tmp"),
    ("--tmpfs", "/var/tmp"),
    ("--tmpfs", "/run"),
    ("--bind", "{workspace}", "{workspace}"),
    (
        "{--tmpfs HIDDEN}",
    ),  # each directory that Corral hides and that is there; for a file: --ro-bind /dev/null FILE
    ("--chdir", "{workspace}"),
    ("--seccomp", "{filter}"),  # a descriptor, with the very bytes of Corral's own plan
    ("--", "true"),
)

CONFIG = """\
# What agents may do on this machine.
mode = "workspace-write"
network = "off"
ro = ["/usr/share"]
hide = ["~/notes", "~/.config/mail"]
unhide = [".npmrc"]
demand = ["signals"]
require = true
output-limit = "4M"

[limits]
wall = "30m"
file-size = "2G"
cpu = "600s"
open-files = 1024

[environment]
rules = [
  "drop COMPANY_*",
  "keep COMPANY_PROXY",
  "set PAGER=cat",
  "set CI=1",
]

[[grant]]
path = "~/.cache/pip"
access = "rw"
missing = "skip"

[profile.look]
mode = "read-only"
"""

# ---- who measures ----

# Scrubbing takes time for each variable, so there are as many as a terminal on a desktop has.
SESSION = (
    *(
        "COLORTERM",
        "CONDA_EXE",
        "DBUS_SESSION_BUS_ADDRESS",
        "DESKTOP_SESSION",
        "DISPLAY",
        "EDITOR",
        "GDMSESSION",
    ),
    *(
        "GITHUB_TOKEN",
        "GNOME_TERMINAL_SCREEN",
        "GPG_AGENT_INFO",
        "GTK_MODULES",
        "HISTSIZE",
        "LC_ALL",
        "LC_TIME",
    ),
    *(
        "LESS",
        "LESSOPEN",
        "LS_COLORS",
        "MANPATH",
        "NVM_BIN",
        "NVM_DIR",
        "OPENAI_API_KEY",
        "PAGER",
        "QT_IM_MODULE",
    ),
    *(
        "SESSION_MANAGER",
        "SHLVL",
        "SSH_AGENT_PID",
        "SSH_AUTH_SOCK",
        "TERM_PROGRAM",
        "VTE_VERSION",
        "WINDOWID",
    ),
    *("XAUTHORITY", "XDG_CURRENT_DESKTOP", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XMODIFIERS"),
)


def session_of(person: pwd.struct_passwd) -> dict[str, str]:
    search = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    own = {"HOME": person.pw_dir, "USER": person.pw_name, "LOGNAME": person.pw_name, "SHELL": "/bin/sh"}
    return {**dict.fromkeys(SESSION, "C"), **own, "PATH": search, "TERM": "xterm", "LANG": "C.UTF-8"}


def install_in(directory: Path) -> Path:
    """A virtual environment as an installer leaves it, readable by all, with Corral in it. Returns its interpreter."""
    base = os.path.realpath(sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", directory], check=True)
    python = directory / "bin" / "python"
    packages = next(directory.glob("lib/python*/site-packages"))
    subprocess.run(["cp", "-r", REPOSITORY / "src" / "corral", packages], check=True)
    subprocess.run([python, "-m", "compileall", "-q", packages], check=True)
    script = directory / "bin" / "corral"
    script.write_text((REPOSITORY / "src/bin/corral").read_text().replace("#!python", f"#!{python}", 1))
    subprocess.run(["cp", *Path(__file__).resolve().parent.glob("*.py"), directory], check=True)
    subprocess.run(["chmod", "-R", "u+w,go-w,a+rX", directory], check=True)
    script.chmod(0o755)
    return python


def measured_by(person: pwd.struct_passwd, python: Path, words: list[str]) -> Table:
    """One table, from a process of this person's."""
    identity: dict[str, Any] = {}
    if person.pw_uid != os.getuid():
        groups = os.getgrouplist(person.pw_name, person.pw_gid)
        identity = {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": groups}
    script = python.parent.parent / Path(__file__).name
    started = [str(python), str(script), "--measure", *words]
    with subprocess.Popen(
        started, env=session_of(person), cwd="/", stdout=subprocess.PIPE, **identity
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()  # and wait, on leaving this block: it has a workspace to remove
            raise
    if process.returncode:
        sys.exit(f"launch.py: measuring as {person.pw_name} failed")
    told = json.loads(output)
    table = Table(told["uid"], told["user"], [Row(**row) for row in told["rows"]], told["notes"])
    if table.uid != person.pw_uid:
        raise AssertionError(f"meant to measure as {person.pw_uid}, and did as {table.uid}")
    return table


def measure(asked: argparse.Namespace) -> Table:
    """In the process that :func:`measured_by` started: no time is taken of anything but Corral, bwrap and work."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    with tempfile.TemporaryDirectory(prefix="corral-bench-", dir=home) as top:
        for name in ("config", "state", "workspace"):
            Path(top, name).mkdir()
            os.environ[f"CORRAL_{name.upper()}_DIR"] = f"{top}/{name}"
        Path(top, "config", "corral.toml").write_text(CONFIG)
        workspace = Path(os.environ.pop("CORRAL_WORKSPACE_DIR"))
        rows: list[Row] = []
        notes: list[str] = []
        cases = (*LAUNCHES, *CASUAL) if os.getuid() else LAUNCHES
        chosen = tuple(case for case in cases if asked.only in case[0])
        rows += launches(chosen, BWRAP, workspace, asked.rounds, asked.files, notes)
        seconds, times = (0.3, 3) if asked.quick else (2.0, 5)
        rows += files(JOBS, INSIDE_OVER_OUTSIDE, asked.only, workspace, seconds, times, notes)
        if asked.only in "PID 1, resident":
            rows += memory("PID 1, resident", PID_1_KB, workspace, notes)
    return Table(os.getuid(), pwd.getpwuid(os.getuid()).pw_name, rows, notes)


def plain(table: Table) -> dict[str, Any]:
    return {**table._asdict(), "rows": [row._asdict() for row in table.rows]}


# ---- the table ----


def verdict(row: Row) -> str:
    if row.target is None:
        return ""
    found = row.value if row.ratio is None else row.ratio
    return "ok" if found <= row.target else "OVER"


HEAD = f"  {'what':<31} {'takes':>10}  {'over':<25} {'takes':>10} {'ratio':>6} {'at most':>7} {'':>5} {'all gone':>9}"


def printed(table: Table) -> str:
    lines = [f"as {table.user} (uid {table.uid})"]
    lines.append(HEAD)
    for row in table.rows:
        value = f"{row.value:.{2 if row.unit == 'ms' else 0}f} {row.unit}"
        over = "" if row.over_value is None else f"{row.over_value:.2f} ms"
        ratio, gone = (f"{r:.2f}" if r else "" for r in (row.ratio, row.gone_ratio))
        target = "" if row.target is None else f"{row.target:g}"
        line = f"  {row.what:<31} {value:>10}  {row.over:<25} {over:>10} {ratio:>6} {target:>7} {verdict(row):>5}"
        lines.append(f"{line} {gone:>9}".rstrip())
    return "\n".join([*lines, *(f"  note: {note}" for note in table.notes)])


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What a jail costs.")
    parser.add_argument("--user", help="measure as this user too (for root)")
    parser.add_argument("--rounds", type=int, help="of launches; 200, with --quick 30")
    parser.add_argument("--quick", action="store_true", help="short jobs: whether it works, not how fast")
    parser.add_argument("--files", type=int, help="in a large home; 20000, and a million has been tried")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this in their name")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed or not measured")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    return parser


def leave(number: int, _: object) -> NoReturn:
    """By the way that removes what was made, which a second signal must not cut short."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    signal.signal(signal.SIGTERM, leave)
    parser = arguments()
    asked = parser.parse_args()
    asked.rounds = asked.rounds or (30 if asked.quick else 200)
    asked.files = asked.files or 20_000
    if asked.measure:
        print(json.dumps(plain(measure(asked))))
        return 0
    people = [pwd.getpwuid(os.getuid())]
    if asked.user is not None:
        if os.getuid() != 0:
            parser.error("--user is for root")
        people.append(pwd.getpwnam(asked.user))
    words = ["--rounds", str(asked.rounds), "--files", str(asked.files), "--only", asked.only]
    words += ["--quick"] if asked.quick else []
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as directory:
        python = install_in(Path(directory))
        tables = []
        for person in people:
            tables.append(measured_by(person, python, words))
            if not asked.json:
                print(printed(tables[-1]), flush=True)
    if asked.json:
        print(json.dumps([plain(table) for table in tables], indent=2))
    missed = any(table.notes or any(verdict(row) == "OVER" for row in table.rows) for table in tables)
    return int(asked.check and missed)


if __name__ == "__main__":
    sys.exit(main())
