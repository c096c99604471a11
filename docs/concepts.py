"""Draws the pictures of docs/concepts.md: what the broker's core does, in simulated time.

    python docs/concepts.py

Who is delivered when in them was asked of the core; the same sources draw the same pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "playground"))

from fila.core.entry import message_id  # noqa: E402
from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment  # noqa: E402
from simulation import SECOND, START, Broker, throttle_key  # noqa: E402

PICTURES = Path(__file__).with_name("pictures")
WIDTH = 800
COLOURS = {"noisy": "#f47067", "acme": "#57ab5a", "globex": "#39c5cf", "initech": "#539bf5"}
LINE, FILL, DIM = "#768390", "#2d333b", "#cdd9e5"
WORK_NS = SECOND // 100


class Delivered(NamedTuple):
    at_s: float
    tenant: str


class Watched(Broker):
    """A broker that remembers whom it delivered, and when."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(workers=1, work_ns=WORK_NS)
        self._names = names
        self._number = 0
        self.seen: list[Delivered] = []
        self._whose: dict[bytes, str] = {}

    def send(self, tenant: str, count: int, assignment: Assignment, at_s: float = 0.0) -> None:
        for _ in range(count):
            self._number += 1
            id = self._number.to_bytes(16, "big")
            self._whose[id] = tenant
            at = START + int(at_s * SECOND)
            self.arrive(at, self._names.index(tenant), id, assignment)

    def _delivered(self, deliveries: list) -> None:
        now = self._turn.machine.state.now
        for delivery in deliveries:
            for entry in delivery.entries:
                whose = self._whose[message_id(entry)]
                self.seen.append(Delivered((now - START) / SECOND, whose))
        super()._delivered(deliveries)


def main() -> int:
    stale = []
    for name, text in pictures().items():
        path = PICTURES / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        print(f"docs/pictures/{name} is out of date: run python docs/concepts.py")
    return 1 if stale else 0


def pictures() -> dict[str, str]:
    return {
        "concepts-life.svg": life(),
        "concepts-turns.svg": turns(),
        "concepts-bucket.svg": bucket(),
        "concepts-lease.svg": lease(),
    }


# --- the life of a message


def life() -> str:
    boxes = {"pending": (180, 34), "leased": (420, 34), "acked": (640, 34), "dead": (640, 144)}
    titles = {"acked": "acked: gone", "dead": "dead-letter queue"}
    parts = [arrow([(40, 56), (178, 56)]), text(74, 48, "enqueue")]
    for name, (left, top) in boxes.items():
        width = 136 if name in titles else 120
        parts.append(rectangle(left, top, width, 44, FILL, LINE))
        middle = left + width / 2
        parts.append(text(middle, top + 27, titles.get(name, name), anchor="middle", small=True))
    parts += [
        arrow([(300, 56), (418, 56)]),
        text(358, 48, "delivered", anchor="middle"),
        arrow([(540, 56), (638, 56)]),
        text(588, 48, "ack", anchor="middle"),
        arrow([(470, 78), (470, 124), (250, 124), (250, 80)], "#f69d50"),
        text(360, 116, "failed: tried again", anchor="middle"),
        arrow([(510, 78), (510, 166), (638, 166)], "#f47067"),
        text(518, 158, "given up"),
        arrow([(708, 188), (708, 214), (220, 214), (220, 80)], "#57ab5a"),
        text(464, 206, "redrive", anchor="middle"),
    ]
    about = "A message is pending, leased, then gone; a failed one is retried or a dead letter"
    return drawing(234, about, parts)


# --- turns


def turns() -> str:
    names = ["noisy", "acme", "globex"]
    fifo, fair, weighted = Watched(names), Watched(names), Watched(names)
    for broker, weight in ((fifo, 0), (fair, 1), (weighted, 3)):
        for tenant, count in (("noisy", 12), ("acme", 6), ("globex", 3)):
            own = Assignment(tenant.encode(), weight if tenant == "acme" else 1, ())
            broker.send(tenant, count, own if weight else DEFAULT_ASSIGNMENT)
        broker.until(START + 10 * SECOND)
    rows = (
        ("first in, first out", fifo),
        ("a key per tenant", fair),
        ("… and acme has weight 3", weighted),
    )
    parts = []
    for left, tenant in zip((24, 110, 190), names, strict=True):
        parts.append(rectangle(left, 22, 16, 16, COLOURS[tenant]))
        parts.append(text(left + 22, 35, tenant))
    parts.append(text(776, 35, "delivered first … last  ", anchor="end"))
    for row, (title, broker) in enumerate(rows):
        top = 60 + row * 46
        parts.append(text(24, top + 20, title))
        for at, one in enumerate(broker.seen):
            colour = COLOURS[one.tenant]
            parts.append(rectangle(246 + at * 25, top, 21, 30, colour, rounded=4))
    about = "The order in which the same messages of three tenants are delivered, three times"
    return drawing(204, about, parts)


# --- a bucket


def bucket() -> str:
    """Ten messages that need a token, ten that do not; two tokens a second, two at most."""
    names = ["noisy", "acme"]
    broker = Watched(names)
    broker.limit(0, 2.0)  # a burst of two, as the playground sets it
    seconds, left, right, base = 5.0, 180, 776, 150
    for at in range(10):
        key = throttle_key(0)
        broker.send("noisy", 1, Assignment(b"a", 1, (key,)), at_s=0.5)
        broker.send("acme", 1, Assignment(b"a", 1, ()), at_s=0.5 + at * 0.4)
    broker.until(START + int(seconds * SECOND))

    def across(at_s: float) -> float:
        return left + (right - left) * at_s / seconds

    parts = []
    for second in range(int(seconds) + 1):
        parts.append(line([(across(second), 24), (across(second), base)], FILL))
        parts.append(text(across(second), base + 20, f"{second} s", anchor="middle"))
    for top, tenant, title in ((40, "noisy", "needs a token"), (74, "acme", "needs none")):
        parts.append(text(24, top + 14, title))
        for one in broker.seen:
            if one.tenant == tenant:
                colour = COLOURS[tenant]
                parts.append(rectangle(across(one.at_s) - 4, top, 8, 20, colour, rounded=3))
    parts.append(text(24, 128, "tokens left"))
    level = [(across(at_s), base - tokens * 16) for at_s, tokens in tokens_of(broker, seconds)]
    parts.append(line(level, "#f69d50"))
    about = "Of one tenant's messages those that need a token wait for it, and the others do not"
    return drawing(186, about, parts)


def tokens_of(broker: Watched, seconds: float) -> Iterator[tuple[float, float]]:
    """The level: two a second, two at most, less one for each delivery."""
    before, tokens = 0.0, 2.0
    for at_s, _ in [one for one in broker.seen if one.tenant == "noisy"]:
        full_s = before + (2.0 - tokens) / 2.0
        if full_s < at_s:
            yield full_s, 2.0
        tokens = min(2.0, tokens + (at_s - before) * 2.0)
        assert tokens > 0.999, "the core delivered without a token"
        yield at_s, tokens
        tokens, before = tokens - 1.0, at_s
        yield at_s, tokens
    yield seconds, min(2.0, tokens + (seconds - before) * 2.0)


# --- a lease


def lease() -> str:
    left, scale = 180, 11.6

    def across(at_s: float) -> float:
        return left + at_s * scale

    parts = []
    for second in range(0, 51, 10):
        parts.append(line([(across(second), 24), (across(second), 142)], FILL))
        parts.append(text(across(second), 162, f"{second} s", anchor="middle"))
    first, second_one, beating = COLOURS["globex"], COLOURS["acme"], COLOURS["initech"]
    parts += [
        text(24, 48, "worker 1"),
        rectangle(across(0), 34, scale * 30, 20, first, rounded=3),
        inside(across(0) + 8, 48, "leased for 30 s; the worker dies"),
        text(24, 82, "worker 2"),
        rectangle(across(30), 68, scale * 12, 20, second_one, rounded=3),
        inside(across(30) + 8, 82, "again, then ack"),
        text(24, 116, "with a heart-beat"),
        rectangle(across(0), 102, scale * 46, 20, beating, rounded=3),
        inside(across(0) + 8, 116, "extended every 10 s while it works, then ack"),
    ]
    for beat in (10, 20, 30, 40):
        parts.append(line([(across(beat), 122), (across(beat), 132)], DIM))
    about = "A lease that runs out is delivered again; a heart-beat lets it end later"
    return drawing(180, about, parts)


# --- what pictures are made of


def drawing(height: int, about: str, parts: list[str]) -> str:
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"
 role="img" aria-label="{escape(about)}">
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:{DIM}}}
.small{{font-size:12px}} .inside{{fill:#1c2128;font-size:13px}}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{DIM}"/></marker></defs>
<rect width="{WIDTH}" height="{height}" rx="8" fill="#1c2128"/>
{chr(10).join(parts)}
</svg>
"""


def rectangle(
    left: float,
    top: float,
    width: float,
    height: float,
    fill: str,
    edge: str = "",
    rounded: int = 3,
) -> str:
    stroke = f' stroke="{edge}"' if edge else ""
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' rx="{rounded}" fill="{fill}"{stroke}/>'
    )


def line(points: list[tuple[float, float]], colour: str, end: str = "") -> str:
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"{end}/>'


def arrow(points: list[tuple[float, float]], colour: str = LINE) -> str:
    return line(points, colour, ' marker-end="url(#tip)"')


def inside(left: float, baseline: float, content: str) -> str:
    return f'<text x="{left:.1f}" y="{baseline:.1f}" class="inside">{escape(content)}</text>'


def text(
    left: float, baseline: float, content: str, anchor: str = "start", small: bool = False
) -> str:
    kind = ' class="small"' if small else ""
    return (
        f'<text x="{left:.1f}" y="{baseline:.1f}" text-anchor="{anchor}"{kind}>'
        f"{escape(content)}</text>"
    )


if __name__ == "__main__":
    sys.exit(main())
