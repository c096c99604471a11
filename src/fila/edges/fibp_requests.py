"""What a FIBP connection has read and not yet carried out, and when that is done.

Owns the order: one request after the other, as they came. What does not fit into the turn waits in
the rota, and a request that is larger than a turn is carried out in steps; those behind it wait for
its end. While a client leaves its replies unread, or while much waits here, it is not read from.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from fila.broker.rota import DONE, FIRST, FULL, MORE
from fila.core.work import SHIFT, Work
from fila.edges.fibp_messages import KINDS, Steps
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody
from fila.wire.frames import Frame, FrameDecoder

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

FRAMES_MAX: Final = 256  # cut out of what was read at a time
UNREAD_BYTES_MAX: Final = 256 * 1024  # that may wait here before the socket has to

# What requests cost that carry no messages, in messages.
COSTS: Final = {
    op.PING: 1,
    op.PONG: 1,
    op.CONSUME: 2,
    op.CANCEL_CONSUME: 2,
    op.ACK_BATCH: 64,  # looks through the queue's open batches, beside what it ends
    op.EXTEND_BATCH: 64,
    op.RELEASE_BATCH: 64,
}
COLD_COST: Final = 8


class Requests:
    def __init__(self, connection: FibpConnection, decoder: FrameDecoder) -> None:
        self.credit = 0
        self._connection: FibpConnection | None = connection  # None: it is gone
        self._inbound = connection.inbound
        self._broker = connection.broker
        self._rota = connection.broker.rota
        self._work = connection.broker.work
        self.decoder = decoder
        self._backlog: deque[Frame] = deque()
        self._steps: Steps | None = None  # of the request that is being carried out
        self._request_id = 0  # its own
        self._kept_bytes = 0  # that it has
        self._waits = False  # stands in the rota
        self._choked = False  # its client has to read replies first

    def received(self, data: bytes) -> None:
        """Bytes from the socket; who waits already only keeps them."""
        if self._waits or self._choked:
            self.decoder.feed(data, 0)
            if self.decoder.buffered_bytes > UNREAD_BYTES_MAX and self._connection is not None:
                self._connection.read(False)
            return
        self._backlog += self.decoder.feed(data, FRAMES_MAX)
        work = self._work
        room = work.limit - work.done
        said = self._carry_out(room) if room > FIRST else self._come()
        if said != DONE and not self._choked:
            self._wait()

    def unchoked(self) -> None:
        """Replies have left: carry out what had to wait, then read on."""
        connection = self._connection
        if self._choked and connection is not None:
            self._choked = False
            if self._come() == DONE:
                connection.read(True)
            elif not self._choked:
                self._wait()

    def go_on(self) -> int:
        """From the rota: its turn has come."""
        self._waits = False
        said = DONE
        connection = self._connection
        if connection is None:
            return said
        work = self._work
        before = work.done
        try:
            said = self._carry_out(min(self.credit, work.limit - before))
            connection.count_buffered(self.decoder.buffered_bytes)
        except Exception as error:
            connection.fail(error)
        self.credit -= work.done - before
        if said == DONE or self._choked:
            if not self._choked:
                connection.read(True)
            return DONE
        self._waits = True
        return said

    def in_steps(self, request_id: int, steps: Steps, size: int = 0) -> None:
        """Carry the present request out in steps; the last one writes its reply. `size` is what
        its body keeps in memory until then, in bytes."""
        self._request_id = request_id
        self._steps = steps
        self._keep(size)

    def close(self) -> None:
        """The connection ends: nothing that waits is carried out."""
        self._rota.leave(self)
        self._waits = self._choked = False
        self.decoder = FrameDecoder()
        self._backlog.clear()
        self._no_steps()

    def lost(self) -> None:
        """The connection is gone. It and this hold each other, and the collector is not what should
        free them."""
        self.close()
        self._connection = None

    def _no_steps(self) -> None:
        self._steps = None
        if self._kept_bytes:
            self._keep(0)

    def _keep(self, size: int) -> None:
        change_bytes, self._kept_bytes = size - self._kept_bytes, size
        self._inbound.keep(change_bytes)

    def _come(self) -> int:
        """Carry out as much as a newcomer may, even while other connections wait for room."""
        work = self._work
        may = self._rota.newcomer()
        before = work.done
        said = self._carry_out(may)
        self._rota.came(may, work.done - before)
        return said

    def _wait(self) -> None:
        self._waits = True
        self._rota.join(self)

    def _carry_out(self, may: int) -> int:
        """Carry out what waits, until nothing does, or so much is done, or there is no room for
        replies."""
        connection = self._connection
        work = self._work
        backlog = self._backlog
        until = work.done + may
        said = DONE
        if connection is None:
            return said
        while said == DONE:
            while backlog and self._steps is None:
                if not connection.has_room():
                    said = self._choke(connection)
                    break
                opcode, request_id, body = backlog.popleft()
                kind = KINDS.get(opcode)
                if kind is not None:
                    count = int.from_bytes(body[:4], "big")
                    cost = len(body) >> SHIFT
                    if cost < count:
                        cost = count
                    cost += kind.reads
                else:
                    count = 0
                    cost = COSTS.get(opcode, COLD_COST)
                if work.done + cost > until:
                    said = _fits(work, cost, until)
                    if said != DONE:
                        backlog.appendleft((opcode, request_id, body))
                        break
                    if cost > work.whole:
                        cost = 0  # it is carried out in steps, which count what they do
                work.done += cost
                connection.handle(opcode, request_id, body, kind, count)
                body = b""  # no reference: a large one would stay in memory while it is carried out
            if said != DONE:
                break
            if self._steps is not None:
                if not connection.has_room():
                    said = self._choke(connection)
                elif work.done >= until:
                    said = MORE
                else:
                    self._step(self._steps, connection)
            elif self.decoder.more:
                backlog += self.decoder.feed(b"", FRAMES_MAX)
            else:
                self._refuse(connection)
                break
        return said

    def _choke(self, connection: FibpConnection) -> int:
        """Replies pile up: let nothing more come in."""
        self._choked = True
        connection.read(False)
        return MORE

    def _step(self, steps: Steps, connection: FibpConnection) -> None:
        self._broker.begin()
        try:
            next(steps)
        except StopIteration:
            self._no_steps()
        except InvalidBody as error:
            self._no_steps()
            connection.invalid(self._request_id, error)

    def _refuse(self, connection: FibpConnection) -> None:
        """What could not be read comes after all that could."""
        errors = self.decoder.take_errors()
        if errors:
            connection.refuse_frames(errors)


def _fits(work: Work, cost: int, until: int) -> int:
    """Whether a request is carried out now that costs more than there is credit for."""
    if work.done >= until:
        return MORE
    if work.done and work.limit - work.done < cost <= work.whole:
        return FULL
    return DONE
