"""Who applies commands, and with what kind of reply each comes back.

Owns the replies' types: a caller knows what it gets without guessing.
"""

from __future__ import annotations

from typing import overload

from fila.core.command import (
    Ack,
    AckBatch,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueKeyed,
    Expire,
    ExpireBatch,
    ExtendBatch,
    HandBack,
    Hold,
    Lease,
    Leave,
    Nack,
    PauseKey,
    PauseQueue,
    Purge,
    Redrive,
    Release,
    ReleaseBatch,
    ResumeKey,
    ResumeQueue,
    SetConfig,
    StoreAuth,
    Withdraw,
)
from fila.core.rejection import Rejection

Reply = Rejection | list[int] | list[tuple[bytes, bool]] | tuple[int, int] | int | None


class Applies:
    """The machine, and the turn in front of it."""

    # What is replied: a code for each message,
    @overload
    def apply(self, command: Ack | Nack | Release) -> list[int] | Rejection: ...

    # an id for each message, and whether its idempotency key was known already,
    @overload
    def apply(self, command: EnqueueKeyed) -> list[tuple[bytes, bool]] | Rejection: ...

    # how many lease batches, and their messages,
    @overload
    def apply(
        self, command: AckBatch | ExtendBatch | ReleaseBatch
    ) -> tuple[int, int] | Rejection: ...

    # how many messages, consumers, queues or keys it concerned,
    @overload
    def apply(
        self,
        command: Expire
        | ExpireBatch
        | HandBack
        | Hold
        | Leave
        | PauseKey
        | PauseQueue
        | Purge
        | Redrive
        | ResumeKey
        | ResumeQueue
        | Withdraw,
    ) -> int | Rejection: ...

    # or nothing but that it was done.
    @overload
    def apply(
        self,
        command: Consume | CreateQueue | DeleteQueue | Enqueue | Lease | SetConfig | StoreAuth,
    ) -> Rejection | None: ...

    @overload
    def apply(self, command: Command) -> Reply: ...

    def apply(self, command: Command) -> Reply:
        return self.follow(command)

    def follow(self, command: Command) -> Reply:
        """Do what the command says; `apply` tells the type of the reply as well."""
        raise NotImplementedError
