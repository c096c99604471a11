"""A client that is alone with a queue and does everything to it, killed broker or not.

It sends requests one at a time and keeps a `Model` of what each leaves: delays, idempotency keys,
throttles, pauses, lease batches, dead letters, redrives, purges, and the queue deleted and made
again, sometimes under a purge or redrive of another connection. A request whose answer never came
is looked into, or repeated, on the next connection.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from fila.wire import bodies, errors, message_codec
from fila.wire.message import payload_of
from tests.crash.ledger import Ledger
from tests.crash.model import DEAD, GONE, LIVE, Model
from tests.crash.workers import Address, Worker
from tests.e2e.peer import Closed, Peer, Quiet, Refused

KEYS = 1_500  # more than a step of a purge or redrive takes
VISIBILITY_MS = 600_000  # a batch is open until it is settled
CLOCKS_APART_MS = 10
GIVE_UP = "function on_failure(msg) return { action = 'dlq' } end"


class Batch:
    """The open lease batch, as far as is known."""

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place
        self.ids: dict[str, str] = {}  # token → id
        self.known = False  # whether the broker has told it
        self.ending = ""  # where its messages go by a request without an answer


class Keeper(Worker):
    def __init__(
        self,
        queue: str,
        address: Callable[[], Address | None],
        ledger: Ledger,
        chance: random.Random,
    ) -> None:
        super().__init__(address, ledger, chance)
        self.queue = queue
        self.model = Model()
        self.finish = threading.Event()
        self.done: dict[str, int] = {}  # how often each thing was done
        self._exists = False  # surely
        self._paused: bool | None = False
        self._again: tuple[bodies.EnqueueWith, list[str]] | None = None  # to be sent again
        self._batch: Batch | None = None
        self._batches = 0

    def work(self, peer: Peer) -> None:
        self._recover(peer)
        steps = [self._enqueue] * 6 + [self._lease] * 3 + [self._settle_batch] * 4
        steps += [self._redrive] * 2 + [self._pause, self._limit, self._purge, self._recreate]
        while not self.finish.is_set():
            self._do(peer, self.chance.choice([*steps, self._harvest]))
        self._do(peer, self._harvest)
        self.stopping.set()

    def _do(self, peer: Peer, step: Callable[[Peer], None]) -> None:
        step(peer)
        name = step.__name__.strip("_")
        self.done[name] = self.done.get(name, 0) + 1

    def _recover(self, peer: Peer) -> None:
        """Find out what the requests without an answer have done."""
        if not self._exists:
            try:
                peer.create_queue(self.queue, on_failure=GIVE_UP)
                self._forget_all()
            except Refused as error:
                if error.code != errors.QUEUE_ALREADY_EXISTS:
                    raise
            self._exists = True
        if self._again is not None:
            self._send(peer, *self._again, 0)
        if self._batch is not None:
            self._ask_again(peer, self._batch)

    # --- what it does

    def _enqueue(self, peer: Peer) -> None:
        count = self.chance.choice((1, 1, 20, 100, KEYS))
        delay_ms = self.chance.choice((0, 0, 0, 50, 300))
        once = self.chance.random() < 0.5
        throttles = self.chance.choice(((), (), (self._throttle,)))
        tokens = self.model.make(count, self.queue)
        items = tuple(
            bodies.EnqueueWithItem(
                self.queue,
                {},
                token.encode(),
                delay_ms,
                f"once-{token}" if once else "",
                f"key-{number}",
                0,
                throttles,
            )
            for number, token in enumerate(tokens)
        )
        wanted = bodies.EnqueueWith(items)
        if once:
            self._again = wanted, tokens
        self._send(peer, wanted, tokens, delay_ms)

    def _send(
        self, peer: Peer, wanted: bodies.EnqueueWith, tokens: list[str], delay_ms: int
    ) -> None:
        asked_ms = time.time_ns() // 1_000_000 - CLOCKS_APART_MS
        found = peer.request(wanted, bodies.EnqueueWithResult)
        for token, one in zip(tokens, found.results, strict=True):
            assert one.code == errors.OK, one
            self.model.was_stored(token, one.message_id, delay_ms, asked_ms)
        self._again = None

    def _lease(self, peer: Peer) -> None:
        self._take(peer, LIVE, self.chance.choice((1, 10, 100)), 0)

    def _take(self, peer: Peer, place: str, count: int, wait_ms: int) -> None:
        if self._batch is not None:
            self._release(peer, self._batch)
        batch = self._batch = Batch(f"s/{self._batches}", place)
        self._batches += 1
        self._told(peer, batch, count, wait_ms)

    def _told(self, peer: Peer, batch: Batch, count: int, wait_ms: int) -> None:
        wanted = bodies.LeaseBatch(
            self._where(batch.place), batch.name, count, 0, VISIBILITY_MS, wait_ms
        )
        try:
            found = peer.request(wanted, bodies.LeaseBatchResult)
        except Refused as error:
            if error.code != errors.BATCH_NOT_FOUND or count:
                raise
            found = bodies.LeaseBatchResult(errors.OK)
        items = message_codec.decode_delivery(found.body) if found.messages else []
        ids: dict[str, str] = {}
        for id, _, body, *_, leased_ms in items:
            token = payload_of(body).decode()
            ids[token] = id.decode()
            self.model.was_delivered(token, ids[token], batch.place, leased_ms)
        if len(ids) != len(items):
            self.model.broken.append(f"{batch.name} holds a message twice")
        if self._paused and batch.place == LIVE and not found.again and ids:
            self.model.broken.append(f"{self.queue} is paused and {len(ids)} messages were leased")
        if batch.known:
            self._compare(batch, ids)
        batch.ids, batch.known, batch.ending = ids, True, ""
        if batch.place == LIVE:
            self.model.held = set(ids)
        if not ids:
            self._forget_batch()

    def _compare(self, batch: Batch, ids: dict[str, str]) -> None:
        """A batch that was told before is what it was, but for what a last request has ended."""
        if not ids.items() <= batch.ids.items():
            self.model.broken.append(f"{batch.name} grew after a kill")
        left = [token for token in batch.ids if token not in ids]
        if left and not batch.ending:
            self.model.broken.append(f"{batch.name} lost {len(left)} messages")
        for token in left:
            self.model.stayed(token, batch.ending or batch.place)

    def _ask_again(self, peer: Peer, batch: Batch) -> None:
        self._told(peer, batch, 0, 0)

    def _settle_batch(self, peer: Peer) -> None:
        """End the open batch in one of four ways, or only ask for it again."""
        batch = self._batch
        if batch is None:
            return
        how = self.chance.random()
        if how < 0.1:
            self._ask_again(peer, batch)
        elif how < 0.5:
            self._ack_batch(peer, batch)
        elif how < 0.7:
            self._release(peer, batch)
        else:
            self._give_up(peer, batch)

    def _release(self, peer: Peer, batch: Batch) -> None:
        batch.ending = batch.place
        wanted = bodies.ReleaseBatch(self._where(batch.place), batch.name)
        found = peer.request(wanted, bodies.ReleaseBatchResult)
        if found.messages != len(batch.ids):
            self.model.broken.append(f"{found.messages} of {len(batch.ids)} were released")
        self._forget_batch()

    def _give_up(self, peer: Peer, batch: Batch) -> None:
        """Reject its messages, some at a time, so that a kill comes between."""
        if batch.place == DEAD:
            return
        batch.ending = DEAD
        self.model.may_move(LIVE, DEAD, batch.ids)
        ids = list(batch.ids.values())
        for start in range(0, len(ids), 20):
            codes = peer.nack(self.queue, *ids[start : start + 20], error="no")
            assert set(codes) == {errors.OK}, codes
        self.model.moved(LIVE, DEAD, batch.ids)
        self._forget_batch()

    def _ack_batch(self, peer: Peer, batch: Batch) -> None:
        batch.ending = GONE
        self.model.may_move(batch.place, GONE, batch.ids)
        found = peer.request(
            bodies.AckBatch(self._where(batch.place), batch.name), bodies.AckBatchResult
        )
        if found.messages != len(batch.ids):
            self.model.broken.append(f"{found.messages} of {len(batch.ids)} were acked")
        self.model.moved(batch.place, GONE, batch.ids)
        self._forget_batch()

    def _redrive(self, peer: Peer) -> None:
        if self._batch is not None and self._batch.place == DEAD:
            return  # what is leased stays; left out for simplicity
        sure = self.model.may_move(DEAD, LIVE)
        moved = peer.redrive(self._where(DEAD))
        if moved < len(sure):
            self.model.broken.append(f"{moved} of {len(sure)} dead letters were redriven")
        self.model.moved(DEAD, LIVE)

    def _purge(self, peer: Peer) -> None:
        sure = self.model.may_move(LIVE, GONE)
        found = peer.request(bodies.Purge(self.queue), bodies.PurgeResult)
        if found.purged < len(sure):
            self.model.broken.append(f"{found.purged} of {len(sure)} messages were purged")
        self.model.moved(LIVE, GONE)

    def _recreate(self, peer: Peer) -> None:
        """Delete the queue and make it again, maybe while another connection's purge or redrive
        is at work in it. What is stored afterwards is no business of theirs."""
        under: bodies.Purge | bodies.Redrive = bodies.Purge(self.queue)
        if self.chance.random() < 0.5:
            under = bodies.Redrive(self._where(DEAD))
        with Peer(self._there(), wait_s=peer.wait_s) as other:
            self.model.may_move(DEAD, LIVE)
            self.model.may_move(LIVE, GONE)  # the broker may be killed when the purge is done
            asked = other.post(under)
            for _ in range(2):  # so that it is asked for before the queue is deleted
                peer.ping()
            for place in (LIVE, DEAD):
                self.model.may_move(place, GONE, self.model.tokens())
            self._exists, self._paused = False, None
            peer.delete_queue(self.queue)
            self._forget_all()
            peer.create_queue(self.queue, on_failure=GIVE_UP)
            self._exists, self._paused = True, False
            self._enqueue(peer)
            try:
                other.reply(asked)
            except Refused:
                pass  # the queue was deleted under it

    def _forget_all(self) -> None:
        """The queue is deleted."""
        for place in (LIVE, DEAD):
            self.model.moved(place, GONE, self.model.tokens())
        self._forget_batch()
        self._paused = False

    def _pause(self, peer: Peer) -> None:
        paused, self._paused = self._paused, None
        if paused:
            peer.request(bodies.ResumeQueue(self.queue), bodies.ResumeQueueResult)
        else:
            peer.request(bodies.PauseQueue(self.queue, "storm"), bodies.PauseQueueResult)
        self._paused = not paused

    def _limit(self, peer: Peer) -> None:
        peer.set_config(f"throttle.{self._throttle}", self.chance.choice(("5,5", "1000,1000", "")))

    def _harvest(self, peer: Peer) -> None:
        """Take out all there is: it must be what was stored."""
        model = self.model
        self._paused = None
        peer.request(bodies.ResumeQueue(self.queue), bodies.ResumeQueueResult)
        self._paused = False
        peer.set_config(f"throttle.{self._throttle}", "")
        self._count(peer)
        end = time.monotonic() + peer.wait_s
        for place in (LIVE, DEAD):
            while True:
                self._take(peer, place, 500, 20)
                if self._batch is not None:
                    self._ack_batch(peer, self._batch)
                found = peer.stats(self._where(place))
                if found.depth + found.in_flight == 0:
                    break
                if time.monotonic() > end:
                    raise Quiet(f"{place}: {found.depth} pending, {found.in_flight} leased")
        model.conclude()

    def _count(self, peer: Peer) -> None:
        for place in (LIVE, DEAD):
            found = peer.stats(self._where(place))
            count = found.depth + found.in_flight
            least, most = self.model.surely(place), self.model.possibly(place)
            if not least <= count <= most:
                self.model.broken.append(f"{count} are {place}, must be {least} to {most}")

    # --- small things

    @property
    def _throttle(self) -> str:
        return f"storm-{self.queue}"

    def _where(self, place: str) -> str:
        return self.queue if place == LIVE else f"{self.queue}.dlq"

    def _there(self) -> Address:
        address = self.address()
        if address is None:
            raise Closed("the broker was killed")
        return address

    def _forget_batch(self) -> None:
        self._batch = None
        self.model.held = set()
