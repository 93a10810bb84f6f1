"""systemd-run as a rung of the ladder: in policies, in environments, on the command line, in status and doctor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from systemd.testbed import HOME

if TYPE_CHECKING:
    from systemd.conftest import Bed

ENVIRONMENT = (
    "import os, json; os.chdir('work'); from corral import *\n"
    "with LocalEnvironment('.', Policy.workspace_write(backend='systemd-run', network='open')) as env:\n"
)


def test_an_environment_has_commands_talks_jobs_and_terminals_in_units(bed: Bed) -> None:
    program = (
        " env.write_file('a', 'from the file half')\n"
        " out = [env.run(['cat', 'a']).stdout]\n"
        " with env.start(['cat'], stdin=PIPE) as p: p.write(b'talk'); p.close_stdin(); out.append(p.wait().stdout)\n"
        " with env.start(['bash', '-c', 'test -t 0 && tty > /dev/tty && stty size'], pty=True) as p:\n"
        "  out.append(p.wait().stdout.split()[-2:])\n"
        " env.background('left', ['sleep', '300'])\n"
        " with env.start(['bash', '-c', 'trap \"exit 9\" USR1; echo up; while :; do sleep 0.02; done']) as p:\n"
        "  next(iter(p)); p.signal(10); out.append(p.wait().exit_code)\n"
        " print(json.dumps(out))\n"
    )
    done = bed.python(ENVIRONMENT + program)
    assert done.stderr == ""
    assert json.loads(done.stdout) == ["from the file half", "talk", ["24", "80"], 9]


def test_the_async_twin_runs_in_units_too(bed: Bed) -> None:
    bed.lend("anyio", "sniffio", "idna", "typing_extensions")
    program = (
        "import asyncio, os; os.chdir('work')\nfrom corral import AsyncLocalEnvironment, Policy\n"
        "async def main():\n"
        " async with AsyncLocalEnvironment('.', Policy.workspace_write(backend='systemd-run')) as env:\n"
        "  done = await asyncio.gather(*(env.run(['echo', str(n)]) for n in range(4)))\n"
        "  print([d.stdout.strip() for d in done])\n"
        "asyncio.run(main())\n"
    )
    done = bed.python(program)
    assert (done.stdout, done.stderr) == ("['0', '1', '2', '3']\n", "")


def test_a_run_says_who_held_it_and_passes_streams_and_codes(bed: Bed) -> None:
    run = bed.corral(
        "run", "--backend", "systemd-run", "bash", "-c", "cat; echo err >&2; exit 7", stdin="in\n"
    )
    assert (run.returncode, run.stdout, run.stderr) == (7, "in\n", "err\n")
    assert bed.corral("run", "--backend", "systemd-run", "bash", "-c", "kill -9 $$").returncode in (137, -9)


def test_a_denial_is_explained_outside_and_in(bed: Bed) -> None:
    told = bed.corral("why", "--backend", "systemd-run", f"{HOME}/.ssh/id")
    assert told.returncode == 1
    allowed = bed.corral("why", "--backend", "systemd-run", "--rw", HOME + "/plain", HOME + "/plain")
    assert allowed.returncode == 0


def test_explain_shows_the_arguments_and_the_steps(bed: Bed) -> None:
    text = bed.corral("explain", "--backend", "systemd-run", "true").stdout
    assert "systemd-run --user --pipe" in text
    assert f"{HOME}  (an empty one instead)" in text
    assert "be in a unit that was made for this" in text


def test_status_and_doctor_know_every_backend(bed: Bed) -> None:
    status = json.loads(bed.corral("status", "--json").stdout)
    found = {entry["backend"]: entry for entry in status["backends"]}
    assert list(found) == ["namespaces", "landlock", "systemd-run", "seatbelt"]
    assert (found["systemd-run"]["present"], found["systemd-run"]["proven"]) == (True, True)
    assert found["seatbelt"]["why_not"] == "macOS only"
    doctor = bed.corral("doctor").stdout
    assert "systemd-run           present, proven on this boot" in doctor
    assert "seatbelt              not there: macOS only" in doctor
    missing = json.loads(bed.corral("status", "--json", XDG_RUNTIME_DIR="/run/user/1").stdout)
    entry = next(entry for entry in missing["backends"] if entry["backend"] == "systemd-run")
    assert entry["present"] is False
    assert "no systemd user manager" in entry["why_not"]
