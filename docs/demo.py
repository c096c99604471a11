"""Draws docs/demo.svg, the README's picture, from a run of the demo.

    python docs/demo.py

The bars move as they did in that run, one second of the picture for one second of the race.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

from fila.cli.demo.broker import own_broker
from fila.cli.demo.race import FAIR, FIFO, TENANTS, Race
from fila.cli.demo.report import closing

SAMPLE_S = 0.05
HOLD_S = 4.0  # the finished picture stays this long before it starts again
STILL_S = 3.0  # where it stands for those who want no motion
WIDTH, LINE = 800, 24
BAR_WIDTH = 190
COLUMNS = {FIFO: (24, "FIFO: a queue without a hook"), FAIR: (418, "Fila: fairness key = tenant")}
COLOURS = dict(zip(TENANTS, ("#f47067", "#57ab5a", "#39c5cf", "#539bf5"), strict=True))

Sample = tuple[float, dict[str, dict[str, int]]]


def main() -> None:
    race = Race(10_000, 100, 1_000)
    samples: list[Sample] = []
    with own_broker() as addr:
        race.fill(addr)
        with race.running(addr):
            started_at = time.monotonic()
            finished = False
            while not finished:
                race.check()
                finished = race.finished
                counts = {
                    queue: dict(Counter(one.tenant for one in list(seen)))
                    for queue, seen in race.delivered.items()
                }
                samples.append((time.monotonic() - started_at, counts))
                time.sleep(SAMPLE_S)
    Path(__file__).with_suffix(".svg").write_text(picture(race, samples))


def picture(race: Race, samples: list[Sample]) -> str:
    duration_s = samples[-1][0] + HOLD_S
    bars: list[str] = []
    rules: list[str] = []
    for queue, (left, title) in COLUMNS.items():
        bars.append(text(left, 40, title, "title"))
        for row, tenant in enumerate(TENANTS):
            top = 58 + row * LINE
            name = f"{queue}-{row}"
            total = race.sent_by(tenant)
            shares = [(at_s, counts[queue].get(tenant, 0) / total) for at_s, counts in samples]
            still = next(share for at_s, share in shares if at_s >= STILL_S)
            bars += [
                text(left, top + 12, tenant),
                f'<rect x="{left + 92}" y="{top}" width="{BAR_WIDTH}" height="15" class="rail"/>',
                f'<rect x="{left + 92}" y="{top}" width="{still * BAR_WIDTH:.0f}" height="15"'
                f' id="{name}" class="bar" fill="{COLOURS[tenant]}"/>',
                text(left + 92 + BAR_WIDTH + 12, top + 12, f"{total:,}", "dim"),
            ]
            rules.append(f"#{name}{{animation-name:{name}}}")
            rules.append(keyframes(name, shares, duration_s))
    lines = closing(race).strip("\n").splitlines()
    table = [text(24, 180 + number * 19, line) for number, line in enumerate(lines) if line.strip()]
    height = 180 + len(lines) * 19 + 8
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"
 role="img" aria-label="One noisy tenant and three quiet ones, in FIFO order and in Fila's">
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#cdd9e5;white-space:pre}}
.title{{font-weight:bold}} .dim{{fill:#768390}} .rail{{fill:#2d333b}}
.bar{{animation:{duration_s:.1f}s linear infinite}}
{"".join(rules)}
@media (prefers-reduced-motion){{.bar{{animation:none}}}}
</style>
<rect width="{WIDTH}" height="{height}" rx="8" fill="#1c2128"/>
{chr(10).join([*bars, *table])}
</svg>
"""


def keyframes(name: str, shares: list[tuple[float, float]], duration_s: float) -> str:
    """Only the moments where the bar changes its pace; between them it moves evenly."""
    kept = [shares[0]]
    for before, here, after in zip(shares, shares[1:], shares[2:], strict=False):
        bent = abs((here[1] - before[1]) / (here[0] - before[0]) - _pace(here, after)) > 0.05
        if bent or here[0] - kept[-1][0] > 2:
            kept.append(here)
    kept.append(shares[-1])
    steps = "".join(f"{at / duration_s:.2%}{{{_width(share)}}}" for at, share in kept)
    return f"@keyframes {name}{{{steps}100%{{{_width(kept[-1][1])}}}}}"


def _width(share: float) -> str:
    return f"width:{share * BAR_WIDTH:.1f}px"


def _pace(here: tuple[float, float], after: tuple[float, float]) -> float:
    return (after[1] - here[1]) / (after[0] - here[0])


def text(left: int, baseline: int, content: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{left}" y="{baseline}"{kind} xml:space="preserve">{escape(content)}</text>'


if __name__ == "__main__":
    main()
