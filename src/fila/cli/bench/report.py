"""What was measured, for people and for programs.

Owns the figures made of measurements: percentiles, shares, and their picture. Pure.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, Final

from fila import __version__
from fila.cli.bench.histogram import PERCENTILES, Histogram
from fila.cli.bench.work import NOISY
from fila.cli.output import count_of, duration, say

_BAR: Final = 40


def latency(histogram: Histogram) -> dict[str, Any]:
    """Percentiles in ms, and how many took how long."""
    figures: dict[str, Any] = {
        f"p{percent:g}_ms": round(histogram.percentile_us(percent) / 1_000, 3)
        for percent in PERCENTILES
    }
    figures["max_ms"] = round(histogram.largest_us / 1_000, 3)
    figures["histogram"] = [
        {"below_ms": upper / 1_000, "messages": count} for upper, count in histogram.by_power()
    ]
    return figures


def shares(order: list[str], quiet: Counter[str]) -> dict[str, Any]:
    """What the keys got, from the order in which messages of each were received.

    `quiet_served_after`: deliveries until every quiet key had all of its messages; a queue that
    delivers oldest first needs all of them. Shares are compared while every key has messages left.
    """
    keys = [NOISY, *quiet]
    left = quiet.copy()
    while_all = served_after = 0
    for at, key in enumerate(order, 1):
        if key in left:
            left[key] -= 1
            if not left[key]:
                while_all = while_all or at
                del left[key]
                if not left:
                    served_after = at
                    break
    got = Counter(order[:while_all])
    counts = [got[key] for key in keys]
    squares = sum(count * count for count in counts)
    fair = while_all / len(keys)
    return {
        "messages": len(order),
        "keys": len(keys),
        "noisy_messages": order.count(NOISY),
        "quiet_messages": quiet.total(),
        "quiet_served_after": served_after,
        "oldest_first_would_need": len(order),
        "jain_index": round(sum(counts) ** 2 / (len(keys) * squares), 6) if squares else 0.0,
        "largest_share_error": (
            round(max(abs(count - fair) for count in counts) / fair, 6) if fair else 0.0
        ),
    }


def document(
    args: argparse.Namespace, addresses: list[str], results: list[dict[str, Any]]
) -> dict[str, Any]:
    names = ("size", "batch", "keys", "queues", "producers", "consumers", "prefetch", "rate")
    settings = {name: getattr(args, name) for name in names}
    settings["duration_s"] = args.duration
    return {
        "client_version": __version__,
        "addresses": addresses,
        "settings": settings,
        "results": results,
    }


def say_result(result: dict[str, Any]) -> None:
    say(result["category"])
    if "keys" in result:
        _say_shares(result)
    else:
        _say_throughput(result)
    if "latency" in result:
        _say_latency(result["latency"])
    say("")


def _say_throughput(result: dict[str, Any]) -> None:
    say(
        f"  {result['messages_per_s']:,} messages/s, {result['mb_per_s']:,} MB/s"
        f"  ({count_of(result['messages'], 'message')} in {result['seconds']:.1f} s)"
    )
    if result["ended_early"]:
        say("  ended early: --stored-max was reached")
    if not result.get("emptied", True):
        say("  the queue was not empty after --duration")


def _say_latency(figures: dict[str, Any]) -> None:
    names = [name for name in figures if name.endswith("_ms")]
    say("  " + "  ".join(f"{name[:-3]} {duration(figures[name])}" for name in names))
    rows = figures["histogram"]
    most = max((row["messages"] for row in rows), default=0)
    for row in rows:
        # Whatever was seen at all gets a mark.
        bar = "█" * max(round(row["messages"] / most * _BAR), row["messages"] > 0)
        say(f"  below {row['below_ms']:>9.3f} ms  {row['messages']:>9,}  {bar}".rstrip())


def _say_shares(result: dict[str, Any]) -> None:
    others = count_of(result["keys"] - 1, "quiet key")
    say(
        f"  one key with {result['noisy_messages']:,} messages first, then {others} with "
        f"{result['quiet_messages']:,}"
    )
    say(
        f"  the quiet ones were served after {result['quiet_served_after']:,} deliveries; "
        f"oldest first needs {result['oldest_first_would_need']:,}"
    )
    say(
        f"  shares while all had messages: Jain's index {result['jain_index']:.4f}, "
        f"largest error {result['largest_share_error']:.2%}"
    )
