"""What the outside asks of the broker in a turn: producers, consumers, administrators, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from fila.core.command import (
    Ack,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueKeyed,
    Extend,
    HandBack,
    Hold,
    Leave,
    PauseKey,
    PauseQueue,
    Purge,
    Redrive,
    Release,
    ResumeKey,
    ResumeQueue,
    SetConfig,
)
from fila.core.entry import message_id
from fila.core.purging import LaneName
from fila.core.rejection import Rejection
from fila.core.verdict import Assignment, FailureVerdict

from . import caps
from .ages import Ages
from .batch_readers import BatchReaders
from .clients import Client, Clients
from .overrides import Overrides
from .profile import Profile
from .reclassify import Reclassifies
from .rooms import Rooms
from .updates import Updates

if TYPE_CHECKING:
    from .world import World

WRONG_PAIRS = ("abc", "1", "1,2,3", "-1,5", "nan,1", "1,inf", ",")
WRONG_NUMBERS = ("x", "-1", "nan", "1e999", "+3")


class Workload:
    def __init__(self, rng: Random, profile: Profile, clients: Clients) -> None:
        self.rng = rng
        self.profile = profile
        self.clients = clients
        self.made_again = ""  # a queue with a purge under way, to be deleted and created
        self.phase = "mixed"
        self.batches = BatchReaders(rng)
        self.ages = Ages(profile.ages, profile.turns)
        self.rooms = Rooms(profile.rooms, profile.turns)
        self.updates = Updates(profile.updates, profile.turns)
        self.overrides = Overrides(profile.overrides, profile.turns)
        self.reclassifies = Reclassifies(profile.reclassified, profile.turns)
        self.caps = caps.Operators(profile)
        self.enqueued = 0

    def open(self, world: World) -> None:
        """What an operator sets up before traffic comes."""
        for queue in self.profile.queues:
            self.create(world, queue)
        for name in self.profile.throttle_names():
            if self.rng.random() < 0.9:
                self.limit(world, name.decode())

    def ask(self, world: World) -> None:
        """Everything that is asked in one turn, in some order."""
        rng = self.rng
        if rng.random() < 0.06:
            self.phase = rng.choice(("flood", "mixed", "drain", "quiet"))
        actions: list[Callable[[], None]] = []
        if self.phase != "quiet":
            for client in self.clients.alive.values():
                if self.profile.extended and rng.random() < self.profile.extended:
                    actions.append(partial(self.extend, world, client))
                if rng.random() < (0.3 if self.phase == "flood" else 0.7):
                    actions.append(partial(self.answer, world, client))
        if self.phase != "drain" and world.backlog() < self.profile.backlog_max:
            batches = rng.randint(1, 3) if self.phase == "flood" else int(rng.random() * 2.2)
            actions += [lambda: self.enqueue(world)] * batches
        for queue in self.profile.queues:
            if queue not in world.machine.state.queues and rng.random() < 0.2:
                actions.append(partial(self.create, world, queue))
        hurry = 0.2 if self.clients.alive else 0.5
        if len(self.clients.alive) < self.profile.consumers_max and rng.random() < hurry:
            actions.append(lambda: self.consume(world))
        if self.clients.alive and rng.random() < 0.03:
            actions.append(lambda: self.leave(world))
        if self.clients.alive and rng.random() < 0.05:
            actions.append(lambda: self.pause(world))
        if self.clients.remembered and rng.random() < 0.08:
            actions.append(lambda: self.answer_late(world))
        if self.profile.throttle_sets and rng.random() < self.profile.limits:
            name = rng.choice(rng.choice(self.profile.throttle_sets) or (b"t0",))
            actions.append(lambda: self.limit(world, name.decode()))
        if rng.random() < 0.05:
            actions.append(lambda: self.redrive(world))
        if self.profile.stops and rng.random() < self.profile.stops:
            actions.append(lambda: self.stop(world))
        if rng.random() < self.profile.batches:
            actions.append(lambda: self.batches.act(world, self.some_queue(world)))
        if rng.random() < self.profile.admin:
            actions.append(lambda: self.administrate(world))
        if self.updates.wanted():
            actions.append(lambda: self.updates.ask(world, self.profile.queues))
        if self.ages.wanted():
            actions.append(lambda: self.ages.ask(world, self.profile.queues))
        if self.reclassifies.wanted():
            actions.append(lambda: self.reclassifies.ask(world, self.profile.queues))
        if self.overrides.wanted():
            asked = self.profile
            actions.append(lambda: self.overrides.ask(world, asked.queues, asked.keys))
        if self.caps.wanted():
            actions.append(lambda: self.caps.ask(world))
        if self.rooms.wanted():
            actions.append(lambda: self.rooms.ask(world, self.profile.queues))
        if self.made_again and rng.random() < 0.5:
            actions.append(partial(self.make_again, world, self.made_again))
            self.made_again = ""
        rng.shuffle(actions)
        for action in actions:
            action()

    # --- producers

    def enqueue(self, world: World) -> None:
        rng = self.rng
        profile = self.profile
        count = rng.randint(1, profile.batch_max)
        ids = [self.next_id() for _ in range(count)]
        bodies = [id + b"." * rng.randint(0, profile.body_bytes_max) for id in ids]
        bodies = [self.ages.dress(world, body) for body in bodies]
        one = self.assignment() if rng.random() < 0.3 else None
        assignments = [one or self.assignment() for _ in ids]
        delays = None
        if rng.random() < profile.delayed:
            delays = [rng.choice((0, rng.randint(1, profile.delay_ms_max))) for _ in ids]
        queue = rng.choice(profile.queues) if rng.random() < 0.99 else "nowhere"
        if rng.random() < profile.keyed:
            keys = [rng.choice((b"", b"n%d" % rng.randint(0, 60))) for _ in ids]
            given = delays or [0] * count
            world.apply(EnqueueKeyed(queue, ids, bodies, assignments, given, keys))
            return
        world.apply(Enqueue(queue, ids, bodies, assignments, delays))

    def next_id(self) -> bytes:
        self.enqueued += 1
        return (0x0190 << 112 | 7 << 76 | self.enqueued).to_bytes(16, "big")

    def assignment(self) -> Assignment:
        key = self.profile.fairness_key()
        return Assignment(key, self.profile.weight(key), self.profile.throttle_keys())

    # --- consumers

    def consume(self, world: World) -> None:
        rng = self.rng
        queue = self.some_queue(world)
        client = self.clients.connect(queue)
        prefetch = rng.choice((0, rng.randint(1, self.profile.prefetch_max)))
        size = rng.choice((1, 50, 500)) if self.profile.bytes_limited else 0
        if rng.random() < 0.01:
            prefetch = 1 << 20
        reply = world.apply(Consume(queue, client.id, client.connection, prefetch, size))
        if reply is not None:
            self.clients.remove(client.id)

    def leave(self, world: World) -> None:
        """Gracefully, handing its leases back, or by losing the connection; then they stay."""
        rng = self.rng
        if not self.clients.alive:
            return
        client = rng.choice(list(self.clients.alive.values()))
        self.clients.remove(client.id)
        world.apply(Leave(client.queue, client.id, release=rng.random() < 0.5))
        if rng.random() < 0.3:
            world.apply(HandBack(client.queue, rng.choice((client.connection, 1))))

    def pause(self, world: World) -> None:
        """A client stops reading, or reads on."""
        if self.clients.alive:
            client = self.rng.choice(list(self.clients.alive.values()))
            world.apply(Hold(client.queue, client.id, self.rng.random() < 0.4))

    def answer(self, world: World, client: Client) -> None:
        ids = client.answers(self.rng)
        if not ids or client.id not in self.clients.alive:
            return
        roll = self.rng.random()
        connection = client.connection
        if roll < 0.05:
            connection = 0  # nobody consumes on this one
        elif roll < 0.1:
            connection = self.rng.choice(list(self.clients.alive.values())).connection
        self.settle(world, client.queue, ids, connection)

    def extend(self, world: World, client: Client) -> None:
        """A heart-beat for some of what it holds; now and then for what it does not."""
        rng = self.rng
        if client.id not in self.clients.alive or not client.held:
            return
        ids = list(client.held)
        if rng.random() < 0.6:
            ids = rng.sample(ids, rng.randint(1, len(ids)))
        if self.clients.remembered and rng.random() < 0.2:
            ids.append(rng.choice(self.clients.remembered)[1])
        if rng.random() < 0.1:
            ids.append(ids[0])
        connections = [one.connection for one in self.clients.alive.values()]
        connection = rng.choice((client.connection, client.connection, 0, rng.choice(connections)))
        visibility_ms = rng.choice((0, 0, 1_000, 1_500, 8_000, 60_000, 7))
        world.apply(Extend(client.queue, ids, visibility_ms, connection))

    def answer_late(self, world: World) -> None:
        """Long after the lease, over any connection, for a message that may be anywhere by now."""
        rng = self.rng
        queue, id = rng.choice(self.clients.remembered)
        connections = [0, *[client.connection for client in self.clients.alive.values()]]
        self.settle(world, queue, [id] * rng.choice((1, 1, 2)), rng.choice(connections))

    def settle(self, world: World, queue: str, ids: list[bytes], connection: int) -> None:
        if self.rng.random() < self.profile.released:
            world.apply(Release(queue, ids, connection))
            return
        if self.rng.random() >= self.profile.failures:
            world.apply(Ack(queue, ids, connection))
            return
        world.nack(queue, ids, ["it broke"] * len(ids), connection)

    def verdict(self) -> FailureVerdict:
        rng = self.rng
        delay_ms = rng.choice((0, 0, rng.randint(1, self.profile.delay_ms_max)))
        return FailureVerdict(rng.random() < self.profile.dead, delay_ms)

    # --- administrators

    def create(self, world: World, queue: str) -> None:
        visibility_ms = self.rng.choice((0, 0, 1_000, 2_500, 20_000))
        limit = self.profile.max_attempts
        if limit and self.rng.random() < 0.1:
            limit = self.rng.choice((1, 10**9))
        cost = "messages" if limit else ""
        if queue in self.profile.by_bytes:
            cost = "bytes"
        capped = 0 if queue.endswith(".dlq") else self.profile.capped
        world.apply(CreateQueue(queue, None, None, visibility_ms, limit, cost, capped))

    def limit(self, world: World, name: str) -> None:
        """Set, change or lift a limit, in either syntax; now and then wrongly."""
        rng = self.rng
        rate = rng.choice(self.profile.rates)
        burst = rng.choice(self.profile.bursts)
        key, value = rng.choice(
            (
                (f"throttle.{name}", f"{rate},{burst}"),
                (f"throttle.{name}", f"{rate},{burst}"),
                (f"throttle:{name}:rate", rate),
                (f"throttle:{name}:rate", rate),
                (f"throttle:{name}:burst", burst),
                (f"throttle.{name}", ""),
                (f"throttle:{name}:rate", ""),
                (f"throttle:{name}:burst", ""),
            )
        )
        if rng.random() < 0.05:
            wrong = WRONG_PAIRS if key.startswith("throttle.") else WRONG_NUMBERS
            value = rng.choice(wrong)
        world.apply(SetConfig(key, value))
        if rng.random() < 0.1:
            self.limit(world, name)

    def redrive(self, world: World) -> None:
        rng = self.rng
        queue = rng.choice(self.profile.queues)
        if rng.random() < 0.95 and not queue.endswith(".dlq"):
            queue += ".dlq"
        if rng.random() < self.profile.stepwise:
            world.redrive(queue, rng.choice((0, 1, rng.randint(1, 30))))
            return
        count = rng.randint(1, world.settings.redrive_messages)
        found = world.machine.oldest(queue, count)
        ids = [message_id(entry) for entry in found]
        world.apply(Redrive(queue, ids, [self.assignment() for _ in ids]), count)

    def stop(self, world: World) -> None:
        """Pause or resume a queue or a key, or drop what waits."""
        rng = self.rng
        queue = self.some_queue(world)
        key = self.profile.fairness_key()
        roll = rng.random()
        if roll < 0.1:
            world.apply(PauseQueue(queue, "to see", "ops"))
        elif roll < 0.3:
            world.apply(ResumeQueue(queue, "ops"))
        elif roll < 0.45:
            world.apply(PauseKey(queue, key, "to see", "ops"))
        elif roll < 0.6:
            world.apply(ResumeKey(queue, key, "ops"))
        else:
            self.purge(world, queue, key if rng.random() < 0.5 else None)

    def purge(self, world: World, queue: str, key: bytes | None) -> None:
        found = world.machine.purgeable(queue, key)
        named: list[LaneName] = []
        if not isinstance(found, Rejection):
            found.gather(1 << 62)
            named = found.take(found.left)
        if self.rng.random() < self.profile.stepwise:
            world.purge(queue, key, len(named))
            if self.rng.random() < 0.3:
                self.made_again = queue
            return
        if isinstance(found, Rejection):
            world.apply(Purge(queue, [], True))
            return
        lanes = named
        cut = self.rng.randint(0, len(lanes))
        if cut and self.rng.random() < 0.5:
            # In two steps, as a big one is made; other things happen in between.
            world.apply(Purge(queue, lanes[:cut], key is None, "ops", found.next_lane))
            self.enqueue(world)
            lanes = lanes[cut:]
            world.apply(Purge(queue, lanes, key is None, "ops", found.next_lane))
        else:
            every = Purge(queue, lanes, key is None, "ops", found.next_lane)
            world.apply(every, "all" if key is None else None)
        if named and self.rng.random() < 0.8:
            self.refill(world, queue, Assignment(named[-1][0], 1, named[-1][1]))

    def refill(self, world: World, queue: str, assignment: Assignment) -> None:
        """More than a window holds for one lane: what comes next is looked for in the store."""
        count = min(world.settings.window_messages + 2, 20)
        ids = [self.next_id() for _ in range(count)]
        world.apply(Enqueue(queue, ids, ids, [assignment] * count))

    def administrate(self, world: World) -> None:
        rng = self.rng
        queue = rng.choice(self.profile.queues)
        roll = rng.random()
        if roll < 0.3:
            world.apply(DeleteQueue(queue if rng.random() < 0.7 else f"{queue}.dlq"))
            if rng.random() < 0.5:
                self.create(world, queue)
        elif roll < 0.7:
            self.create(world, queue)
        elif roll < 0.8:
            self.create(world, rng.choice(("", "a\nb", "x" * 300, "é" * 200)))
        elif roll < 0.9:
            world.apply(CreateQueue("brief", None, None, rng.choice((1, 999, 10**12))))
        else:
            world.apply(SetConfig("greeting", rng.choice(("hello", ""))))

    def make_again(self, world: World, queue: str) -> None:
        """Another queue of the same name, while jobs of the first may be under way."""
        world.apply(DeleteQueue(queue))
        self.create(world, queue)

    def some_queue(self, world: World) -> str:
        """Mostly one that has something to consume."""
        rng = self.rng
        if rng.random() < 0.02:
            return "nowhere"
        names = list(world.machine.state.queues)
        filled = [name for name in names if world.machine.state.queues[name].pending]
        return rng.choice((filled if rng.random() < 0.7 else names) or self.profile.queues)
