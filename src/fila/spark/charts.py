"""Pictures of reports: SVG as text, sized by their view box, coloured by the page's style.

Owns shapes and scales. Each chart has a title for those who cannot see it and a value on hover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 860
_PANEL_HEIGHT: Final = 92
_BAR_HEIGHT: Final = 26
_LABEL: Final = 150
_RIGHT: Final = 70


class Panel(NamedTuple):
    """One key over time: what it got and what was fair."""

    label: str
    got: list[float]
    fair: list[float]


class Bar(NamedTuple):
    label: str
    parts: list[tuple[str, float]]  # (css class, value), from left to right
    note: str = ""


def share_over_time(
    panels: Sequence[Panel], times: Sequence[str], title: str, doubtful: Sequence[int] = ()
) -> str:
    """Small multiples: a line for what was delivered, an area for the fair share.

    Each has a scale of its own, or the quiet keys would all be flat lines beside a noisy one. Times
    that are doubtful are shaded.
    """
    width = WIDTH - _LABEL - _RIGHT
    steps = max(1, len(times) - 1)
    height = len(panels) * _PANEL_HEIGHT + 24
    edge = WIDTH - _RIGHT + 6
    drawn = []
    for row, panel in enumerate(panels):
        base = row * _PANEL_HEIGHT + _PANEL_HEIGHT - 14
        tall = _PANEL_HEIGHT - 30
        top = max([1.0, *panel.got, *panel.fair])

        def place(
            at: int, value: float, base: int = base, tall: int = tall, top: float = top
        ) -> str:
            return f"{_LABEL + at * width / steps:.1f},{base - value / top * tall:.1f}"

        fair = " ".join(place(at, value) for at, value in enumerate(panel.fair))
        got = " ".join(place(at, value) for at, value in enumerate(panel.got))
        end = _LABEL + (len(times) - 1) * width / steps
        area = f"{_LABEL},{base} {fair} {end:.1f},{base}"
        for at in doubtful:
            left = max(_LABEL, _LABEL + (at - 0.5) * width / steps)
            drawn.append(
                f'<rect class="gap" x="{left:.1f}" y="{base - tall}" '
                f'width="{width / steps:.1f}" height="{tall}"/>'
            )
        drawn.append(
            f'<text class="label" x="{_LABEL - 12}" y="{base - tall / 2:.0f}">'
            f"{escape(_short(panel.label))}</text>"
            f'<line class="axis" x1="{_LABEL}" y1="{base}" x2="{WIDTH - _RIGHT}" y2="{base}"/>'
            f'<polygon class="fair" points="{area}"/>'
            f'<polyline class="got" points="{got}"/>'
            f'<text class="tick" x="{edge}" y="{base - tall + 4}">{_number(top)}</text>'
            f'<text class="tick" x="{edge}" y="{base}">0</text>'
        )
        for at, when in enumerate(times):
            told = (
                f"{panel.label}, {when}: {_number(panel.got[at])} delivered, "
                f"{_number(panel.fair[at])} fair"
            )
            left = _LABEL + (at - 0.5) * width / steps
            drawn.append(
                f'<rect class="hover" x="{left:.1f}" y="{base - tall}" '
                f'width="{width / steps:.1f}" height="{tall}"><title>{escape(told)}</title></rect>'
            )
    if times:
        y = height - 6
        drawn.append(f'<text class="tick" x="{_LABEL}" y="{y}">{escape(times[0])}</text>')
        drawn.append(
            f'<text class="tick end" x="{WIDTH - _RIGHT}" y="{y}">{escape(times[-1])}</text>'
        )
    return _svg(height, title, drawn)


def stacked_bars(bars: Sequence[Bar], title: str, unit: str) -> str:
    """One bar per key, cut into its parts, all on one scale."""
    top = max([1e-9, *(sum(value for _, value in bar.parts) for bar in bars)])
    width = WIDTH - _LABEL - _RIGHT - 60
    drawn = []
    for row, bar in enumerate(bars):
        y = row * _BAR_HEIGHT + 4
        x = float(_LABEL)
        drawn.append(
            f'<text class="label" x="{_LABEL - 12}" y="{y + 13}">{escape(_short(bar.label))}</text>'
        )
        for kind, value in bar.parts:
            wide = value / top * width
            if wide > 0:
                told = f"{bar.label}: {_number(value)} {unit} {kind.replace('_', ' ')}"
                drawn.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" '
                    f'height="{_BAR_HEIGHT - 8}"><title>{escape(told)}</title></rect>'
                )
                x += wide
        drawn.append(f'<text class="tick" x="{x + 6:.1f}" y="{y + 13}">{escape(bar.note)}</text>')
    return _svg(len(bars) * _BAR_HEIGHT + 8, title, drawn)


def percentile_dots(
    rows: Sequence[tuple[str, dict[str, float]]], title: str, unit: str = "ms"
) -> str:
    """One line per key with a dot per percentile, on a logarithmic scale."""
    values = [value for _, found in rows for value in found.values() if value > 0]
    low = math.floor(math.log10(min(values))) if values else 0
    high = math.ceil(math.log10(max(values))) if values else 1
    high = max(high, low + 1)
    width = WIDTH - _LABEL - _RIGHT

    def place(value: float) -> float:
        level = math.log10(value) if value > 0 else low
        return _LABEL + (max(level, low) - low) / (high - low) * width

    height = len(rows) * _BAR_HEIGHT + 26
    drawn = []
    for level in range(low, high + 1):
        x = _LABEL + (level - low) / (high - low) * width
        drawn.append(f'<line class="grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height - 20}"/>')
        drawn.append(
            f'<text class="tick middle" x="{x:.1f}" y="{height - 6}">'
            f"{_number(10.0**level)} {unit}</text>"
        )
    for row, (label, found) in enumerate(rows):
        y = row * _BAR_HEIGHT + 14
        places = [place(value) for value in found.values()]
        drawn.append(
            f'<text class="label" x="{_LABEL - 12}" y="{y + 4}">{escape(_short(label))}</text>'
            f'<line class="span" x1="{min(places):.1f}" y1="{y}" x2="{max(places):.1f}" y2="{y}"/>'
        )
        for (name, value), x in zip(found.items(), places, strict=True):
            told = f"{label}: {name} {_number(value)} {unit}"
            drawn.append(
                f'<circle class="{name}" cx="{x:.1f}" cy="{y}" r="5.5">'
                f"<title>{escape(told)}</title></circle>"
            )
    return _svg(height, title, drawn)


def _svg(height: float, title: str, drawn: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
        f"{''.join(drawn)}</svg>"
    )


def _short(text: str) -> str:
    return text if len(text) <= 20 else text[:19] + "…"


def _number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
