"""Bounds in both directions of a connection: nothing piles up, nothing is lost, order is kept."""

from __future__ import annotations

from fila.edges.limits import ConnectionLimits
from fila.wire import bodies
from fila.wire import opcodes as op
from fila.wire.frames import frame_header
from tests.broker.turns import Bench, DelayingCommitter
from tests.edges.wires import Wire

KiB = 1_024
LIMITS = ConnectionLimits(unsent_bytes_max=16 * KiB, outbound_bytes_max=64 * KiB)
LONG = "v" * 10_000


def test_a_read_full_of_requests_is_answered_only_as_far_as_replies_may_wait() -> None:
    wire = Wire(limits=LIMITS)
    wire.send(bodies.SetConfig("long", LONG))
    wire.settle()
    wire.received()
    wire.send(*[bodies.GetConfig("long")] * 100, request_id=1)
    assert not wire.transport.reading
    wire.settle()
    # The client reads nothing: replies stop at the bound, and what was on its way then.
    assert len(wire.transport.unsent) <= LIMITS.outbound_bytes_max + 4 * LIMITS.unsent_bytes_max
    got: list[tuple[int, int]] = []
    for _ in range(100):
        got += wire.received()
        wire.settle()
    assert got == [(op.GET_CONFIG_RESULT, number) for number in range(1, 101)]
    assert wire.transport.reading


def test_a_client_that_reads_is_never_paused_for_long() -> None:
    wire = Wire(limits=LIMITS)
    wire.send(bodies.SetConfig("long", LONG))
    wire.settle()
    wire.received()
    for turn in range(20):
        wire.send(bodies.GetConfig("long"), request_id=turn)
        wire.settle()
        assert wire.transport.reading
        assert wire.received() == [(op.GET_CONFIG_RESULT, turn)]


def test_an_error_in_the_bytes_is_answered_after_the_requests_before_it() -> None:
    wire = Wire(limits=LIMITS)
    wire.send(bodies.SetConfig("long", LONG))
    wire.settle()
    wire.received()
    frames = b"".join(
        frame_header(op.GET_CONFIG, 0, number, 6) + b"\0\4long" for number in range(1, 11)
    )
    wire.send_bytes(frames + frame_header(op.PING, 0xF0, 11, 0))
    got: list[tuple[int, int]] = []
    for _ in range(20):
        wire.settle()
        got += wire.received()
    expected = [(op.GET_CONFIG_RESULT, number) for number in range(1, 11)]
    assert got == [*expected, (op.ERROR, 11)]


def test_replies_that_wait_for_the_disk_hold_back_requests_too() -> None:
    bench = Bench(DelayingCommitter)
    wire = Wire(bench, LIMITS, handshake=False)
    wire.send(bodies.Handshake(1, None), bodies.SetConfig("long", LONG))
    wire.settle()
    bench.committer.release(len(bench.committer.waiting))
    wire.received()
    wire.send(*[bodies.GetConfig("long")] * 50, request_id=1)
    wire.settle()
    assert not wire.transport.reading
    assert len(wire.transport.unsent) == 0
    got: list[tuple[int, int]] = []
    for _ in range(60):
        bench.committer.release(len(bench.committer.waiting))
        wire.settle()
        got += wire.received()
    assert [number for _, number in got] == list(range(1, 51))
    assert wire.transport.reading


def consumer_of(wire: Wire, messages: int, payload: bytes) -> None:
    wire.send(bodies.CreateQueue("q"), bodies.Consume("q", 1_000), request_id=8)
    wire.settle()
    wire.received()
    wire.send(bodies.Enqueue((bodies.EnqueueItem("q", {}, payload),) * messages), request_id=10)
    wire.settle()


def test_a_consumer_whose_client_does_not_read_is_held_and_its_requests_go_on() -> None:
    wire = Wire(limits=LIMITS)
    consumer_of(wire, 100, b"x" * KiB)
    queue = wire.bench.broker.machine.state.queues["q"]
    held = len(queue.leased)
    assert held > 0
    for number in range(20):
        wire.send(bodies.Enqueue((bodies.EnqueueItem("q", {}, b"y" * KiB),)), request_id=number)
        wire.settle()
    assert len(queue.leased) == held
    assert queue.pending == 120 - held
    assert wire.transport.reading


def test_a_held_consumers_leases_run_out_without_piling_up() -> None:
    wire = Wire(limits=LIMITS)
    consumer_of(wire, 100, b"x" * KiB)
    unsent = len(wire.transport.unsent)
    for _ in range(10):
        wire.bench.pass_ms(31_000)
    assert len(wire.transport.unsent) == unsent
    queue = wire.bench.broker.machine.state.queues["q"]
    assert (queue.pending, len(queue.leased)) == (100, 0)


def test_a_held_consumer_is_served_again_once_its_client_reads() -> None:
    wire = Wire(limits=LIMITS)
    wire.bench.broker.machine.state.settings = wire.bench.broker.machine.state.settings._replace(
        pass_messages=10
    )
    consumer_of(wire, 100, b"x" * KiB)
    queue = wire.bench.broker.machine.state.queues["q"]
    assert len(queue.leased) < 100
    deliveries = 0
    for _ in range(20):
        deliveries += [opcode for opcode, _ in wire.received()].count(op.DELIVERY)
        wire.settle()
    assert (len(queue.leased), queue.pending) == (100, 0)
    assert deliveries > 1


def test_a_consumer_opened_while_the_client_does_not_read_starts_held() -> None:
    wire = Wire(limits=LIMITS)
    consumer_of(wire, 100, b"x" * KiB)
    held = len(wire.bench.broker.machine.state.queues["q"].leased)
    other = Wire(wire.bench)
    other.send(bodies.CreateQueue("r"))
    other.send(bodies.Enqueue((bodies.EnqueueItem("r", {}, b"z"),)))
    other.settle()
    wire.send(bodies.Consume("r"), request_id=70)
    wire.settle()
    queues = wire.bench.broker.machine.state.queues
    assert len(queues["r"].leased) == 0
    assert len(queues["q"].leased) == held
    wire.received()
    wire.settle()
    assert len(queues["r"].leased) == 1


def test_a_closing_connection_takes_nothing_more_and_loses_its_consumers_at_once() -> None:
    wire = Wire(limits=LIMITS)
    consumer_of(wire, 100, b"x" * KiB)
    queue = wire.bench.broker.machine.state.queues["q"]
    assert len(queue.consumers) == 1
    wire.send_bytes(b"\0\0\0\1")  # no frame is that short
    wire.settle()
    assert len(queue.consumers) == 0
    assert wire.transport.closing
    wire.connection.data_received(b"\0\0\0\6\3\0\0\0\0\1")
    wire.settle()
    assert not wire.closed  # the client has not taken what was on its way
    wire.bench.pass_ms(LIMITS.close_s * 1_000)
    assert wire.transport.aborted
    assert wire.closed


def test_a_client_that_reads_to_the_end_gets_the_reason_and_no_abort() -> None:
    wire = Wire(limits=LIMITS)
    wire.send_bytes(b"\xff\xff\xff\xff\x10\0\0\0\0\7")
    wire.settle()
    assert wire.received() == [(op.ERROR, 7)]
    assert wire.closed
    wire.bench.pass_ms(LIMITS.close_s * 1_000)
    assert not wire.transport.aborted


def test_stopping_says_goodbye_after_the_replies_that_are_due() -> None:
    bench = Bench(DelayingCommitter)
    wire = Wire(bench, handshake=False)
    wire.send(bodies.Handshake(1, None), bodies.CreateQueue("q"), request_id=1)
    wire.settle()
    wire.connection.shut_down()
    wire.settle()
    assert wire.transport.unsent == b""
    assert not wire.transport.closing
    bench.committer.release(len(bench.committer.waiting))
    assert wire.transport.closing
    got = wire.received()
    assert got == [(op.HANDSHAKE_OK, 1), (op.CREATE_QUEUE_RESULT, 2), (op.DISCONNECT, 0)]


def test_too_many_consumers_on_one_connection_are_refused() -> None:
    wire = Wire(limits=LIMITS._replace(consumers_max=3))
    wire.send(bodies.CreateQueue("q"))
    wire.settle()
    wire.received()
    wire.send(*[bodies.Consume("q")] * 4, request_id=1)
    wire.settle()
    opcodes = [opcode for opcode, _ in wire.received()]
    assert opcodes == [op.CONSUME_OK] * 3 + [op.ERROR]
    assert len(wire.bench.broker.machine.state.queues["q"].consumers) == 3
