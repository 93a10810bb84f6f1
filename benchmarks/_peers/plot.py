"""An SVG of three panels: both kinds of launch as bars with a whisker to the 95th percentile, work inside as dots.
All scales are logarithmic: the contestants lie three powers of ten apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from .contestants import PLAIN
from .report import Result, by_median

WIDTH, LEFT, RIGHT = 900, 230, 90
ROW, BAR, TITLE, AXIS, GAP = 24, 14, 34, 26, 18
OURS, THEIRS, NEUTRAL, LINE, TEXT = "#0b7a75", "#9aa5b1", "#c9ced6", "#e4e7eb", "#1f2933"
JOB_COLOURS = ("#0b7a75", "#d9822b", "#5c6bc0", "#c0392b", "#7f8c3a", "#8e44ad")
REFERENCE_MARKS = ("python3 ", "node ")


class Scale:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = math.floor(math.log10(low) * 3) / 3, math.ceil(math.log10(high) * 3) / 3

    def x(self, value: float) -> float:
        place = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return LEFT + min(place, 1.0) * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> Iterable[float]:
        for power in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in (1, 2, 5):
                value = step * 10.0**power
                if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9:
                    yield value


def svg(result: Result) -> str:
    top = 10.0
    parts: list[str] = []
    for title, table in (
        ("Launch of true, command line (ms)", result["line"]),
        ("Launch of true, library call from a warm process (ms)", result["library"]),
    ):
        drawn, top = _bars(title, table, top)
        parts += drawn
    drawn, top = _dots("Work inside, times plain exec", result["inside"], top)
    parts += drawn
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" role="img" '
    style = f'font-family="system-ui, sans-serif" font-size="13" fill="{TEXT}">'
    ground = f'<rect width="{WIDTH}" height="{top:.0f}" fill="#ffffff"/>'
    return "\n".join([head + style, "<title>Corral beside its peers</title>", ground, *parts, "</svg>", ""])


def _bars(title: str, table: dict[str, dict[str, float]], top: float) -> tuple[list[str], float]:
    rows = by_median(table)
    scale = Scale(min(row["median"] for _, row in rows) / 1.5, max(row["p95"] for _, row in rows))
    parts, y = _frame(title, scale, top, len(rows), "")
    for name, row in rows:
        middle = y + ROW / 2
        start, end, far = scale.x(0), scale.x(row["median"]), scale.x(row["p95"])
        size = f'width="{end - start:.1f}" height="{BAR}" fill="{_colour(name)}"'
        parts += [
            _text(LEFT - 8, middle + 4, name, "end"),
            f'<rect x="{start:.1f}" y="{middle - BAR / 2:.1f}" {size}/>',
            f'<path d="M{end:.1f} {middle:.1f}H{far:.1f}m0 -4v8" stroke="{TEXT}" fill="none"/>',
            _text(WIDTH - RIGHT + 8, middle + 4, f"{row['median']:.1f}"),
        ]
        y += ROW
    return parts, y + AXIS + GAP


def _dots(title: str, jobs: dict[str, dict[str, dict[str, float]]], top: float) -> tuple[list[str], float]:
    names = [name for name in next(iter(jobs.values())) if name != PLAIN]
    ratios = [
        row["ratio"] for table in jobs.values() for row in table.values() if row["ratio"] == row["ratio"]
    ]
    scale = Scale(min(*ratios, 0.9), max(*ratios, 2.0))
    parts, y = _frame(title, scale, top, len(names), "x")
    for name in names:
        middle = y + ROW / 2
        parts.append(_text(LEFT - 8, middle + 4, name, "end"))
        for colour, table in zip(JOB_COLOURS, jobs.values(), strict=True):
            ratio = table[name]["ratio"]
            if ratio == ratio:
                parts.append(
                    f'<circle cx="{scale.x(ratio):.1f}" cy="{middle:.1f}" r="5" fill="{colour}" fill-opacity="0.75"/>'
                )
        y += ROW
    y += AXIS
    x = float(LEFT)
    for colour, job in zip(JOB_COLOURS, jobs, strict=True):
        parts += [
            f'<circle cx="{x:.0f}" cy="{y + 6:.1f}" r="5" fill="{colour}"/>',
            _text(x + 10, y + 10, job),
        ]
        x += 34 + 7.5 * len(job)
    return parts, y + 2 * GAP


def _frame(title: str, scale: Scale, top: float, rows: int, unit: str) -> tuple[list[str], float]:
    """The title and the grid; and where the first row begins."""
    y, bottom = top + TITLE, top + TITLE + rows * ROW
    parts = [f'<text x="14" y="{top + 20:.0f}" font-weight="600" font-size="15">{escape(title)}</text>']
    for value in scale.ticks():
        x = scale.x(value)
        parts.append(f'<path d="M{x:.1f} {y:.1f}V{bottom:.1f}" stroke="{LINE}"/>')
        parts.append(_text(x, bottom + 16, f"{value:g}{unit}", "middle"))
    return parts, y


def _colour(name: str) -> str:
    if name.startswith("corral"):
        return OURS
    return NEUTRAL if name == PLAIN or name.startswith(REFERENCE_MARKS) else THEIRS


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
