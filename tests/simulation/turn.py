"""What the outside sees of one turn: the commands, their replies, and what was let go."""

from __future__ import annotations

from typing import NamedTuple

from fila.core.command import Command
from fila.core.effect import BatchLeased, Delivery, Ended, Event
from fila.core.effects import Effects
from fila.core.machine import Reply


class Violation(AssertionError):  # noqa: N818 - it is the name of what happened, not an error
    """A promise was broken: which one, and how."""

    def __init__(self, promise: str, detail: str) -> None:
        super().__init__(f"{promise}: {detail}")
        self.promise = promise


def same(promise: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise Violation(promise, f"{seen!r}, should be {expected!r}")


class Step(NamedTuple):
    """One command and its reply. `asked` is what the machine told before the command was made."""

    command: Command
    reply: Reply
    asked: object = None


class Turn:
    __slots__ = (
        "batches_leased",
        "deadline_ns",
        "deliveries",
        "ended",
        "events",
        "more",
        "now_ns",
        "steps",
        "wrote",
    )

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.steps: list[Step] = []
        self.deliveries: list[Delivery] = []
        self.ended: list[Ended] = []
        self.events: list[Event] = []
        self.batches_leased: list[BatchLeased] = []
        self.more = False  # a pass was cut short
        self.deadline_ns = 0  # when the machine wanted to wake after this turn
        self.wrote = False

    def close(self, effects: Effects, more: bool, deadline_ns: int) -> None:
        self.deliveries = effects.deliveries
        self.ended = effects.ended
        self.events = effects.events.expand()
        self.batches_leased = effects.batches_leased
        self.wrote = bool(effects.batches)
        self.more = more
        self.deadline_ns = deadline_ns

    def weight(self) -> int:
        """How many simulated events it held: a message moved or a command of another kind."""
        count = sum(len(delivery.entries) for delivery in self.deliveries)
        for command, _, _ in self.steps:
            count += len(getattr(command, "ids", "x"))
        return count

    def text(self) -> str:
        """The turn for a person who wants to know what went wrong."""
        lines = [f"turn at {self.now_ns} ns{' (cut short)' if self.more else ''}"]
        for command, reply, _ in self.steps:
            fields = zip(command._fields, command, strict=True)
            told = ", ".join(f"{name}={_plain(value)}" for name, value in fields if value)
            lines.append(f"  {type(command).__name__} {told} -> {_plain(reply)}")
        for delivery in self.deliveries:
            ids = ", ".join(
                f"{_plain(entry[0][20:])} {lane.key.name.decode()}/"
                f"{b'+'.join(lane.throttle_keys).decode()}#{entry[2]}"
                for entry, lane in zip(delivery.entries, delivery.lanes, strict=True)
            )
            where = f"{delivery.consumer.queue.name} to {delivery.consumer.id}"
            lines.append(f"  delivered by {where}, lease {delivery.lease}: {ids}")
        for leased in self.batches_leased:
            ids = " ".join(_plain(entry[0][20:]) for entry in leased.entries)
            lines.append(f"  batch for request {leased.request}: {ids}")
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
        return repr((self.now_ns, self.steps, delivered, self.more, self.deadline_ns))


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
