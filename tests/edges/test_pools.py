"""What all connections share: room for what has not arrived, is not read, or is a stranger's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from fila.edges.inbound import LARGE_BYTES, Inbound
from fila.edges.limits import ConnectionLimits
from fila.edges.outbound import (
    JOINED_BYTES,
    SECURED_BYTES,
    SLOW_BYTES,
    Outbound,
    unread_bytes,
    write,
)
from fila.edges.port import ALWAYS_ALLOWED, Port
from fila.edges.strangers import Strangers
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import frame_header
from tests import loops
from tests.edges.wires import Wire

KiB = 1024
MiB = 1024 * KiB


class One:
    """A connection that holds what it is told to."""

    def __init__(self) -> None:
        self.unsent = 0
        self.taken = 0
        self.gone = False

    def unsent_bytes(self) -> int:
        return self.unsent

    def taken_bytes(self) -> int:
        return self.taken

    def take(self, size: int) -> None:
        self.unsent -= size
        self.taken += size

    def give_up(self) -> None:
        self.gone = True


class Written:
    """A transport, and what it was given."""

    def __init__(self, secured: bool = False) -> None:
        self.pieces: list[bytes] = []
        self._secured = secured

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def get_extra_info(self, name: str) -> object:
        return self if name == "ssl_object" and self._secured else None


class Timers:
    """Timers that fire when they are told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def add(self, delay_s: float, what: Callable[[], None]) -> None:
        self.waiting.append(what)

    def fire(self) -> None:
        waiting, self.waiting = self.waiting, []
        for what in waiting:
            what()


# --- what is not read


def test_those_that_take_nothing_go_the_longest_stuck_first() -> None:
    outbound = Outbound(1_000, later=Timers().add)
    stuck, slow, late = One(), One(), One()
    for one in (stuck, slow):
        one.unsent = 450
        outbound.hold(one, 450)
    slow.take(10)  # a little
    late.unsent = 300
    outbound.hold(late, 300)
    assert (stuck.gone, slow.gone, late.gone) == (True, False, False)
    assert outbound.bytes == 740 and outbound.given_up == 1


def test_who_reads_is_kept_however_many_do_not() -> None:
    outbound = Outbound(10_000, later=Timers().add)
    reader = One()
    stuck = [One() for _ in range(200)]
    for number, one in enumerate(stuck):
        one.unsent = 500
        outbound.hold(one, 500)
        reader.unsent = 700 if number % 2 else 600  # as fast as it is written to
        outbound.hold(reader, reader.unsent)
        assert outbound.bytes <= 10_000
        reader.take(50)
    assert not reader.gone
    assert sum(one.gone for one in stuck) > 150


def test_nobody_goes_for_a_moments_delay_while_there_is_room() -> None:
    now = 0.0
    timers = Timers()
    outbound = Outbound(1_000, lambda: now, timers.add)
    late, slow, more = One(), One(), One()
    for one in (late, slow):
        one.unsent = 300
        outbound.hold(one, 300)
    assert outbound.is_crowded()
    now = 0.9
    late.unsent = 310
    outbound.hold(late, 310)
    assert not late.gone and not slow.gone
    slow.take(10)
    now = 1.0
    timers.fire()  # one who has taken nothing for a second goes, though nobody asks for room
    assert (late.gone, slow.gone) == (True, False)
    assert outbound.bytes == 290 and not outbound.is_crowded()
    more.unsent = 100
    outbound.hold(more, 100)
    assert not timers.waiting
    more.unsent = 110
    now = 60.0  # with room for all, nobody goes however long it takes nothing
    outbound.hold(more, 110)
    assert not slow.gone


def test_who_reads_as_fast_as_it_is_written_to_is_never_taken_for_one_that_is_stuck() -> None:
    """What it holds is the same whenever it is looked at, for longer than those that are stuck."""
    now = 0.0
    timers = Timers()
    outbound = Outbound(1_000, lambda: now, timers.add)
    reader, stuck = One(), One()
    reader.unsent = 300
    outbound.hold(reader, 300)
    for now in (1.0, 2.0, 3.0):  # noqa: B007
        reader.take(100)
        reader.unsent += 100
        outbound.hold(reader, 300)
    stuck.unsent = 300
    outbound.hold(stuck, 300)
    assert outbound.is_crowded() and not reader.gone and not stuck.gone
    for now in (3.5, 4.0, 4.5):  # noqa: B007
        reader.take(1)
        reader.unsent += 1
        outbound.hold(reader, 300)
        timers.fire()
    assert (reader.gone, stuck.gone) == (False, True)


def test_when_there_is_no_room_at_all_who_has_taken_anything_is_passed_over() -> None:
    outbound = Outbound(1_000, later=Timers().add)
    reader, stuck, last = One(), One(), One()
    for one in (reader, stuck):
        one.unsent = 450
        outbound.hold(one, 450)
    reader.taken += 1  # of what the kernel holds: what is unsent has not become less
    last.unsent = 200
    outbound.hold(last, 200)
    assert (reader.gone, stuck.gone, last.gone) == (False, True, False)


def test_while_it_is_crowded_who_is_slow_gets_nothing_more() -> None:
    port = Port(ConnectionLimits(unsent_bytes_max=MiB))
    port.outbound = Outbound(4 * MiB, later=Timers().add)
    assert port.unsent_bytes_max() == MiB
    stuck = One()
    stuck.unsent = 2 * MiB + 1
    port.outbound.hold(stuck, stuck.unsent)
    assert port.unsent_bytes_max() == SLOW_BYTES
    port.outbound.hold(stuck, 0)
    assert port.unsent_bytes_max() == MiB


def test_who_caught_up_is_forgotten() -> None:
    outbound = Outbound(1_000, later=Timers().add)
    one = One()
    outbound.hold(one, 800)
    outbound.hold(one, 0)
    outbound.hold(one, 0)
    assert outbound.bytes == 0 and not one.gone


def test_what_is_taken_out_of_the_kernel_is_seen_before_a_socket_is_writable() -> None:
    async def taken_slowly() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(listening.getsockname())
            served, _ = listening.accept()
            transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, served)
            transport.write(bytes(16 * MiB))  # more than the kernel takes
            before, held = unread_bytes(transport), transport.get_write_buffer_size()
            assert held < before <= 16 * MiB
            for _ in range(20):
                client.recv(16 * KiB)
            assert unread_bytes(transport) < before
            await asyncio.sleep(0.01)
            assert transport.get_write_buffer_size() == held
            transport.abort()
            assert unread_bytes(transport) == unread_bytes(None) == 0

    loops.run(taken_slowly())


def test_large_pieces_are_written_without_another_copy() -> None:
    large = bytes(JOINED_BYTES)
    for out in (
        [b"a"],
        [b"a", b"b"],
        [b"a", b"b", large, b"c", b"d"],
        [large, large],
        [b"a", large],
    ):
        written = Written()
        write(written, out)  # type: ignore[arg-type]
        assert b"".join(written.pieces) == b"".join(out)
        assert sum(piece is large for piece in written.pieces) == out.count(large)
        assert len(written.pieces) <= 3


def test_over_tls_nothing_large_is_written_at_once() -> None:
    """What the encryption hands on in one piece is counted by nobody."""
    small, large = bytes(1_000), bytes(range(256)) * 1_000
    for out in ([large], [small] * 300, [small, large, small, small], [large, small, large]):
        written = Written(secured=True)
        write(written, list(out))  # type: ignore[arg-type]
        assert b"".join(written.pieces) == b"".join(out)
        assert max(map(len, written.pieces)) <= SECURED_BYTES
        assert len(written.pieces) <= 2 * sum(map(len, out)) // SECURED_BYTES + 2


# --- what has not arrived


class Sending:
    """A connection with a message that has not arrived whole."""

    def __init__(self, inbound: Inbound) -> None:
        self.inbound = inbound
        self.held = 0
        self.gone = False

    def receive(self, size: int) -> None:
        before, self.held = self.held, self.held + size
        self.inbound.count(self, before, self.held)

    def make_room(self) -> None:
        self.gone = True
        before, self.held = self.held, 0
        self.inbound.count(self, before, 0)


def test_the_message_of_which_nothing_arrives_makes_room_for_those_that_do() -> None:
    inbound = Inbound(10 * LARGE_BYTES)
    stuck = [Sending(inbound) for _ in range(3)]
    for one in stuck:
        one.receive(3 * LARGE_BYTES)
    arriving = Sending(inbound)
    small = Sending(inbound)
    small.receive(100)
    for _ in range(6):
        arriving.receive(LARGE_BYTES)
        assert inbound.buffered_bytes <= 10 * LARGE_BYTES
    assert [one.gone for one in stuck] == [True, True, False]
    assert not arriving.gone and not small.gone and inbound.refused == 2
    for one in (stuck[2], arriving, small):
        one.make_room()
    assert inbound.buffered_bytes == 0


def test_a_fibp_client_that_has_to_make_room_is_told_and_closed() -> None:
    limits = ConnectionLimits(inbound_bytes_max=200 * KiB)
    port = Port(limits)
    stuck, sending = Wire(limits=limits, port=port), Wire(limits=limits, port=port)
    stuck.send_bytes(frame_header(op.ENQUEUE, 0, 1, 10_000_000) + bytes(120 * KiB))
    sending.send_bytes(frame_header(op.ENQUEUE, 0, 1, 10_000_000) + bytes(120 * KiB))
    for wire in (stuck, sending):
        wire.settle()
    ((opcode, _, body),) = stuck.frames()
    assert opcode == op.ERROR
    assert layouts.decode(bodies.Error, body).code == errors.CHANNEL_FULL
    assert stuck.closed and not sending.transport.closing
    assert port.inbound.buffered_bytes == 120 * KiB + 10
    sending.transport.abort()
    assert port.inbound.buffered_bytes == 0


# --- strangers


def test_the_oldest_stranger_goes_when_there_are_too_many() -> None:
    strangers = Strangers(3, 1_000)
    ones = [One() for _ in range(5)]
    for one in ones:
        strangers.met(one)
    assert [one.gone for one in ones] == [True, True, False, False, False]
    strangers.known(ones[2])
    strangers.met(One())
    assert len(strangers) == 3 and not ones[2].gone and strangers.given_up == 2


def test_strangers_have_room_of_their_own_in_bytes() -> None:
    strangers = Strangers(10, 1_000)
    ones = [One() for _ in range(3)]
    for one in ones:
        strangers.met(one)
        strangers.heard(one, 400)
    assert [one.gone for one in ones] == [True, False, False]
    strangers.heard(ones[0], 500)  # it has gone already
    assert strangers.bytes == 800
    strangers.known(ones[1])
    strangers.heard(ones[2], 0)
    assert strangers.bytes == 0


@pytest.mark.parametrize("claimed", [70 * KiB, 16 * KiB * KiB - 10])
def test_a_stranger_may_send_64_kib_and_no_more(claimed: int) -> None:
    limits = ConnectionLimits()
    port = Port(limits)
    wire = Wire(limits=limits, port=port, handshake=False)
    wire.send_bytes(frame_header(op.HANDSHAKE, 0, 1, claimed) + bytes(60 * KiB))
    wire.settle()
    assert not wire.transport.closing
    assert port.inbound.buffered_bytes == 0  # what strangers send takes no room from others
    wire.send_bytes(bytes(5 * KiB))
    wire.settle()
    ((opcode, _, body),) = wire.frames()
    assert opcode == op.ERROR and "65536 bytes" in layouts.decode(bodies.Error, body).message
    assert wire.closed


def test_what_follows_a_handshake_in_one_read_may_be_large() -> None:
    wire = Wire(handshake=False)
    item = bodies.EnqueueItem("q", {}, bytes(200 * KiB))
    wire.send(bodies.Handshake(1, None), bodies.CreateQueue("q"), bodies.Enqueue((item,)))
    wire.settle()
    assert [opcode for opcode, _ in wire.received()] == [
        *(op.HANDSHAKE_OK, op.CREATE_QUEUE_RESULT),
        op.ENQUEUE_RESULT,
    ]


# --- consumers


def test_one_connection_may_have_fewer_as_all_together_come_near_their_limit() -> None:
    port = Port(ConnectionLimits(consumers_total_max=1_000))
    assert port.allowed(1_024, 0) == 250
    assert port.allowed(100, 0) == 100
    assert port.allowed(1_024, 900) == 25
    assert port.allowed(1_024, 1_000) == port.allowed(1_024, 5_000) == ALWAYS_ALLOWED


def test_consumers_of_all_connections_are_bounded_and_everybody_gets_some() -> None:
    limits = ConnectionLimits(consumers_total_max=200)
    port = Port(limits)
    first = Wire(limits=limits, port=port)
    first.send(bodies.CreateQueue("q"), *[bodies.Consume("q")] * 150)
    first.settle()
    opcodes = [opcode for opcode, _ in first.received()]
    assert opcodes.count(op.CONSUME_OK) == 40  # a quarter of what was left then
    for _ in range(20):
        other = Wire(first.bench, limits=limits, port=port)
        other.send(*[bodies.Consume("q")] * 40)
        other.settle()
        opcodes = [opcode for opcode, _ in other.received()]
        assert opcodes.count(op.CONSUME_OK) >= ALWAYS_ALLOWED
    assert first.bench.broker.consumers() < 200 + 20 * ALWAYS_ALLOWED
