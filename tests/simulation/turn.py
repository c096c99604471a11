"""What is seen of one turn: what was asked, what the turn did by itself, and what was let go."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.applies import Reply
from fila.core.command import Command
from fila.core.effect import BatchLeased, Delivery, Ended, Event
from fila.core.effects import Effects
from fila.core.entry import BODY, message_id
from fila.core.turn import Applied
from fila.core.verdict import FailedItem


class Violation(AssertionError):  # noqa: N818 - it is the name of what happened, not an error
    """A promise was broken: which one, and how."""

    def __init__(self, promise: str, detail: str) -> None:
        super().__init__(f"{promise}: {detail}")
        self.promise = promise


def same(promise: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise Violation(promise, f"{seen!r}, should be {expected!r}")


class AskRedrive(NamedTuple):
    """Somebody wants a redrive, by which number its answer is known; the turn makes its steps."""

    queue: str
    count: int  # type: ignore[assignment]  # as everywhere; a tuple's own `count` is not missed
    number: int


class AskPurge(NamedTuple):
    """Somebody wants a purge. `named`: how many lanes it found when it was asked for."""

    queue: str
    fairness_key: bytes | None
    number: int
    named: int


class AskUnload(NamedTuple):
    """The group of the queues of one family is to leave memory with this turn."""

    family: str


class AskLoad(NamedTuple):
    """And comes back at once."""

    family: str


class Step(NamedTuple):
    """One command and its reply. `asked` is what the machine told before the command was made."""

    command: Command | AskRedrive | AskPurge | AskUnload | AskLoad
    reply: Reply
    asked: object = None


Hooked = tuple[str, list[FailedItem]]  # a queue, and what its failure hook was shown


class Record:
    __slots__ = (
        "answers",
        "apart",
        "away",
        "batches_leased",
        "deadline_ns",
        "deliveries",
        "ended",
        "events",
        "hooked",
        "lingering",
        "more",
        "now_ns",
        "own",
        "steps",
        "waits",
        "wrote",
    )

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.steps: list[Step] = []  # what clients asked, in their order
        self.own: list[Applied] = []  # what the turn did by itself, in its order
        self.lingering = False  # a reclassification has yet to see that its queue is gone
        self.hooked: list[Hooked] = []  # calls of failure hooks
        self.answers: list[tuple[int, int]] | None = None  # jobs that ended; None: not let go
        self.deliveries: list[Delivery] = []
        self.ended: list[Ended] = []
        self.events: list[Event] = []
        self.batches_leased: list[BatchLeased] = []
        self.more = False  # a pass was cut short
        self.waits = False  # for a commit: nothing more was handed out
        self.deadline_ns = 0  # when the next turn was wanted after this one
        self.wrote = False
        self.away: set[str] = set()  # queues that were not in memory after it
        self.apart: set[str] = set()  # queues that were quarantined with it

    def close(self, effects: Effects, more: bool, waits: bool, deadline_ns: int) -> None:
        self.deliveries = effects.deliveries
        self.ended = effects.ended
        self.events = effects.events.expand()
        self.batches_leased = effects.batches_leased
        self.more = more
        self.waits = waits
        self.deadline_ns = deadline_ns

    def weight(self) -> int:
        """How many simulated events it held: a message moved or a command of another kind."""
        count = sum(len(delivery.entries) for delivery in self.deliveries)
        for command, _, _ in self.all_steps():
            count += len(getattr(command, "ids", "x"))
        return count

    def delivered_bytes(self) -> int:
        return sum([len(entry[BODY]) for one in self.deliveries for entry in one.entries])

    def all_steps(self) -> list[Step]:
        return [*self.steps, *[Step(*one) for one in self.own]]

    def text(self) -> str:
        """The turn for a person who wants to know what went wrong."""
        lines = [f"turn at {self.now_ns} ns{' (cut short)' if self.more else ''}"]
        for place, (command, reply, _) in enumerate(self.all_steps()):
            if place == len(self.steps):
                lines.append("  at its end:")
            fields = zip(command._fields, command, strict=True)
            told = ", ".join(
                f"{name}={_plain(value)}" for name, value in fields if value and name != "entries"
            )
            lines.append(f"  {type(command).__name__} {told} -> {_plain(reply)}")
        for delivery in self.deliveries:
            ids = ", ".join(
                f"{_plain(message_id(entry))} {lane.key.name.decode()}/"
                f"{b'+'.join(lane.throttle_keys).decode()}#{entry[2]}"
                for entry, lane in zip(delivery.entries, delivery.lanes, strict=True)
            )
            where = f"{delivery.consumer.queue.name} to {delivery.consumer.id}"
            lines.append(f"  delivered by {where}, lease {delivery.lease}: {ids}")
        for leased in self.batches_leased:
            ids = " ".join(_plain(message_id(entry)) for entry in leased.entries)
            lines.append(f"  batch for request {leased.request}: {ids}")
        for number, count in self.answers or ():
            lines.append(f"  job {number} is done: {count}")
        for ended in self.ended:
            lines.append(f"  ended {ended.consumer.id}")
        lines.append(f"  wants to wake at {self.deadline_ns}")
        return "\n".join(lines)

    def mark(self) -> str:
        """Everything of the turn that must be the same whenever the seed is run."""
        delivered = [
            (one.consumer.id, one.lease, [entry[:5] for entry in one.entries], one.waits)
            for one in self.deliveries
        ]
        return repr((self.now_ns, self.steps, self.own, delivered, self.more, self.deadline_ns))


def _plain(value: object) -> str:
    """Short enough to read: ids by their last digits, bodies by their size."""
    if isinstance(value, bytes):
        if len(value) == 16:
            return value.hex()[-5:].lstrip("0")
        return value.decode() if len(value) < 16 else f"{len(value)} B"
    if isinstance(value, tuple):
        return "/".join(_plain(one) for one in value)
    if isinstance(value, list):
        return f"[{' '.join(_plain(one) for one in value)}]"
    return str(value)
