"""Who applies commands, and with what kind of reply each comes back.

Owns the replies' types: a caller knows what it gets without guessing.
"""

from __future__ import annotations

from typing import overload

from fila.core import command as c
from fila.core.command import Command
from fila.core.rejection import Rejection
from fila.core.room import Crowded

Reply = (
    Rejection
    | Crowded
    | list[int]
    | list[tuple[bytes, bool]]
    | tuple[int, int]
    | tuple[int, int, int]
    | int
    | None
)


class Applies:
    """The machine, and the turn in front of it."""

    # What is replied: a code, or a stamp, for each message,
    @overload
    def apply(
        self, command: c.Ack | c.Nack | c.Release | c.Extend | c.Reclassify
    ) -> list[int] | Rejection: ...

    # an id for each message, and whether its idempotency key was known already,
    @overload
    def apply(self, command: c.EnqueueKeyed) -> list[tuple[bytes, bool]] | Crowded | Rejection: ...

    # nothing, or what there was no room for,
    @overload
    def apply(self, command: c.Enqueue) -> Crowded | Rejection | None: ...

    # how many lease batches, and their messages,
    @overload
    def apply(self, command: c.ExtendBatch) -> tuple[int, int] | Rejection: ...

    # how many came to their end, how many messages did, and whether there is a rest,
    @overload
    def apply(self, command: c.AckBatch | c.ReleaseBatch) -> tuple[int, int, int] | Rejection: ...

    # how many messages, consumers, queues or keys it concerned, or which version holds now,
    @overload
    def apply(
        self,
        command: c.Age
        | c.BeginReclassify
        | c.EndReclassify
        | c.Expire
        | c.ExpireBatch
        | c.HandBack
        | c.Hold
        | c.Leave
        | c.PauseKey
        | c.PauseQueue
        | c.Purge
        | c.Redrive
        | c.ResumeKey
        | c.ResumeQueue
        | c.SetOverride
        | c.UpdateQueue
        | c.Withdraw,
    ) -> int | Rejection: ...

    # or nothing but that it was done.
    @overload
    def apply(
        self,
        command: c.Consume | c.CreateQueue | c.DeleteQueue | c.Lease | c.SetConfig | c.StoreAuth,
    ) -> Rejection | None: ...

    @overload
    def apply(self, command: Command) -> Reply: ...

    def apply(self, command: Command) -> Reply:
        return self.follow(command)

    def follow(self, command: Command) -> Reply:
        """Do what the command says; `apply` tells the type of the reply as well."""
        raise NotImplementedError
