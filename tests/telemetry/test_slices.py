"""Who watches takes the loop for a slice at a time, however many queues and keys there are."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from typing import Any, cast

import pytest

from fila.broker.options import Options
from fila.core import snapshot
from fila.core.settings import Settings
from fila.core.view import View
from fila.edges.failures import Failures
from fila.edges.http import overview as page
from fila.edges.http.connection import PART_BYTES, HttpConnection, HttpLimits
from fila.edges.http.message import Request, Response
from fila.edges.http.overview import Sees, overview
from fila.edges.http.views import SLICE_LANES, Views
from fila.edges.inbound import Inbound
from fila.edges.outbound import Outbound
from fila.server.collector import collect_little
from fila.telemetry import pulse as beating
from fila.telemetry.observer import Observer
from fila.telemetry.pulse import Pulse
from tests import loops
from tests.broker.turns import Bench
from tests.edges.wires import sessions_of

QUEUES = 1_000
KEYS = 3_000


def bench_with_queues(count: int = QUEUES) -> Bench:
    bench = Bench()
    for at in range(count // 2):
        bench.broker.create_queue(f"queue-{at}", None, None, 30_000)  # and its dead letters
    bench.loop.settle()
    return bench


def sleeps(monkeypatch: pytest.MonkeyPatch, calls: Counter[str]) -> list[Counter[str]]:
    """What was called between two times that others had their turn."""
    slices: list[Counter[str]] = []

    async def sleep(seconds: float) -> None:
        slices.append(Counter(calls))
        calls.clear()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slices


def counted(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, calls: Counter[str]) -> None:
    real = getattr(kind, name)

    def call(self: Any, *args: Any) -> Any:
        calls[name] += len(args[-1]) if args and isinstance(args[-1], list) else 1
        return real(self, *args)

    monkeypatch.setattr(kind, name, call)


def test_a_beat_meets_queues_and_counts_buckets_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_with_queues()
    for at in range(900):
        bench.broker.set_config(f"throttle.t-{at}", "10,10")
    bench.loop.settle()
    pulse = Pulse(bench.broker.machine.view, lambda: bench.time.wall_ns, 20)
    calls: Counter[str] = Counter()
    for name in ("queue", "buckets", "throttled"):
        counted(monkeypatch, View, name, calls)
    slices = sleeps(monkeypatch, calls)
    loops.run(pulse.beat())
    assert len(pulse.queues) == QUEUES and len(pulse.buckets.names) == 20
    assert sum(one["buckets"] for one in slices) >= 750
    assert max(one["buckets"] for one in slices) <= beating.SLICE_BUCKETS
    met = [one["queue"] for one in slices if one["queue"]]
    # One that is met and one that is read costs a look at it each, and one at its dead letters.
    assert max(met) <= 3 * beating.SLICE_QUEUES and len(met) > 20


def test_the_overview_is_made_some_queues_at_a_time_and_is_one_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_with_queues()
    pulse = Pulse(bench.broker.machine.view, lambda: bench.time.wall_ns, 20)
    loops.run(pulse.beat())
    sessions = sessions_of(bench)
    views = Views(pulse, sessions, Observer(lambda: 0, None), lambda name: [])
    calls: Counter[str] = Counter()
    counted(monkeypatch, Views, "row", calls)
    slices = sleeps(monkeypatch, calls)
    sees = Sees(lambda name: name != "queue-7", lambda name: True)
    parts = loops.run(overview(views, sees, 300, False))
    found = json.loads(b"".join(parts))
    assert len(found["queues"]) == found["totals"]["queues"] == QUEUES - 1
    assert [one["name"] for one in found["queues"]] == sorted(set(pulse.queues) - {"queue-7"})
    assert found["queues"][0]["series"]["points"]["depth"] == [0]
    assert max(one["row"] for one in slices) <= page.SLICE_ROWS
    assert max(map(len, parts)) < 200_000


def test_the_buckets_of_a_queue_are_looked_for_some_keys_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.broker.create_queue("q", None, None, 30_000)
    bench.broker.set_config("throttle.t", "10,10")
    body = b"\0\0\0\0\0\0"
    bench.broker.enqueue_with(
        "q", [Options(body, 0, b"", b"k-%d" % at, 1, (b"t",)) for at in range(KEYS)]
    )
    bench.loop.settle()
    pulse = Pulse(bench.broker.machine.view, lambda: bench.time.wall_ns, 20)
    loops.run(pulse.beat())
    views = Views(pulse, sessions_of(bench), Observer(lambda: 0, None), lambda name: [])
    calls: Counter[str] = Counter()
    counted(monkeypatch, View, "bucket_names", calls)
    slices = sleeps(monkeypatch, calls)
    found = loops.run(views.queue("q", 0, True))
    assert [one["name"] for one in found["buckets"]] == ["t"]
    looked = [one["bucket_names"] for one in slices]
    assert looked == [SLICE_LANES] * (KEYS // SLICE_LANES - 1)


def test_the_journals_snapshot_takes_as_many_turns_as_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(settings=Settings(turn_work=64))
    machine = bench.broker.machine
    machine.record_events(True)
    bench.broker.create_queue("q", None, None, 30_000)
    body = b"\0\0\0\0\0\0"
    for at in range(KEYS):
        bench.broker.enqueue_with("q", [Options(body, 0, b"", b"k-%d" % at, 1, ())])
    bench.loop.settle()
    bench.broker.create_queue("a", None, None, 30_000)
    bench.loop.settle()
    told: list[int] = []
    real = snapshot._told

    def tell(state: Any, queue: Any, names: list[bytes]) -> Any:
        told.append(len(names))
        return real(state, queue, names)

    monkeypatch.setattr(snapshot, "_told", tell)
    turns_before = len(bench.committer.commits)
    done: list[int] = []
    bench.broker.record_snapshot(2_000, lambda: done.append(len(bench.committer.commits)))
    bench.loop.settle()
    assert sum(told) == 2_000 and max(told) <= snapshot.STEP_KEYS
    assert len(done) == 1
    steps = KEYS / snapshot.STEP_KEYS + 2_000 / snapshot.STEP_KEYS
    assert done[0] - turns_before >= steps // 2 - 1, "two steps of a turn at most"
    whole = snapshot.snapshot(machine.state, 10)
    assert [event.queue for event in whole] == ["q"] * 10


class _Transport:
    def __init__(self) -> None:
        self.writes: list[int] = []
        self.protocol: HttpConnection | None = None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.writes.append(len(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> Any:
        return None

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    abort = close


@pytest.mark.parametrize("whole", [True, False])
def test_a_large_answer_is_written_in_parts_and_what_waits_counts_as_unsent(whole: bool) -> None:
    size = 3_000_000
    unsent: list[int] = []

    async def serve(request: Request) -> Response:
        body = b"x" * size if whole else (b"x" * 1_000_000, b"y" * 1_999_999, b"z")
        return Response(200, body)

    async def run() -> list[int]:
        connection = HttpConnection(
            serve,
            HttpLimits(),
            asyncio.get_running_loop(),
            lambda _: None,
            lambda _: None,
            Failures(),
            Outbound(),
            Inbound(),
        )
        transport = _Transport()
        connection.connection_made(cast(asyncio.BaseTransport, transport))
        connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(100):
            await asyncio.sleep(0)
            unsent.append(connection.unsent_bytes())
        connection.connection_lost(None)
        return transport.writes

    writes = loops.run(run())
    assert max(writes) <= PART_BYTES and sum(writes) > size
    assert max(unsent) > size // 2 and unsent[-1] == 0
    waiting = [one for one in unsent if one]
    assert waiting == sorted(waiting, reverse=True) and len(set(waiting)) > 5


def test_the_collector_never_looks_at_many_objects_at_once() -> None:
    before = gc.get_threshold()
    looked: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] < 2:
            young = range(info["generation"] + 1)
            looked.append(sum(len(gc.get_objects(generation=one)) for one in young))

    gc.collect()
    gc.freeze()
    collect_little()
    gc.callbacks.append(note)
    try:
        kept = [[at] for at in range(100_000)]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        gc.unfreeze()
    assert len(kept) == 100_000 and len(looked) > 10
    assert max(looked) <= 25_100
