"""The page: one table each, with versions, the machine, and who could not take part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .contestants import PLAIN
from .measuring import CROWD, SLOW, WORKERS
from .memory import MORE

Result = dict[str, Any]

HEAD = """\
# Beside its peers

![Launch times and the cost of work inside]({plot})

Written by `{command}` on {date}; do not edit. Every contestant is told the same policy as far as it can say it:
everything readable, one workspace writable, no network. Before it is measured it must write in the workspace, must not
write outside of it, must not reach a listening port and must pass an exit code on; without a jail the same line does
all of that. All contestants of a table take turns in one run, each round in another order. Ratios are medians of the
ratios within a round, over {plain}. Measured as {user}. `python benchmarks/peers.py --only NAME` measures some
of them, `--quick` with few rounds; started by root, it makes a user for the run and removes it.

{machine}
"""
BUSY = """
**The machine was busy (load {load}): neither times nor ratios are to be trusted.**
"""
QUICK = """
**A trial with few rounds (`--quick`): it shows that all of it runs, not how fast.**
"""
NOTES = {
    "line": "A whole launch of `true` from the command line. CPU: of the process and all it waited for. "
    "sandlock and nono-py bring no command: a new interpreter that imports them stands for it.",
    "library": "One call from a warm process, output captured. bubblewrap, firejail, systemd-run and Codex are "
    "programs: `subprocess.run` of them. srt is a Node library, called from Node, which does not tell the CPU time.",
    "inside": "The time is taken by the shell in the jail, so no launch is in it. "
    f"Who took more than {SLOW:g} s did it once. “failed”: the job does not run there.",
    "crowd": f"{CROWD} runs of `true` at once from one event loop, and how long the loop stood still at the longest. "
    "sandlock and nono-py offer only calls that wait: `asyncio.to_thread`, which runs a few at a time.",
    "memory": "Proportional memory of all processes that keep one idle jail, the command itself apart; "
    f"of {MORE} at once.",
}


def page(result: Result, command: str, plot: str) -> str:
    machine = result["machine"]
    head = HEAD.format(
        plot=plot,
        command=command,
        date=machine["date"],
        plain=PLAIN,
        user=machine["user"],
        machine=f"{machine['cpu']}, {machine['cores']} cores; {machine['system']}, kernel {machine['kernel']}; "
        f"Python {machine['python']}; load {machine['load']}.",
    )
    if machine["busy"]:
        head += BUSY.format(load=machine["load"])
    if machine["quick"]:
        head += QUICK
    sections = [
        head,
        _section("Who takes part", "", ("contestant", "version", "remark"), _who(result)),
        _section(
            "Launch, command line", NOTES["line"], LAUNCH_HEAD, _launches(result["line"], result["line_rate"])
        ),
        _section(
            "Launch, library",
            NOTES["library"],
            LAUNCH_HEAD,
            _launches(result["library"], result["library_rate"]),
        ),
        _section(
            "Work inside, over plain exec",
            NOTES["inside"],
            ("", *result["inside"]),
            _inside(result["inside"]),
        ),
        _section(f"{CROWD} at once", NOTES["crowd"], CROWD_HEAD, _crowds(result["crowd"])),
    ]
    if result["memory"]:
        rows = ((name, f"{kb:,.0f} KB") for name, kb in result["memory"].items() if name != PLAIN)
        sections.append(_section("Memory of an idle jail", NOTES["memory"], ("", "memory"), rows))
    if result["notes"]:
        sections.append("\n".join(["## Notes", "", *(f"- {note}" for note in result["notes"])]) + "\n")
    return "\n".join(sections)


LAUNCH_HEAD = ("", "median", "p95", "over plain", "CPU", f"a second, {WORKERS} workers")
CROWD_HEAD = ("", "in all", "over plain", "longest stall", "failed")


def _section(title: str, text: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    words = list(head)
    lines = [f"## {title}", ""] + ([text, ""] if text else [])
    lines += [_row(words), _row(["---"] + ["---:"] * (len(words) - 1))]
    return "\n".join([*lines, *(_row(row) for row in rows), ""])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _who(result: Result) -> Iterable[tuple[str, str, str]]:
    for name, version in result["versions"].items():
        yield name, version, result["remarks"].get(name, "")
    for name, why in result["absent"].items():
        yield name, "–", f"not measured: {why}"


def by_median(table: dict[str, dict[str, float]]) -> list[tuple[str, dict[str, float]]]:
    return sorted(table.items(), key=lambda item: item[1]["median"])


def _launches(table: dict[str, dict[str, float]], rates: dict[str, dict[str, float]]) -> Iterable[list[str]]:
    for name, row in by_median(table):
        cpu = f"{row['cpu']:.1f} ms" if "cpu" in row else "–"
        rate = f"{rates[name]['rate']:,.0f}" if name in rates else "–"
        yield [name, f"{row['median']:.2f} ms", f"{row['p95']:.2f} ms", f"{row['ratio']:.2f}x", cpu, rate]


def _inside(jobs: dict[str, dict[str, dict[str, float]]]) -> Iterable[list[str]]:
    names = next(iter(jobs.values()))
    for name in names:
        cells = []
        for table in jobs.values():
            row = table[name]
            shown = f"{row['ratio']:.2f}x" if name != PLAIN else f"{row['median']:.0f} ms"
            cells.append("failed" if row["median"] != row["median"] else shown)
        yield [name, *cells]


def _crowds(table: dict[str, dict[str, float]]) -> Iterable[list[str]]:
    for name, row in by_median(table):
        total, stall = f"{row['median']:,.0f} ms", f"{row['stall']:.1f} ms"
        yield [name, total, f"{row['ratio']:.2f}x", stall, f"{row['failed']:.0f}"]
