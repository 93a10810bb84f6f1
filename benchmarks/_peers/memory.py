"""What an idle jail holds: the proportional memory of all its processes but the command, as the kernel counts it.

Root reads everybody's; others cannot look into a PID 1 or a setuid program and get no row."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from _measure import progress

from .contestants import Contestant, Place
from .libraries import Library

COMMAND = "sleep"
FIRST, MORE = 1, 10
LONGEST_START = 10.0


def idle_jails(
    contestants: list[Contestant], place: Place, before: list[str], notes: list[str]
) -> dict[str, float]:
    """Kilobytes by contestant: what ten jails add to one that is there already, a tenth of it."""
    found = {}
    progress(f"memory of {MORE} idle jails each")
    for contestant in contestants:
        if contestant.library is None:
            continue
        library = Library(contestant, place, before)
        try:
            one = _held(library, FIRST)
            found[contestant.name] = (_held(library, FIRST + MORE) - one) / MORE
        except PermissionError:
            notes.append(f"memory of {contestant.name}: only root may look at its processes")
        except (RuntimeError, TimeoutError) as error:
            notes.append(f"memory of {contestant.name}: {error}")
        finally:
            _end(library)
    return found


def _held(library: Library, count: int) -> float:
    library.ask("hold", count=count)
    deadline = time.monotonic() + LONGEST_START
    top = library.process.pid
    while sum(_name(pid) == COMMAND for pid in tree(top)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} jails did not come up below it")
        time.sleep(0.02)
    time.sleep(0.2)  # what a front end still does once its command runs
    return sum(_proportional_kb(pid) for pid in tree(top) if _name(pid) != COMMAND)


def _end(library: Library) -> None:
    left = [pid for pid in tree(library.process.pid) if pid != library.process.pid]
    library.close()
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 9)


def tree(top: int) -> Iterator[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                after_name = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(after_name[1]), []).append(int(entry))
    reached = [top]
    for pid in reached:
        reached += children.get(pid, [])
    yield from reached


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _proportional_kb(pid: int) -> float:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith("Pss:")), 0.0)
    return 0.0
