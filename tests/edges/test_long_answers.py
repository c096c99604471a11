"""Operations of the table whose work or answer is larger than a turn: steps, and one answer."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from fila.broker import stepping
from fila.core.rows import MESSAGES
from fila.core.settings import Settings
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.enqueue_with_codec import options_field
from fila.wire.frames import encode_frames
from fila.wire.message import message_body
from fila.wire.message_codec import lane_field, queue_field
from tests.broker.turns import Bench
from tests.edges.wires import Wire

WORK = 64  # of a turn here
MANY = 3_000


def wire_with(settings: Settings, *queues: str) -> Wire:
    wire = Wire(Bench(settings=settings))
    for queue in queues:
        wire.send(bodies.CreateQueue(queue))
    wire.settle()
    wire.received()
    return wire


def fill(wire: Wire, count: int, *, keys: bool) -> None:
    """So many messages in queue `a`, of one key or each of its own; every tenth is there twice."""
    parts = []
    names = [f"k{at:05}" if keys else "" for at in range(count)]
    names += names[::10] if keys else []
    for name in names:
        lane = lane_field(name.encode(), 1, [])
        parts += [queue_field(b"a"), message_body(None, b"x"), options_field(0, "", lane)]
    body = len(names).to_bytes(4, "big") + b"".join(parts)
    wire.send_bytes(encode_frames(op.ENQUEUE_WITH, 5, body))
    wire.settle()
    wire.frames()


def answered_beside_others(wire: Wire, request: Any, result: type[Any]) -> tuple[Any, int]:
    """The answer, and how many pings of another client were answered before it."""
    other = Wire(wire.bench)
    wire.send(request, request_id=7)
    rounds = 0
    while not (frames := wire.frames()):
        other.send(bodies.Ping(), request_id=rounds)
        wire.bench.loop.step()
        wire.bench.loop.step()
        assert other.received() == [(op.PONG, rounds)], "others are answered with the next commit"
        rounds += 1
        assert rounds < 10_000
    ((opcode, request_id, body),) = frames
    assert (opcode, request_id) == (layouts.OPCODES[result], 7)
    return layouts.decode(result, body), rounds


def test_a_list_of_many_queues_is_made_in_steps() -> None:
    wire = wire_with(Settings(turn_work=WORK), *[f"q{at:04}" for at in range(MANY)])
    found, rounds = answered_beside_others(wire, bodies.ListQueues(), bodies.ListQueuesResult)
    names = [one.name for one in found.queues]
    assert names == sorted(names) and len(names) == 2 * MANY, "each with its dead-letter queue"
    assert rounds > MANY // stepping.STEP_ITEMS


def test_stats_of_many_keys_are_made_in_steps_the_deepest_key_first() -> None:
    wire = wire_with(Settings(turn_work=WORK), "a")
    fill(wire, MANY, keys=True)
    found, rounds = answered_beside_others(wire, bodies.GetStats("a"), bodies.GetStatsResult)
    keys = [(-one.pending, one.key) for one in found.fairness_keys]
    assert keys == sorted(keys) and len(keys) == MANY
    assert [pending for pending, _ in keys].count(-2) == MANY // 10
    assert found.depth == MANY + MANY // 10
    assert rounds > MANY // stepping.STEP_ITEMS


def test_many_messages_of_batches_are_handed_back_in_steps() -> None:
    settings = Settings(turn_work=WORK, batch_step_messages=100, delivery_messages=50)
    wire = wire_with(settings, "a")
    fill(wire, MANY, keys=False)
    for number in range(3):
        wire.send(bodies.LeaseBatch("a", f"s/{number}", MANY // 3, 0, form=2), request_id=number)
        wire.settle()
    wire.frames()
    before = len(wire.bench.committer.commits)
    request = bodies.ReleaseBatch("a", "s", 2)
    found, rounds = answered_beside_others(wire, request, bodies.ReleaseBatchResult)
    assert found == (errors.OK, 2, 2 * MANY // 3, *found[3:])
    rows = [sum(len(one.ops) for one in done) for done in wire.bench.committer.commits[before:]]
    assert max(rows) < 3 * 100 and len(rows) >= 2 * rounds >= 2 * MANY // 3 // 100
    assert wire.bench.broker.machine.state.queues["a"].pending == 2 * MANY // 3


def test_what_comes_behind_a_long_answer_on_the_connection_waits_for_it() -> None:
    wire = wire_with(Settings(turn_work=WORK), "a")
    fill(wire, MANY, keys=True)
    wire.send(bodies.GetStats("a"), request_id=7)
    wire.send(bodies.Ping(), request_id=8)
    wire.settle()
    assert wire.received() == [(op.GET_STATS_RESULT, 7), (op.PONG, 8)]


def test_a_queue_deleted_while_its_batches_go_back_ends_the_request() -> None:
    settings = Settings(turn_work=WORK, batch_step_messages=100, delivery_messages=50)
    wire = wire_with(settings, "a")
    fill(wire, MANY, keys=False)
    wire.send(bodies.LeaseBatch("a", "s/0", MANY, 0, form=2), request_id=3)
    wire.settle()
    wire.frames()
    other = Wire(wire.bench)
    wire.send(bodies.AckBatch("a", "s/0"), request_id=7)
    for _ in range(6):
        wire.bench.loop.step()
    other.send(bodies.DeleteQueue("a"))
    wire.settle()
    ((_, _, body),) = wire.frames()
    found = layouts.decode(bodies.AckBatchResult, body)
    assert found.batches == 0 and 100 <= found.messages < MANY
    assert wire.bench.faults == []


def test_steps_without_a_connection_take_their_turns_and_one_that_breaks_off_costs_itself() -> None:
    bench = Bench(settings=Settings(turn_work=WORK))
    done: list[str] = []

    def steps(name: str, count: int) -> stepping.Steps:
        for at in range(count):
            if name == "broken" and at == 2:
                raise ValueError("a bug")
            bench.broker.work.done += WORK
            done.append(name)
            yield

    for name in ("a", "broken", "b"):
        stepping.run(bench.broker, steps(name, 4))
    bench.loop.settle()
    assert sorted(done) == ["a"] * 4 + ["b"] * 4 + ["broken"] * 2
    assert done.index("b") < 4, "none is first served to its end"
    assert bench.faults == [] and not bench.broker.rota.waiting


def test_why_a_queue_of_many_keys_waits_is_told_in_steps() -> None:
    wire = wire_with(Settings(turn_work=WORK), "a")
    fill(wire, MANY, keys=True)
    request = bodies.Explain("a", keys_max=500)
    found, rounds = answered_beside_others(wire, request, bodies.ExplainResult)
    document = json.loads(found.document)
    assert [one["key"] for one in document["keys"]] == [f"k{at:05}" for at in range(500)]
    assert rounds >= (MANY // 512 + 500 // 32) // 2, "one or two steps in a round"
    whole = wire.bench.broker.machine.view.explain("a", None, None, 500)
    assert isinstance(whole, dict) and whole["keys"] == document["keys"]


def test_all_queues_in_short_are_told_in_steps() -> None:
    wire = wire_with(Settings(turn_work=WORK), *[f"q{at:04}" for at in range(MANY)])
    found, rounds = answered_beside_others(wire, bodies.Explain(""), bodies.ExplainResult)
    names = [one["queue"] for one in json.loads(found.document)["queues"]]
    assert names == sorted(names) and len(names) == 2 * MANY
    assert rounds > 2 * MANY // stepping.STEP_ITEMS


def test_a_message_is_looked_for_in_steps_and_a_search_in_vain_is_refused() -> None:
    wire = wire_with(Settings(turn_work=WORK), "a")
    fill(wire, 3 * MANY, keys=True)
    stored = wire.bench.store.scan(MESSAGES, b"", b"\xff" * 40, 1 << 62, 1 << 62)
    last = str(UUID(bytes=max([key[-16:] for key, _ in stored])))
    request = bodies.Explain("a", None, last)
    found, rounds = answered_beside_others(wire, request, bodies.ExplainResult)
    assert json.loads(found.document)["message"]["id"] == last and rounds > 3
    wire.send(bodies.Explain("a", None, str(UUID(int=1))), request_id=9)
    wire.settle()
    ((opcode, request_id, body),) = wire.frames()
    assert (opcode, request_id) == (op.ERROR, 9)
    assert layouts.decode(bodies.Error, body).code == errors.MESSAGE_NOT_FOUND


def test_a_queue_that_is_deleted_while_it_is_explained_is_not_found() -> None:
    wire = wire_with(Settings(turn_work=WORK), "a")
    fill(wire, MANY, keys=True)
    other = Wire(wire.bench)
    wire.send(bodies.Explain("a", keys_max=1_000), request_id=9)
    for _ in range(6):
        wire.bench.loop.step()
    assert wire.frames() == []
    other.send(bodies.DeleteQueue("a"), request_id=1)
    wire.settle()
    ((opcode, request_id, body),) = wire.frames()
    assert (opcode, request_id) == (op.ERROR, 9)
    assert layouts.decode(bodies.Error, body).code == errors.QUEUE_NOT_FOUND
