"""What is said about waits and stops: explanations, pauses and purges.

Owns names and types only, like `bodies`, which shows these records beside its own.
"""

from typing import NamedTuple


class Explain(NamedTuple):
    """An empty queue: all that the key may see, in short. An empty id: no message."""

    queue: str
    fairness_key: str | None = None
    message_id: str = ""
    keys_max: int = 10


class ExplainResult(NamedTuple):
    code: int
    document: bytes = b""  # JSON; spec/explain.md


class PauseQueue(NamedTuple):
    queue: str
    reason: str = ""


class PauseQueueResult(NamedTuple):
    code: int


class ResumeQueue(NamedTuple):
    queue: str


class ResumeQueueResult(NamedTuple):
    code: int


class PauseKey(NamedTuple):
    queue: str
    fairness_key: str
    reason: str = ""


class PauseKeyResult(NamedTuple):
    code: int


class ResumeKey(NamedTuple):
    queue: str
    fairness_key: str


class ResumeKeyResult(NamedTuple):
    code: int


class Purge(NamedTuple):
    """Without a key: of all keys."""

    queue: str
    fairness_key: str | None = None


class PurgeResult(NamedTuple):
    code: int
    purged: int = 0
