"""`fila stats [QUEUE]`.

Owns the texts and JSON shapes of queue statistics, for `queue list` and `queue inspect` too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection, standing
from fila.cli.key_override import terms_text
from fila.cli.options import Subparsers, command
from fila.cli.output import duration, moment, say, say_json, shown, table
from fila.cli.settings import lines

if TYPE_CHECKING:
    from fila.client.calls import QueueStats
    from fila.client.sync import FilaClient
    from fila.wire.bodies import LimitUse, OpenBatch, QueueSummary


_MINUTE_MS: Final = 60_000


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "stats",
        "show what a queue, or the whole broker, holds",
        about="Show one queue in detail, as `fila queue inspect` does, or, without a name,\n"
        "the sum of all queues and the list of them.",
        examples="  fila stats\n  fila stats orders\n  fila stats orders --json | jq .depth\n"
        "  fila stats --json | jq .limits",
    )
    parser.add_argument("queue", metavar="QUEUE", nargs="?", help="default: all queues")


def run(args: argparse.Namespace) -> int:
    if args.queue is not None:
        return show_one(args, args.queue)
    with connection.open_client(args) as client:
        queues = client.list_queues()
        stands = standing.of_queues(client)
        limits = _limits(client)
    totals = {
        "depth": sum(one.depth for one in queues),
        "in_flight": sum(one.in_flight for one in queues),
        "active_consumers": sum(one.active_consumers for one in queues),
    }
    if args.json:
        documents = [summary_document(one, stands) for one in queues]
        say_json({**totals, "queues": documents, "limits": [one._asdict() for one in limits]})
        return 0
    say(f"Queues: {len(queues)}")
    say(f"Depth: {totals['depth']}")
    say(f"In-flight: {totals['in_flight']}")
    say(f"Active consumers: {totals['active_consumers']}")
    if queues:
        say("\n" + summaries_text(queues, stands))
    if limits:
        say("\n" + _limits_text(limits))
    return 0


def _limits(client: FilaClient) -> list[LimitUse]:
    """How near the broker's limits are; nothing for a key without admin on all of it."""
    from fila.client.errors import ForbiddenError, ProtocolError

    try:
        return client.get_limits()
    except (ForbiddenError, ProtocolError):
        return []  # or a broker of an earlier version


def _limits_text(limits: Sequence[LimitUse]) -> str:
    rows = [
        (one.name, one.used, one.max, f"{100 * one.used / one.max:.0f} %", one.reached)
        for one in limits
    ]
    return table(("LIMIT", "USED", "MAX", "OF IT", "REACHED"), rows)


def show_one(args: argparse.Namespace, queue: str) -> int:
    with connection.open_client(args) as client:
        found = client.get_stats(queue)
        streams = _streams(client, queue)
        paused, paused_keys, version, overrides = standing.of_queue(client, queue)
        settings, created_ms = _settings(client, queue)
    if args.json:
        stopped = {"paused": paused, "paused_keys": paused_keys, "overrides": overrides}
        document = {**_document(queue, found), **stopped, "batches": streams}
        kept = {"created_ms": created_ms, "settings": settings}
        say_json({**document, "version": version, **kept})
    else:
        say(_text(queue, found, version))
        if settings is not None:
            say(f"\n{_settings_text(settings, created_ms)}")
        stops = [standing.pause_lines("Queue", {queue: paused} if paused else {})]
        stops.append(standing.pause_lines("Key", paused_keys))
        stops += [
            f'Key "{shown(name)}" is overridden: {shown(terms_text(one))}'
            for name, one in overrides.items()
        ]
        if any(stops):
            say("\n" + "\n".join(filter(None, stops)))
        if streams:
            rows = [tuple(one.values()) for one in streams]
            say("\n" + table(("BATCHES OF", "OPEN", "MESSAGES", "AGE_S", "ENDS_IN_S"), rows))
    return 0


def _settings(client: FilaClient, queue: str) -> tuple[dict[str, str] | None, int | None]:
    """What the queue is told to be, and when it was made; neither for a key that may not know."""
    from fila.client.errors import FilaError

    try:
        settings = client.get_queue(queue).settings
    except FilaError:
        return None, None  # or a broker of an earlier version
    try:
        return settings, client.get_queue(queue, 1).at_ms
    except FilaError:
        return settings, None  # its first version is not kept any more


def _settings_text(settings: dict[str, str], created_ms: int | None) -> str:
    if created_ms is None:
        return lines(settings)
    age_ms = time.time() * 1_000 - created_ms
    age = f"{duration(age_ms)} ago" if age_ms >= _MINUTE_MS else "just now"
    return f"created: {moment(created_ms)}, {age}\n{lines(settings)}"


def _streams(client: FilaClient, queue: str) -> list[dict[str, Any]]:
    """Open lease batches by stream: the batches `s/0`, `s/1/x` are of the stream `s`."""
    from fila.client.errors import ProtocolError

    try:
        batches = client.list_batches(queue)
    except ProtocolError:
        return []  # a broker of an earlier version knows no batches
    now_ms = time.time() * 1000
    streams: dict[str, list[OpenBatch]] = {}
    for one in batches:
        streams.setdefault(one.name.partition("/")[0], []).append(one)
    return [
        {
            "stream": name,
            "open": len(found),
            "messages": sum(one.messages for one in found),
            "age_s": _seconds(now_ms - min(one.leased_at_ms for one in found)),
            "ends_in_s": _seconds(min(one.expires_at_ms for one in found) - now_ms),
        }
        for name, found in streams.items()
    ]


def _seconds(ms: float) -> float:
    return round(max(0.0, ms) / 1000, 1)


def summaries_text(queues: Sequence[QueueSummary], stands: standing.Standing) -> str:
    text = table(
        ("NAME", "DEPTH", "IN_FLIGHT", "CONSUMERS"),
        [(one.name, one.depth, one.in_flight, one.active_consumers) for one in queues],
    )
    lines = stands.lines()
    return f"{text}\n\n{lines}" if lines else text


def summary_document(queue: QueueSummary, stands: standing.Standing) -> dict[str, Any]:
    return {
        "name": queue.name,
        "depth": queue.depth,
        "in_flight": queue.in_flight,
        "active_consumers": queue.active_consumers,
        "paused": stands.paused.get(queue.name),
        "quarantined": stands.quarantined.get(queue.name),
    }


def _text(queue: str, found: QueueStats, version: int | None) -> str:
    fairness_keys = table(
        ("KEY", "PENDING", "DEFICIT", "WEIGHT"),
        [(one.key, one.pending, one.deficit, one.weight) for one in found.fairness_keys],
    )
    throttle_keys = table(
        ("KEY", "TOKENS", "RATE/S", "BURST"),
        [(one.key, one.tokens, one.rate_per_second, one.burst) for one in found.throttle_keys],
    )
    told = f"Settings: version {version}\n" if version is not None else ""
    return (
        f"Queue: {shown(queue)}\n"
        f"Depth: {found.depth}\n"
        f"In-flight: {found.in_flight}\n"
        f"Active fairness keys: {found.active_fairness_keys}\n"
        f"Active consumers: {found.active_consumers}\n"
        f"Quantum: {found.quantum}{' bytes' if found.cost == 'bytes' else ''}\n"
        f"{told}"
        f"\n{fairness_keys}\n"
        f"\n{throttle_keys}"
    )


def _document(queue: str, found: QueueStats) -> dict[str, Any]:
    return {
        "queue": queue,
        "depth": found.depth,
        "in_flight": found.in_flight,
        "active_fairness_keys": found.active_fairness_keys,
        "active_consumers": found.active_consumers,
        "quantum": found.quantum,
        "cost": found.cost,
        "fairness_keys": [one._asdict() for one in found.fairness_keys],
        "throttle_keys": [one._asdict() for one in found.throttle_keys],
    }
