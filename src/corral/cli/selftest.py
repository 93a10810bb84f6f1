"""`corral selftest`: try to break out, case by case, and print the table."""

from __future__ import annotations

from corral.cli import harmless
from corral.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.selftest.runner import Report

USAGE = """usage: corral selftest [-m|--mode MODE] [--backend B] [--json]

Tries to break out of a jail on this host, case by case, beside what must still work. Every attempt is on files, sockets
and processes made for it. Exit code 0 only if all that the mode promises here holds; 1 if something does not.

  held          refused, as promised (or: works, as it must)
  not covered   this tier does not promise it; corral status names the gaps
  impossible    cannot be done on this host without a jail either, so it shows nothing"""


def main(_: str, words: list[str]) -> int:
    options = {"--mode": "workspace-write", "-m": "", "--backend": "auto"}
    as_json, rest = False, list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help"):
            print(USAGE)
            return 0
        if word == "--json":
            as_json = True
        elif word in options and rest:
            options["--mode" if word == "-m" else word] = rest.pop(0)
        else:
            raise PolicyError(f"corral selftest does not take {word}, or not without a value; try --help")
    from corral.selftest.runner import selftest

    report = selftest(options["--mode"], options["--backend"])
    print(_json(report) if as_json else _text(report))
    return 0 if report.holds else 1


def _json(report: Report) -> str:
    import json

    rows = [{name: getattr(result, name) for name in result._fields} for result in report.results]
    facts = {
        "mode": report.mode,
        "backend": report.backend,
        "holds": report.holds,
        "changed": list(report.changed),
    }
    return json.dumps({**facts, "cases": rows}, indent=2)


def _text(report: Report) -> str:
    lines = [f"mode {report.mode}, held by {report.backend}"]
    group = ""
    for result in report.results:
        if result.group != group:
            group = result.group
            lines.append(f"{group}")
        aim = "" if result.must == "fail" else "must work: "
        lines.append(f"  {result.verdict:<12} {aim}{result.tried}: {result.happened}")
    lines += [f"BROKEN: changed outside: {path}" for path in report.changed]
    counts = {
        verdict: sum(result.verdict == verdict for result in report.results)
        for verdict in ("held", "BROKEN", "not covered", "impossible")
    }
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return "\n".join(harmless(line) for line in lines)
