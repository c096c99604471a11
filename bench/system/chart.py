"""Charts as SVG: horizontal bars and lines, on their own background so that they read on any page.

Owns the drawing and nothing else: figures in, text out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH = 720
_COLOURS = ("#1f6feb", "#d4572a", "#2e8b57", "#8250df", "#9a6700", "#57606a")
_INK, _FAINT, _GRID, _PAPER = "#1f2328", "#656d76", "#d8dee4", "#ffffff"
_OURS, _OTHERS = "#1f6feb", "#a8b1bb"


class Bar(NamedTuple):
    label: str
    value: float
    low: float
    high: float
    ours: bool = True


def bars(title: str, unit: str, values: Sequence[Bar], digits: int = 0) -> str:
    """One bar per value, with a whisker from the lowest to the highest round."""
    left, right, top, row = 190, 110, 54, 30
    height = top + row * len(values) + 16
    largest = max(max(one.value, one.high) for one in values) or 1.0
    scale = (WIDTH - left - right) / largest
    parts = _open(title, unit, height)
    for at, one in enumerate(values):
        middle = top + at * row + row / 2
        colour = _OURS if one.ours else _OTHERS
        end = left + one.value * scale
        parts.append(_text(left - 10, middle + 4, one.label, anchor="end"))
        parts.append(
            f'<rect x="{left}" y="{middle - 9:.1f}" width="{max(one.value * scale, 1):.1f}" '
            f'height="18" rx="2" fill="{colour}"/>'
        )
        if one.high > one.low:
            low, high = left + one.low * scale, left + one.high * scale
            parts.append(_line([(low, middle), (high, middle)], _INK, 1.2))
            parts += [_line([(x, middle - 4), (x, middle + 4)], _INK, 1.2) for x in (low, high)]
            end = max(end, high)
        parts.append(_text(end + 8, middle + 4, f"{one.value:,.{digits}f}"))
    return _close(parts)


def lines(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """One line per series of (x, y). On a logarithmic axis, 0 stands where the axis begins."""
    left, right, top, bottom, height = 74, 170, 54, 46, 330
    points = [point for line in series.values() for point in line]
    x_axis = _Axis([x for x, _ in points], left, WIDTH - right, log_x, zero=False)
    y_axis = _Axis([y for _, y in points], height - bottom, top, log_y, zero=True)
    parts = _open(title, y_label, height)
    for value in y_axis.marks:
        y = y_axis.at(value)
        parts.append(_line([(left, y), (WIDTH - right, y)], _GRID, 1))
        parts.append(_text(left - 8, y + 4, _short(value), anchor="end", colour=_FAINT))
    for value in x_axis.marks:
        x = x_axis.at(value)
        parts.append(_text(x, height - bottom + 18, _short(value), "middle", _FAINT))
    parts.append(_text((left + WIDTH - right) / 2, height - 8, x_label, "middle", _FAINT))
    used: list[float] = []
    for (name, line), colour in zip(series.items(), _COLOURS * 4, strict=False):
        spots = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(line)]
        parts.append(_line(spots, colour, 2))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        label_y = spots[-1][1] + 4
        while any(abs(label_y - other) < 15 for other in used):
            label_y += 15
        used.append(label_y)
        parts.append(_text(spots[-1][0] + 10, label_y, name, colour=colour))
    return _close(parts)


class _Axis:
    """From values to places on the page."""

    def __init__(
        self, values: Sequence[float], start: float, stop: float, log: bool, zero: bool
    ) -> None:
        self._start, self._stop, self._log = start, stop, log
        positive = [value for value in values if value > 0] or [1.0]
        if log:
            self._low = 10 ** math.floor(math.log10(min(positive)))
            self._high = max(10 ** math.ceil(math.log10(max(positive))), self._low * 10)
            steps = range(round(math.log10(self._high / self._low)) + 1)
            self.marks = [self._low * 10**step for step in steps]
        else:
            self._low = 0.0 if zero else min(values)
            self._high = max(max(values), self._low + 1e-9)
            step = _round_step((self._high - self._low) / 4)
            first = math.ceil(self._low / step)
            self.marks = [at * step for at in range(first, math.ceil(self._high / step) + 1)]
            self._high = max(self._high, self.marks[-1]) if zero else self._high
            self.marks = [mark for mark in self.marks if mark <= self._high]

    def at(self, value: float) -> float:
        if self._log:
            value = max(value, self._low)
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = (value - self._low) / (self._high - self._low)
        return self._start + share * (self._stop - self._start)


def _round_step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(step * size for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * size >= rough)


def _short(value: float) -> str:
    for limit, sign in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{sign}"
    return f"{value:g}"


def _open(title: str, unit: str, height: float) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height:.0f}" rx="6" fill="{_PAPER}"/>',
        f'<text x="16" y="24" font-size="15" font-weight="600" fill="{_INK}">{escape(title)}'
        "</text>",
        _text(16, 42, unit, colour=_FAINT),
    ]


def _close(parts: list[str]) -> str:
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _line(spots: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
