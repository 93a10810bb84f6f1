"""The comparison with peers: its controls tell a jail from none, and its page and plot say what was measured."""

from __future__ import annotations

import importlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import corral

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
JOBS = ("git status", "compile", "find", "tar", "untar", "imports")


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of benchmarks/_peers."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"_peers.{name}")


def test_a_command_that_is_not_jailed_fails_every_control_and_passes_as_plain(
    part: Any, tmp_path: Path
) -> None:
    place = part("contestants").Place(str(tmp_path), str(tmp_path / "in"), str(tmp_path / "out"), "")
    Path(place.workspace).mkdir()
    Path(place.outside).mkdir()

    def plain(argv: list[str]) -> int:
        return subprocess.run(argv, cwd=place.workspace).returncode

    complaint = part("controls").complaint
    assert complaint(plain, place, jailed=False, network="off") is None
    assert complaint(plain, place, True, "off") == "it can write outside of it; it can reach the network"
    assert (
        complaint(lambda argv: 0, place, True, "off") == "it cannot write in the workspace; exit code 0 for 7"
    )


def test_a_jail_passes_the_controls(part: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.mktemp("controls")
    place = part("contestants").Place(str(top), str(top / "in"), str(top / "out"), "")
    Path(place.workspace).mkdir()
    Path(place.outside).mkdir()
    with corral.LocalEnvironment(place.workspace, corral.Policy.workspace_write()) as environment:

        def jailed(argv: list[str]) -> int:
            return environment.run(argv).exit_code

        assert part("controls").complaint(jailed, place, jailed=True, network="off") is None


def sample() -> dict[str, Any]:
    def row(milliseconds: float) -> dict[str, float]:
        return {"median": milliseconds, "p95": 2 * milliseconds, "ratio": milliseconds, "cpu": 1.0}

    launches = {"plain exec": row(1.0), "corral, namespaces": row(2.0), "slow peer": row(400.0)}
    rates = {name: {"rate": 10.0} for name in launches}
    works = {**launches, "slow peer": {"median": float("nan"), "p95": float("nan"), "ratio": float("nan")}}
    machine = dict.fromkeys(("cpu", "system", "kernel", "python", "user", "date"), "some")
    return {
        "machine": {**machine, "cores": 2, "load": "0.1", "busy": False, "quick": False},
        "versions": dict.fromkeys(launches, "1.0"),
        "absent": {"absent peer": "not installed: no such package"},
        "remarks": {},
        "notes": ["a note"],
        "line": launches,
        "library": launches,
        "line_rate": rates,
        "library_rate": rates,
        "inside": dict.fromkeys(JOBS, works),
        "crowd": {name: {**found, "stall": 1.0, "failed": 0} for name, found in launches.items()},
        "memory": {"plain exec": 0.0, "corral, namespaces": 60.0},
    }


def test_the_page_names_who_was_measured_who_failed_and_who_is_absent(part: Any) -> None:
    page = part("report").page(sample(), "make bench", "peers.svg")
    assert "| slow peer | 400.00 ms | 800.00 ms | 400.00x | 1.0 ms | 10 |" in page
    assert "| absent peer | – | not measured: no such package |" in page.replace("not installed: ", "")
    assert "| slow peer | " + " | ".join(["failed"] * len(JOBS)) + " |" in page
    assert "| corral, namespaces | 60 KB |" in page
    assert "busy" not in page
    assert "**A trial with few rounds" not in page


def test_the_plot_is_well_formed_and_a_longer_launch_has_a_longer_bar(part: Any) -> None:
    drawing = ElementTree.fromstring(part("plot").svg(sample()))
    space = {"svg": "http://www.w3.org/2000/svg"}
    bars = [float(bar.attrib["width"]) for bar in drawing.findall("svg:rect", space)[1:]]
    assert bars[:3] == sorted(bars[:3])
    assert len(set(bars[:3])) == 3
    assert len(drawing.findall("svg:circle", space)) == 2 * len(JOBS)  # one contestant worked, and the legend


def test_every_contestant_is_told_the_workspace_and_keeps_plain_exec_bare(part: Any) -> None:
    contestants = part("contestants")
    place = contestants.Place("/home/u", "/home/u/work", "/home/u/out", "/opt/tools")
    for one in contestants.CONTESTANTS:
        words = [*(one.words(place) if one.words else []), *(one.library(place) if one.library else [])]
        named = any(place.workspace in word or word == place.srt_settings for word in words)
        assert named or sys.prefix in words[0], one.name
    assert contestants.CONTESTANTS[0].words(place) == []
