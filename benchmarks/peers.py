"""Corral beside its peers: launches, throughput, work inside, an event loop, 200 at once, memory of idle jails.

    python benchmarks/peers.py [--quick] [--only NAME]… [--output DIR] [--tools DIR]

Started by root it measures as an ordinary user, made for the run and gone after it; else as you. Peers from PyPI and
npm are installed into a directory that is removed at the end (or kept, and used again, with --tools). A peer that is
not there, or does not hold what it was told, is named with the reason and not measured. Writes a page, a plot and the
numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _peers.contestants import CONTESTANTS, PLAIN, Contestant, Place, prepare, version_of
from _peers.controls import complaint
from _peers.libraries import Library
from _peers.measuring import TRUE, run_line
from _peers.memory import idle_jails
from launch import REPOSITORY, install_in, leave, session_of

BUSY_LOAD = 0.7  # of each core
OUTPUT = REPOSITORY / "docs" / "benchmarks"
COMMAND = "make bench"
Result = dict[str, Any]


# ---- in the process of who measures ----


def measure(place: Place, only: list[str], quick: bool, absent: dict[str, str]) -> Result:
    from _measure import prepare_workspace
    from _peers import measuring

    prepare(place)
    versions: dict[str, str] = {}
    taking_part: list[Contestant] = []
    libraries: dict[str, Library] = {}
    for contestant in chosen(only):
        if contestant.name in absent:
            continue
        try:
            version = version_of(contestant, place)
            libraries |= proven(contestant, place)
            versions[contestant.name] = version
            taking_part.append(contestant)
        except (OSError, RuntimeError) as error:
            absent[contestant.name] = str(error)
    prepare_workspace(Path(place.workspace))
    effort = measuring.Effort(quick)
    try:
        result: Result = {
            "versions": versions,
            "absent": absent,
            "remarks": {one.name: one.remark for one in taking_part if one.remark},
            "line": measuring.command_lines(taking_part, place, effort),
            "library": measuring.library_calls(libraries, effort),
            "inside": measuring.work_inside(taking_part, place, effort),
            "crowd": measuring.crowds(libraries, effort),
        }
        rates = measuring.throughput(taking_part, libraries, place, effort)
        result["line_rate"], result["library_rate"] = rates
    finally:
        for library in libraries.values():
            library.close()
    return result


def chosen(only: list[str]) -> list[Contestant]:
    wanted = [one for one in CONTESTANTS if not only or any(text in one.name for text in only)]
    return wanted if wanted and wanted[0].name == PLAIN else [CONTESTANTS[0], *wanted]


def proven(contestant: Contestant, place: Place) -> dict[str, Library]:
    """Its library's process, if it has one; an error if it does not hold what it was told, in either form."""
    jailed, network = contestant.name != PLAIN, contestant.network
    if contestant.words is not None:
        words = contestant.words(place)
        run_line(words, TRUE, place)  # its own words on why it cannot

        def by_line(argv: list[str]) -> int:
            null = subprocess.DEVNULL
            done = subprocess.run([*words, *argv], cwd=place.workspace, stdin=null, capture_output=True)
            return done.returncode

        if wrong := complaint(by_line, place, jailed, network):
            raise RuntimeError(f"as a command line: {wrong}")
    if contestant.library is None:
        return {}
    library = Library(contestant, place)
    if wrong := complaint(library.exit_code, place, jailed, network):
        library.close()
        raise RuntimeError(f"as a library: {wrong}")
    return {contestant.name: library}


# ---- around it ----


class Host:
    """Who measures, from which install, in which place, and how to become them."""

    def __init__(self, person: pwd.struct_passwd, place: Place, python: Path, before: list[str]) -> None:
        self.person, self.place, self.python, self.before = person, place, python, before

    def ask(self, part: str, words: list[str], absent: dict[str, str], become: bool) -> Result:
        script = self.python.parent.parent / Path(__file__).name
        line = [*(self.before if become else []), str(self.python), str(script), "--part", part, *words]
        # Our own user manager and terminal are part of the case; for a user just made, those of a desktop are made up.
        variables = session_of(self.person) if self.before else dict(os.environ)
        told = json.dumps({"place": self.place, "absent": absent, "before": self.before})
        started = subprocess.Popen(
            line, env=variables, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with started as process:
            try:
                output, _ = process.communicate(told.encode())
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            sys.exit(f"peers.py: {part} failed")
        result: Result = json.loads(output)
        return result


@contextlib.contextmanager
def host(kept_tools: Path | None) -> Iterator[tuple[Host, dict[str, str]]]:
    sys.path.append(str(REPOSITORY / "tests"))
    from run import as_user, throw_away_user

    with contextlib.ExitStack() as stack:
        before: list[str] = []
        if os.geteuid() == 0:
            # Homes and installs where they are on other machines: a jail puts its own directory over /tmp and /var/tmp.
            home, installs = Path(f"/home/corral-bench-{os.getpid()}"), "/opt"
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            person = stack.enter_context(throw_away_user(home))
            before = as_user(person)
        else:
            person = pwd.getpwuid(os.getuid())
            installs = person.pw_dir
            home = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="corral-bench-", dir=installs))
            )
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corral-bench-", dir=installs)))
        scratch.chmod(0o755)
        workspace = home / "workspace"
        workspace.mkdir()
        os.chown(workspace, person.pw_uid, person.pw_gid)
        tools = kept_tools or scratch / "tools"
        absent = installed(tools)
        python = install_in(scratch / "corral")
        from _peers.installing import add_to

        if why := add_to(python, "anyio"):  # what Corral's asynchronous half asks for
            raise SystemExit(f"peers.py: anyio: {why}")
        shutil.copytree(Path(__file__).parent / "_peers", scratch / "corral" / "_peers")
        subprocess.run(["chmod", "-R", "a+rX", scratch / "corral"], check=True)
        place = Place(str(home), str(workspace), str(home / "outside"), str(tools))
        yield Host(person, place, python, before), absent


def installed(tools: Path) -> dict[str, str]:
    from _measure import progress
    from _peers.installing import install

    told = tools / "absent.json"
    if not told.exists():
        progress("installing peers")
        tools.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps(install(tools)))
    absent: dict[str, str] = json.loads(told.read_text())
    return absent


def machine(load: float, user: str, quick: bool) -> dict[str, Any]:
    described = dict(
        line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line
    )
    model = next((value.strip() for key, value in described.items() if key.startswith("model name")), "")
    release = platform.freedesktop_os_release()
    cores = os.cpu_count() or 1
    return {
        "cpu": model or platform.machine(),
        "cores": cores,
        "system": release.get("PRETTY_NAME", "Linux"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "user": user,
        "date": time.strftime("%Y-%m-%d"),
        "load": f"{load:.1f}",
        "quick": quick,
        "busy": load > BUSY_LOAD * cores,
    }


def write(result: Result, output: Path) -> None:
    from _peers.plot import svg
    from _peers.report import page

    output.mkdir(parents=True, exist_ok=True)
    (output / "peers.json").write_text(json.dumps(result, indent=1).replace(": NaN", ": null") + "\n")
    (output / "peers.svg").write_text(svg(result))
    (output / "peers.md").write_text(page(result, COMMAND, "peers.svg"))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Corral beside its peers.")
    parser.add_argument("--quick", action="store_true", help="few rounds: whether it works, not how fast")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="contestants with this in their name"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help="docs/benchmarks")
    parser.add_argument("--tools", type=Path, metavar="DIR", help="where peers are installed, or are already")
    parser.add_argument("--part", choices=["measure", "memory"], help=argparse.SUPPRESS)
    return parser


def part(asked: argparse.Namespace) -> Result:
    told = json.load(sys.stdin)
    place = Place(*told["place"])
    if asked.part == "measure":
        return measure(place, asked.only, asked.quick, told["absent"])
    notes: list[str] = []
    contestants = [one for one in chosen(asked.only) if one.name not in told["absent"]]
    return {"memory": idle_jails(contestants, place, told["before"], notes), "notes": notes}


def main() -> int:
    signal.signal(signal.SIGTERM, leave)
    asked = arguments().parse_args()
    if asked.part:
        print(json.dumps(part(asked)))
        return 0
    load = os.getloadavg()[0]
    words = [
        *(word for name in asked.only for word in ("--only", name)),
        *(["--quick"] if asked.quick else []),
    ]
    with host(asked.tools) as (one, absent):
        result = one.ask("measure", words, absent, become=True)
        result |= one.ask("memory", words, result["absent"], become=False)
        user = "an ordinary user" if one.person.pw_uid else "root"
        result["machine"] = machine(load, user, asked.quick)
    write(result, asked.output)
    print((asked.output / "peers.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
