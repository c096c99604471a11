"""The race while it runs: bars on a terminal, a line per second anywhere else.

Owns the picture. Reads the race and changes nothing in it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from fila.cli.demo.race import FAIR, FIFO, TENANTS, Race

_FRAME_S: Final = 0.08
_LINE_S: Final = 1.0
_BAR_CELLS: Final = 20
_COLUMNS_MIN: Final = 80
_TITLES: Final = {FIFO: "FIFO: a queue without a hook", FAIR: "Fila: fairness key = tenant"}
_COLOURS: Final = dict(zip(TENANTS, ("31", "32", "36", "34"), strict=True))
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def show(race: Race, silent: bool = False) -> None:
    """Returns when every message of both queues has been handled."""
    if silent:
        while not race.finished:
            race.check()
            time.sleep(_FRAME_S)
    elif _can_draw():
        _draw(race)
    else:
        _tell(race)
    race.check()


def frame(race: Race, counts: Mapping[str, Mapping[str, int]], colour: bool) -> list[str]:
    """One picture: a column per queue, a bar per tenant."""
    titles = "      ".join(f"{_TITLES[queue]:<36}" for queue in (FIFO, FAIR))
    lines = [titles.rstrip()]
    for tenant in TENANTS:
        halves = []
        for queue in (FIFO, FAIR):
            done = counts[queue].get(tenant, 0)
            bar = _bar(done / race.sent_by(tenant))
            if colour:
                bar = f"\x1b[{_COLOURS[tenant]}m{bar}\x1b[0m"
            halves.append(f"{tenant:<10} {bar} {done:>7,}")
        lines.append("   ".join(halves))
    return lines


def _draw(race: Race) -> None:
    write = sys.stdout.write
    colour = "NO_COLOR" not in os.environ
    drawn = 0
    write("\x1b[?25l")  # hide the cursor while it would jump about
    try:
        while True:
            race.check()
            finished = race.finished  # before counting, so that the last frame is complete
            lines = frame(race, _counts(race), colour)
            if drawn:
                write(f"\x1b[{drawn}A")
            write("".join(f"\x1b[2K{line}\n" for line in lines))
            sys.stdout.flush()
            drawn = len(lines)
            if finished:
                return
            time.sleep(_FRAME_S)
    finally:
        write("\x1b[?25h")
        sys.stdout.flush()


def _tell(race: Race) -> None:
    names = "  ".join(TENANTS)
    sys.stdout.write(f"        {'FIFO':<{len(names)}}   Fila\n        {names}   {names}\n")
    started_at = time.monotonic()
    finished = False
    while not finished:
        race.check()
        time.sleep(_LINE_S)
        finished = race.finished
        counts = _counts(race)
        halves = [
            "  ".join(f"{counts[queue].get(tenant, 0):>{len(tenant)},}" for tenant in TENANTS)
            for queue in (FIFO, FAIR)
        ]
        sys.stdout.write(f"{time.monotonic() - started_at:4.0f} s  {halves[0]}   {halves[1]}\n")
        sys.stdout.flush()


def _counts(race: Race) -> dict[str, Counter[str]]:
    return {
        queue: Counter([one.tenant for one in list(seen)]) for queue, seen in race.delivered.items()
    }


def _bar(share: float) -> str:
    eighths = int(share * _BAR_CELLS * 8)
    full, part = divmod(eighths, 8)
    bar = "█" * full + (_BLOCKS[part] if part else "")
    return bar.ljust(_BAR_CELLS, "·")


def _can_draw() -> bool:
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        _BLOCKS.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return shutil.get_terminal_size().columns >= _COLUMNS_MIN
