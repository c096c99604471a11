"""One turn, one commit; nothing leaves before it; a commit that fails ends everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fila.core.rejection import MESSAGE_NOT_FOUND, OK, Rejection
from fila.core.settings import Settings
from fila.core.verdict import FailedItem, FailureVerdict
from fila.hooks.contract import NoHooks
from fila.storage.committer import FsyncCommitter
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore
from tests.broker.turns import Bench, Client, CountingCommitter, DelayingCommitter


def with_queue(bench: Bench, name: str = "q", visibility_ms: int = 0) -> Bench:
    assert bench.broker.create_queue(name, None, None, visibility_ms) is None
    bench.loop.settle()
    if isinstance(bench.committer, DelayingCommitter):
        bench.committer.release(len(bench.committer.waiting))
    return bench


def enqueue(bench: Bench, *bodies: bytes, queue: str = "q") -> list[bytes]:
    ids = bench.broker.enqueue(queue, list(bodies))
    assert isinstance(ids, list)
    return ids


def test_everything_of_one_round_is_one_commit() -> None:
    bench = with_queue(Bench())
    bench.committer.commits.clear()
    client = Client()
    bench.broker.consume("q", 1, client, 10)
    for n in range(20):
        enqueue(bench, b"%d" % n)
        bench.broker.reply(client, b"stored %d" % n)
    bench.broker.set_config("key", "value")
    assert bench.committer.commits == []
    assert client.got == []
    bench.loop.step()
    assert len(bench.committer.commits) == 1
    assert client.got[:20] == [b"stored %d" % n for n in range(20)]
    assert client.delivered() == [b"%d" % n for n in range(10)]
    assert client.flushes == 1
    assert bench.loop.soon == []


def test_a_lone_message_is_committed_and_delivered_in_its_own_round() -> None:
    bench = with_queue(Bench())
    client = Client()
    bench.broker.consume("q", 1, client, 10)
    bench.loop.settle()
    commits = len(bench.committer.commits)
    enqueue(bench, b"x")
    bench.loop.step()
    assert len(bench.committer.commits) == commits + 1
    assert client.delivered() == [b"x"]


def test_a_turn_that_changed_nothing_stores_nothing() -> None:
    bench = with_queue(Bench())
    client = Client()
    bench.committer.commits.clear()
    bench.broker.begin()
    bench.broker.reply(client, b"pong")
    bench.loop.settle()
    assert bench.committer.commits == [[]]
    assert client.got == [b"pong"]


def test_nothing_is_sent_before_it_is_committed() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    called: list[str] = []
    bench.broker.consume("q", 1, client, 10)
    enqueue(bench, b"x")
    bench.broker.reply(client, b"stored")
    bench.broker.after_commit(lambda: called.append("after"))
    bench.loop.settle()
    assert (client.got, client.flushes, called) == ([], 0, [])
    bench.committer.release()
    assert client.got[0] == b"stored"
    assert client.delivered() == [b"x"]
    assert called == ["after"]


def test_turns_are_released_in_order() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    for n in range(3):
        enqueue(bench, b"%d" % n)
        bench.broker.reply(client, b"%d" % n)
        bench.loop.settle()
    assert client.got == []
    bench.committer.release()
    assert client.got == [b"0"]
    bench.committer.release(2)
    assert client.got == [b"0", b"1", b"2"]


def test_later_turns_go_on_while_a_flush_is_under_way() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    bench.broker.consume("q", 1, client, 10)
    ids = enqueue(bench, b"x")
    bench.loop.settle()
    assert bench.broker.ack("q", ids, 1) == [OK]  # delivered by the machine, not yet sent
    bench.loop.settle()
    bench.committer.release(len(bench.committer.waiting))
    assert client.delivered() == [b"x"]
    assert bench.broker.ack("q", ids, 1) == [MESSAGE_NOT_FOUND]


def test_losing_power_before_the_flush_loses_only_what_nobody_was_told() -> None:
    bench = with_queue(Bench(FsyncCommitter))
    bench.committer.flush()
    client = Client()
    safe = enqueue(bench, b"safe")
    bench.broker.reply(client, b"stored safe")
    bench.loop.settle()
    bench.committer.flush()
    enqueue(bench, b"lost")
    bench.broker.reply(client, b"stored lost")
    bench.loop.settle()
    assert client.got == [b"stored safe"]
    store: MemoryStore = bench.store
    after = Bench(store=store.crash(lost_writes=store.unsynced_writes))
    reader = Client()
    after.broker.consume("q", 1, reader, 10)
    after.loop.settle()
    assert reader.delivered() == [b"safe"]
    assert after.broker.ack("q", safe, 1) == [OK]


def test_a_commit_that_fails_stops_the_broker_and_sends_nothing() -> None:
    bench = with_queue(Bench())
    client = Client()
    bench.broker.consume("q", 1, client, 10)
    bench.loop.settle()

    def full() -> None:
        raise StoreError("no space left on device")

    bench.store.before_write = full
    enqueue(bench, b"x")
    bench.broker.reply(client, b"stored")
    bench.loop.settle()
    assert [str(fault) for fault in bench.faults] == ["no space left on device"]
    assert client.got == []
    # Whatever comes after: no answer, no commit, no second fault.
    bench.store.before_write = None
    enqueue(bench, b"y")
    bench.broker.reply(client, b"stored too")
    bench.broker.leave("q", "c1-1", release=True)
    bench.pass_ms(60_000)
    assert client.got == []
    assert len(bench.faults) == 1
    assert Bench(store=bench.store.crash()).broker.machine.state.queues["q"].pending == 0


def test_a_flush_that_fails_releases_nothing() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    enqueue(bench, b"x")
    bench.broker.reply(client, b"stored")
    bench.loop.settle()
    bench.broker.fault(StoreError("sync failed"))
    bench.committer.release()
    assert client.got == []


def test_a_command_that_breaks_off_is_a_fault_even_if_the_caller_swallows_it() -> None:
    bench = with_queue(Bench())
    client = Client()
    bench.broker.consume("q", 1, client, 10)
    bench.loop.settle()
    keys: dict[bytes, Any] = dict(bench.broker.machine.state.queues["q"].keys)
    bench.broker.machine.state.queues["q"].keys = keys
    keys[b"default"] = object()  # a bug in the making
    with pytest.raises((AttributeError, TypeError)) as broken:
        enqueue(bench, b"x")
    assert bench.faults == [broken.value]
    bench.broker.reply(client, b"stored")
    bench.loop.settle()
    assert client.got == []


def test_the_timer_is_set_for_the_next_deadline_and_rings_on_time() -> None:
    bench = with_queue(Bench(), visibility_ms=1_500)
    client = Client()
    enqueue(bench, b"x")
    bench.broker.consume("q", 1, client, 10)
    bench.loop.settle()
    assert bench.loop.next_timer.delay_s == pytest.approx(1.5)
    bench.pass_ms(1_499)
    assert client.delivered() == [b"x"]
    bench.time.pass_ms(1)
    bench.loop.next_timer.call()
    bench.loop.settle()
    assert client.delivered() == [b"x", b"x"]


def test_nothing_is_armed_when_nothing_is_due() -> None:
    bench = with_queue(Bench())
    enqueue(bench, b"x")
    bench.loop.settle()
    assert [timer for timer in bench.loop.timers if not timer.cancelled] == []


def test_a_stopped_broker_wakes_no_more() -> None:
    bench = with_queue(Bench(), visibility_ms=1_000)
    client = Client()
    enqueue(bench, b"x")
    bench.broker.consume("q", 1, client, 10)
    bench.loop.settle()
    bench.broker.stop()
    bench.pass_ms(5_000)
    assert client.delivered() == [b"x"]


def test_leases_that_ran_out_while_down_end_with_the_first_turn() -> None:
    bench = with_queue(Bench(), visibility_ms=1_000)
    bench.broker.consume("q", 1, Client(), 10)
    enqueue(bench, b"x")
    bench.loop.settle()
    bench.time.pass_ms(2_000)
    again = Bench(store=bench.store.crash(), time=bench.time)
    queue = again.broker.machine.state.queues["q"]
    assert (queue.pending, len(queue.leased)) == (1, 0)


def test_a_delivery_to_a_consumer_that_left_before_the_flush_is_not_sent() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    consumer = bench.broker.consume("q", 1, client, 10)
    enqueue(bench, b"x")
    bench.loop.settle()
    assert isinstance(consumer, str)
    bench.broker.leave("q", consumer, release=True)
    bench.loop.settle()
    bench.committer.release(len(bench.committer.waiting))
    assert client.delivered() == []
    other = Client()
    bench.broker.consume("q", 2, other, 10)
    bench.loop.settle()
    bench.committer.release(len(bench.committer.waiting))
    assert other.delivered() == [b"x"]


def test_the_consumers_of_a_deleted_queue_are_told_once_it_is_committed() -> None:
    bench = with_queue(Bench(DelayingCommitter))
    client = Client()
    consumer = bench.broker.consume("q", 1, client, 10)
    bench.broker.delete_queue("q")
    bench.loop.settle()
    assert client.got == []
    bench.committer.release(len(bench.committer.waiting))
    [told] = client.got
    assert isinstance(told, tuple)
    ended, why = told
    assert ended == consumer
    assert isinstance(why, Rejection)
    assert why.message == 'queue "q" does not exist'


class DeadLetters(NoHooks):
    """Every failure goes to the dead letters; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[FailedItem] = []

    def has_on_failure(self, queue: str) -> bool:
        return not queue.endswith(".dlq")

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        self.asked += items
        return [FailureVerdict(True, 0) for _ in items]


def test_a_long_redrive_takes_a_few_per_turn_and_answers_when_all_is_committed() -> None:
    hooks = DeadLetters()
    bench = with_queue(Bench(settings=Settings(redrive_messages=10), hooks=hooks))
    client = Client()
    ids = enqueue(bench, *[b"%d" % n for n in range(35)])
    consumer = bench.broker.consume("q", 1, client, 100)
    bench.loop.settle()
    bench.broker.nack("q", ids, ["no"] * 35, 1)
    assert isinstance(consumer, str)
    bench.broker.leave("q", consumer, release=False)
    bench.loop.settle()
    assert [item[1:3] for item in hooks.asked] == [(1, b"no")] * 35
    done: list[int | Rejection] = []
    assert bench.broker.redrive("q.dlq", 0, done.append) is None
    bench.loop.step()
    assert done == []
    queues = bench.broker.machine.state.queues
    assert (queues["q"].pending, queues["q.dlq"].pending) == (10, 25)
    rounds = bench.loop.settle()
    assert done == [35]
    assert rounds >= 3
    assert (queues["q"].pending, queues["q.dlq"].pending) == (35, 0)


def test_a_redrive_whose_queue_is_deleted_meanwhile_ends() -> None:
    bench = with_queue(Bench(settings=Settings(redrive_messages=10), hooks=DeadLetters()))
    client = Client()
    ids = enqueue(bench, *[b"%d" % n for n in range(35)])
    bench.broker.consume("q", 1, client, 100)
    bench.loop.settle()
    bench.broker.nack("q", ids, ["no"] * 35, 1)
    done: list[int | Rejection] = []
    bench.broker.redrive("q.dlq", 0, done.append)
    bench.loop.step()
    bench.broker.delete_queue("q")
    bench.loop.settle()
    assert done == [10]
    assert bench.faults == []


def test_a_failure_hook_is_asked_about_leased_messages_only() -> None:
    hooks = DeadLetters()
    bench = with_queue(Bench(hooks=hooks))
    first, second = enqueue(bench, b"1", b"2")
    bench.broker.consume("q", 1, Client(), 1)
    bench.loop.settle()
    codes = bench.broker.nack("q", [first, second, bytes(16)], ["a", "b", "c"], 1)
    assert codes == [OK, MESSAGE_NOT_FOUND, MESSAGE_NOT_FOUND]
    assert [item[0] for item in hooks.asked] == [first]


def test_counting_committers_count_every_turn() -> None:
    bench = with_queue(Bench(CountingCommitter))
    before = len(bench.committer.commits)
    for n in range(5):
        enqueue(bench, b"%d" % n)
        bench.loop.settle()
    assert len(bench.committer.commits) == before + 5
