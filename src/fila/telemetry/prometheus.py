"""Readings as Prometheus text (exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from fila.telemetry.instruments import Distribution, prometheus_name
from fila.telemetry.readings import Family
from fila.text import shown

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PART_LINES: Final = 1_000
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(families: list[Family]) -> bytes:
    return b"".join(exposed(families))


def exposed(families: list[Family]) -> Iterator[bytes]:
    """The text in parts, so that other work can be done in between."""
    lines: list[str] = []
    for instrument, samples in families:
        if not samples:
            continue
        name = prometheus_name(instrument)
        words = instrument.words.replace("\\", r"\\").replace("\n", r"\n")
        lines.append(f"# HELP {name} {words}")
        lines.append(f"# TYPE {name} {instrument.kind}")
        for values, value in samples:
            pairs = [
                f'{label}="{_label(text)}"'
                for label, text in zip(instrument.labels, values, strict=True)
            ]
            if isinstance(value, Distribution):
                _histogram(lines, name, pairs, instrument.bounds, value)
            else:
                labels = "{" + ",".join(pairs) + "}" if pairs else ""
                lines.append(f"{name}{labels} {value!r}")
            if len(lines) >= PART_LINES:
                lines.append("")
                yield "\n".join(lines).encode("utf-8", "replace")
                lines.clear()
    lines.append("")
    yield "\n".join(lines).encode("utf-8", "replace")


def _label(text: str) -> str:
    """A label's value: three escapes are the format's own, the rest are ours."""
    if not text.isprintable():
        text = "\n".join([shown(part) for part in text.split("\n")])
    return text.translate(_ESCAPES)


def _histogram(
    lines: list[str],
    name: str,
    pairs: list[str],
    bounds: tuple[float, ...],
    value: Distribution,
) -> None:
    labels = "{" + ",".join(pairs) + "}" if pairs else ""
    before = "{" + "".join(pair + "," for pair in pairs)
    reached = list(accumulate(value.counts))
    for bound, count in zip((*bounds, "+Inf"), reached, strict=True):
        lines.append(f'{name}_bucket{before}le="{bound}"}} {count}')
    lines.append(f"{name}_sum{labels} {value.sum!r}")
    lines.append(f"{name}_count{labels} {reached[-1]}")
