"""A worker of the raw load: `python -m bench.system.raw '{"role": …}'`, started by a crew.

produce    keep frames under way on some connections, as long as not too much is unsettled
pace       send so many messages a second, each stamped with the time it should leave at
consume    take and acknowledge on some connections; with `stamped`, note each one's latency
single     one message at a time on one connection: enqueue, delivery, ack
"""

from __future__ import annotations

import json
import select
import sys
import time
from pathlib import Path
from struct import Struct
from typing import Any

from bench.system import frames
from bench.system.board import Seat
from bench.system.frames import RawError, Wire
from bench.system.latencies import Latencies
from fila.wire import message_codec
from fila.wire import opcodes as op
from fila.wire.frames import frame_header

_U64 = Struct(">Q")
_IDLE_S = 0.05
_GLANCE_S = 0.0003
_TICK_S = 0.001
_JOINED_BYTES_MAX = 65_536


def main() -> None:
    told = json.loads(sys.argv[1])
    seat = Seat(Path(told["board"]), told["seats"], told["seat"])
    roles = {"produce": produce, "pace": pace, "consume": consume, "single": single}
    roles[told["role"]](seat, told)


def produce(seat: Seat, told: dict[str, Any]) -> None:
    """`unsettled_max` bounds what waits in the broker; 0: whatever goes in."""
    batch = told["batch"]
    unsettled_max = told["unsettled_max"]
    ready_made = frames.enqueue_frames(
        told["queue"], told["bytes"], batch, told["keys"], told["named"]
    )
    lines = Lines(seat, told, batch)
    frames_max = max(told["in_flight"] // (batch * told["connections"]), 1)
    joined_max = max(_JOINED_BYTES_MAX // len(ready_made[0]), 1)  # small frames share a write
    at = 0
    seat.ready()
    while lines.wait_to_run():
        room = (unsettled_max - seat.unsettled) // batch if unsettled_max else 1 << 30
        for wire, under_way in lines.under_way.items():
            free = min(frames_max - under_way, room)
            room -= max(free, 0)
            while free > 0:
                count = min(free, joined_max, len(ready_made) - at)
                lines.send(wire, ready_made[at : at + count])
                at = (at + count) % len(ready_made)
                free -= count
        lines.read(_IDLE_S if room > 0 else _GLANCE_S)  # without room, look again soon


def pace(seat: Seat, told: dict[str, Any]) -> None:
    """`rate` messages a second in ticks of a millisecond or more; late ticks are made up for."""
    rate = told["rate"]
    batch = max(round(rate * _TICK_S), 1)
    size = told["bytes"]
    (frame,) = frames.enqueue_frames(told["queue"], size, batch, 0)
    moving = bytearray(frame)
    offsets = frames.payload_offsets(frame, size, batch)
    lines = Lines(seat, told, batch)
    (wire,) = lines.under_way
    pack = _U64.pack_into
    tick_s = batch / rate
    seat.ready()
    while lines.wait_to_run():
        due = time.monotonic()
        while seat.running and not seat.stopped:
            wait_s = due - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            stamp = int(due * 1e9)
            for offset in offsets:
                pack(moving, offset, stamp)
            lines.send(wire, [moving])
            due += tick_s
            lines.read(0)


def consume(seat: Seat, told: dict[str, Any]) -> None:
    """A consumer runs dry by itself when the producers pause. With `waits` it subscribes only
    while the crew runs, for backlogs that are to be filled first."""
    prefetch = max(told["prefetch"] // told["connections"], 1)
    takers = [Taker(seat, told) for _ in range(told["connections"])]
    by_number = {taker.wire.sock.fileno(): taker for taker in takers}
    poll = select.epoll()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    waits = told["waits"]
    if not waits:
        for taker in takers:
            taker.subscribe(prefetch)
    seat.ready()
    while not seat.stopped:
        if waits and seat.wait_to_run():
            for taker in takers:
                taker.subscribe(prefetch)
        while not seat.stopped and (not waits or seat.running):
            for number, _ in poll.poll(_IDLE_S):
                by_number[number].take()
        if waits:
            for taker in takers:
                taker.unsubscribe()
    for taker in takers:
        taker.latencies.write(told["samples"])


def single(seat: Seat, told: dict[str, Any]) -> None:
    ready_made = frames.enqueue_frames(told["queue"], told["bytes"], 1, told["keys"])
    queue_field = message_codec.queue_field(told["queue"].encode())
    wire = Wire(told["address"], told["tls_ca"])
    wire.consume(told["queue"], 1)
    latencies = Latencies(seat)
    at = 0
    seat.ready()
    while seat.wait_to_run():
        begin_ns = time.monotonic_ns()
        wire.sock.sendall(ready_made[at])
        at = (at + 1) % len(ready_made)
        stored = 0
        ack = b""
        while not (stored and ack):
            for opcode, start, end in wire.frames():
                if opcode == op.DELIVERY:
                    latencies.add(time.monotonic_ns() - begin_ns)
                    ack = frames.acks_of(wire.data, start, end, queue_field)[0]
                else:
                    stored = frames.count_stored(wire.data, start, end)
        seat.add_sent(1)
        seat.add_stored(1)
        wire.sock.sendall(ack)
        acked = 0
        while not acked:
            for _, start, end in wire.frames():
                acked = frames.count_acked(wire.data, start, end)
        seat.add_acked(1)
    latencies.write(told["samples"])


class Lines:
    """A producer's connections, and how many frames are under way on each."""

    def __init__(self, seat: Seat, told: dict[str, Any], batch: int) -> None:
        self._seat = seat
        self._batch = batch
        wires = [Wire(told["address"], told["tls_ca"]) for _ in range(told["connections"])]
        self.under_way = dict.fromkeys(wires, 0)
        self._by_number = {wire.sock.fileno(): wire for wire in wires}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def send(self, wire: Wire, ready_made: list[bytes] | list[bytearray]) -> None:
        wire.sock.sendall(ready_made[0] if len(ready_made) == 1 else b"".join(ready_made))
        self.under_way[wire] += len(ready_made)
        self._seat.add_sent(len(ready_made) * self._batch)

    def read(self, wait_s: float) -> None:
        """Count the answers that are there; wait so long for the first of them."""
        for number, _ in self._poll.poll(wait_s):
            wire = self._by_number[number]
            again = True
            while again:
                for opcode, start, end in wire.frames():
                    stored = frames.count_stored(wire.data, start, end, opcode)
                    self._seat.add_stored(stored)
                    self.under_way[wire] -= 1
                again = wire.more

    def wait_to_run(self) -> bool:
        """When the crew pauses: take the answers that are due, then sleep. False at the end."""
        if not self._seat.running or self._seat.stopped:
            while any(self.under_way.values()):
                self.read(_IDLE_S)
        return self._seat.wait_to_run()


class Taker:
    """One consumer on a connection of its own."""

    def __init__(self, seat: Seat, told: dict[str, Any]) -> None:
        self._seat = seat
        self._queue = told["queue"]
        self._queue_field = message_codec.queue_field(self._queue.encode())
        self._payload_at = frames.payload_at(self._queue, 0 if told["named"] else told["keys"])
        self._stamped = told["stamped"]
        self.wire = Wire(told["address"], told["tls_ca"])
        self.latencies = Latencies(seat)
        self._unanswered = 0  # acks
        self._parted = False  # nothing more is delivered after the Pong

    def subscribe(self, prefetch: int) -> None:
        self.wire.consume(self._queue, prefetch)
        self._take_frames(False)

    def unsubscribe(self) -> None:
        """Settle what is still on its way, so that nothing stays leased."""
        self.wire.sock.sendall(
            frame_header(op.CANCEL_CONSUME, 0, 1, 0) + frame_header(op.PING, 0, 2, 0)
        )
        self._parted = False
        while not (self._parted and self._unanswered == 0):
            self._take_frames(True)

    def take(self) -> None:
        self._take_frames(True)
        while self.wire.more:
            self._take_frames(True)

    def _take_frames(self, receive: bool) -> None:
        wire = self.wire
        data = wire.data
        for opcode, start, end in wire.frames(receive):
            if opcode == op.DELIVERY:
                now_ns = time.monotonic_ns()
                acks, count, stride = frames.acks_of(data, start, end, self._queue_field)
                wire.sock.sendall(acks)
                self._unanswered += count
                if self._stamped:
                    for at in range(start + 4 + self._payload_at, end, stride):
                        self.latencies.add(now_ns - _U64.unpack_from(data, at)[0])
            elif opcode == op.ACK_RESULT:
                self._unanswered -= 1
                self._seat.add_acked(frames.count_acked(data, start, end))
            elif opcode == op.PONG:
                self._parted = True
            else:
                raise RawError(f"unexpected {op.NAMES.get(opcode, opcode)}")


if __name__ == "__main__":
    main()
