"""What `fila bench` measures, one function a category, and the queues they need.

Owns the names of the queues and that they are removed: at the end, after a failure, after Ctrl-C.
"""

from __future__ import annotations

import argparse
import copy
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection
from fila.cli.bench import CATEGORIES, report, work
from fila.cli.bench.crew import Work, perform
from fila.cli.bench.histogram import added
from fila.cli.bench.work import STAMP_BYTES, Kind, Measured
from fila.cli.failure import Failure, usage
from fila.cli.output import note, say_json

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

_BY_TENANT: Final = """function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"] }
end"""
_EVER_S: Final = 3_600.0
_MILLION: Final = 1_000_000

Result = dict[str, Any]


def run(args: argparse.Namespace) -> int:
    if args.size < STAMP_BYTES:
        raise usage(
            f"--size {args.size} is too small: payloads carry a time of {STAMP_BYTES} bytes"
        )
    chosen = args.category or CATEGORIES
    bench = Bench(args)
    results = []
    for name in dict.fromkeys(chosen):
        result = _MEASURES[name](bench)
        results.append(result)
        if not args.json:
            report.say_result(result)
    if args.json:
        say_json(report.document(args, bench.addresses, results))
    return 0


class Bench:
    """The brokers, and what was asked for."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        given = connection.target(args).addr
        self.addresses = [one.strip() for one in given.split(",") if one.strip()]
        if not self.addresses:
            raise usage("--addr names no broker")
        # As many messages as may be stored at once.
        self.messages_max = max(args.stored_max // args.size, args.batch)

    def opens(self, at: int) -> Callable[[], FilaClient]:
        """How the process with this number connects: processes take the addresses in turn."""
        args = copy.copy(self.args)
        args.addr = self.addresses[at % len(self.addresses)]
        return lambda: connection.open_client(args)

    @contextmanager
    def queues(self, count: int, keys: int) -> Iterator[list[str]]:
        run_id = secrets.token_hex(3)
        names = [f"bench-{run_id}-{number + 1}" for number in range(count)]
        # The client is closed before processes are forked: they must not share its connection.
        try:
            with self.opens(0)() as client:
                for name in names:
                    client.create_queue(name, on_enqueue=_BY_TENANT if keys else None)
            yield names
        finally:
            if self.args.keep:
                note(f"kept: {', '.join(names)}")
            else:
                self._remove(names)

    def _remove(self, names: list[str]) -> None:
        from fila.client.errors import FilaError, QueueNotFoundError

        try:
            with self.opens(0)() as client:
                for name in names:
                    with suppress(QueueNotFoundError):  # interrupted before it was made
                        client.delete_queue(name)
        except (FilaError, Failure) as error:
            # What went wrong first is told by what is on its way; this is about what is left.
            note(f"Note: the broker may still have {', '.join(names)}: {error}")

    def perform(
        self, works: list[Work], verb: str, warmup_s: float = 0.0, duration_s: float = _EVER_S
    ) -> list[Any]:
        return perform(works, warmup_s, duration_s, verb, quiet=self.args.json)

    def kind(self, queue: str, **changes: Any) -> Kind:
        args = self.args
        rate = (args.rate or 0) / args.producers
        return Kind(queue, args.keys, args.size, args.batch, rate)._replace(**changes)

    def producers(self, queues: list[str], waiting_max: int, ends: bool) -> list[Work]:
        args = self.args
        most = self.messages_max // args.producers if ends else 1 << 62
        return [
            work.produce(
                self.opens(at),
                self.kind(queues[at % len(queues)]),
                max(most, args.batch),
                max(waiting_max, args.batch),
            )
            for at in range(args.producers)
        ]

    def consumers(self, queues: list[str], until: int = 0) -> list[Work]:
        args = self.args
        # Every queue has one, even when fewer were asked for.
        return [
            work.consume(self.opens(at), queues[at % len(queues)], args.batch, args.prefetch, until)
            for at in range(max(args.consumers, len(queues)))
        ]

    def filled(self, queues: list[str], count: int) -> None:
        """So many messages in all, spread over the queues."""
        each, rest = divmod(count, len(queues))
        works = [
            work.fill(self.opens(at), work.stamped(self.kind(queue, rate=0.0), each + (at < rest)))
            for at, queue in enumerate(queues)
            if each + (at < rest)
        ]
        self.perform(works, "filled")


def enqueue_throughput(bench: Bench) -> Result:
    args = bench.args
    with bench.queues(args.queues, args.keys) as queues:
        producers = bench.producers(queues, 1 << 62, ends=True)
        measured = bench.perform(producers, "enqueued", args.warmup, args.duration)
    return _throughput(bench, "enqueue_throughput", measured)


def consume_throughput(bench: Bench) -> Result:
    args = bench.args
    count = min(args.messages, bench.messages_max)
    with bench.queues(args.queues, args.keys) as queues:
        bench.filled(queues, count)
        # No warm-up: the first message counts like the last.
        consumers = bench.consumers(queues, until=count)
        measured = bench.perform(consumers, "consumed", 0.0, args.duration)
    result = _throughput(bench, "consume_throughput", measured)
    result["emptied"] = result["messages"] >= count
    return result


def enqueue_consume_mixed(bench: Bench) -> Result:
    args = bench.args
    waiting_max = min(args.backlog, bench.messages_max)
    with bench.queues(args.queues, args.keys) as queues:
        works = bench.producers(queues, waiting_max, ends=False)
        producing = len(works)
        works += bench.consumers(queues)
        measured = bench.perform(works, "delivered", args.warmup, args.duration)
    result = _throughput(bench, "enqueue_consume_mixed", measured[producing:])
    result["latency"] = report.latency(added(one.latencies for one in measured[producing:]))
    return result


def enqueue_latency(bench: Bench) -> Result:
    args = bench.args
    with bench.queues(args.queues, args.keys) as queues:
        works = [
            work.pace(bench.opens(at), bench.kind(queues[at % len(queues)], batch=1))
            for at in range(args.producers)
        ]
        measured = bench.perform(works, "enqueued", args.warmup, args.duration)
    result = _throughput(bench, "enqueue_latency", measured)
    result["latency"] = report.latency(added(one.latencies for one in measured))
    return result


def fairness(bench: Bench) -> Result:
    """One key has half of all messages, and they are enqueued first."""
    args = bench.args
    keys = max(args.keys, 2)
    count = min(args.messages, bench.messages_max)
    each = max(count // 2 // (keys - 1), 1)
    quiet = Counter({f"quiet-{at + 1}": each for at in range(keys - 1)})
    noisy = max(count - quiet.total(), each)
    total = noisy + quiet.total()
    with bench.queues(1, keys) as (queue,):
        kind = bench.kind(queue, rate=0.0)
        bench.perform([work.fill(bench.opens(0), work.unequal(kind, noisy, quiet))], "filled")
        consumer = work.watch(bench.opens(0), queue, args.batch, args.prefetch, total)
        (order,) = bench.perform([consumer], "consumed", 0.0, _EVER_S)
    return {"category": "fairness", **report.shares(order, quiet)}


def _throughput(bench: Bench, category: str, measured: list[Measured]) -> Result:
    rate = sum(one.messages / one.seconds for one in measured if one.messages)
    seconds = max(one.seconds for one in measured)
    return {
        "category": category,
        "messages": sum(one.messages for one in measured),
        "seconds": round(seconds, 3),
        "messages_per_s": round(rate),
        "mb_per_s": round(rate * bench.args.size / _MILLION, 2),
        "ended_early": any(one.full for one in measured),
    }


_MEASURES: Final[dict[str, Callable[[Bench], Result]]] = {
    "enqueue_throughput": enqueue_throughput,
    "consume_throughput": consume_throughput,
    "enqueue_consume_mixed": enqueue_consume_mixed,
    "enqueue_latency": enqueue_latency,
    "fairness": fairness,
}
