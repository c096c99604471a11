"""What SQS lets a queue be told: checked, kept, and told again.

Visibility timeout and delivery limit are the queue's own. What only SQS knows (delay, waiting time,
size, retention) is kept in the runtime config under `sqs:<queue>`, with the queue's number: a queue
that was deleted and made again begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fila.core.queue import DLQ_SUFFIX
from fila.edges.sqs.caller import ACCOUNT, as_text
from fila.edges.sqs.faults import SqsError, unsupported

CONFIG_PREFIX: Final = "sqs:"
MESSAGE_BYTES_MAX: Final = 1_048_576  # SQS's own limit, of a message and of a batch
# Name: (least, most, default), in seconds and bytes.
NUMBERS: Final = {
    "DelaySeconds": (0, 900, 0),
    "MaximumMessageSize": (1_024, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX),
    "MessageRetentionPeriod": (60, 1_209_600, 345_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20, 0),
    "VisibilityTimeout": (1, 43_200, 30),
}
_READ_ONLY: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
)
NAMES: Final = (*NUMBERS, "RedrivePolicy", *_READ_ONLY)
_FIFO: Final = (
    "FifoQueue",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
)


class Wanted(NamedTuple):
    """Attributes somebody set: those of the queue itself, and those only SQS knows."""

    visibility_ms: int | None
    max_attempts: int | None  # 0: no limit
    own: dict[str, int]


class Own(NamedTuple):
    """What is kept for a queue beside its own settings."""

    queue: int  # its number
    changed_s: int
    numbers: dict[str, int]

    def number(self, name: str) -> int:
        return self.numbers.get(name, NUMBERS[name][2])


def wanted(queue: str, attributes: object) -> Wanted:
    """Check what somebody wants to set. Raises SqsError."""
    if not isinstance(attributes, dict):
        raise SqsError("InvalidAttributeValue", "Attributes is no map")
    visibility_ms = max_attempts = None
    own: dict[str, int] = {}
    for name, value in attributes.items():
        if name in NUMBERS:
            number = _number(name, value)
            if name == "VisibilityTimeout":
                visibility_ms = number * 1000
            else:
                own[name] = number
        elif name == "RedrivePolicy":
            max_attempts = _redrive_policy(queue, value)
        elif name in _FIFO:
            if str(value).lower() not in ("", "false"):
                raise unsupported(f"{name}: Fila has no FIFO queues; see docs/sqs.md")
        elif name in _READ_ONLY:
            raise SqsError("InvalidAttributeName", f"{name} cannot be set")
        else:
            raise unsupported(f"the attribute {str(name)[:100]} is not supported")
    return Wanted(visibility_ms, max_attempts, own)


def kept(config: Mapping[str, str], queue: str, number: int) -> Own:
    """What is kept for the queue that has this number now."""
    text = config.get(CONFIG_PREFIX + queue)
    found = _parsed(text) if text else None
    return found if found is not None and found.queue == number else Own(number, 0, {})


def row_of(own: Own) -> str:
    """As it is kept in the runtime config."""
    return json.dumps({"queue": own.queue, "changed": own.changed_s, **own.numbers})


@lru_cache(maxsize=1_024)
def _parsed(text: str) -> Own | None:
    """None for what somebody else wrote there."""
    try:
        fields = json.loads(text)
        numbers = {name: _number(name, fields[name]) for name in NUMBERS if name in fields}
        return Own(int(fields["queue"]), int(fields["changed"]), numbers)
    except (ValueError, TypeError, KeyError, RecursionError, SqsError):
        return None


def _number(name: str, value: Any) -> int:
    low, high, _ = NUMBERS[name]
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high:
        return int(text)
    raise SqsError("InvalidAttributeValue", f"{name} is a whole number from {low} to {high}")


def _redrive_policy(queue: str, value: object) -> int:
    """How many failures make a dead letter. It goes to the queue's own dead letters, always."""
    if value == "":
        return 0
    try:
        policy = json.loads(as_text(value, "RedrivePolicy"))
        count = int(policy["maxReceiveCount"])
        target = str(policy["deadLetterTargetArn"])
    except (ValueError, TypeError, KeyError, RecursionError):
        text = "RedrivePolicy is JSON with deadLetterTargetArn and maxReceiveCount"
        raise SqsError("InvalidAttributeValue", text) from None
    if not 1 <= count <= 1_000:
        raise SqsError("InvalidAttributeValue", "maxReceiveCount is a number from 1 to 1000")
    if target.split(":")[-1] != queue + DLQ_SUFFIX:
        raise unsupported(
            f"the dead letters of {queue} are in {queue}{DLQ_SUFFIX}, which is there already: name "
            f"arn:aws:sqs:<region>:{ACCOUNT}:{queue}{DLQ_SUFFIX} as deadLetterTargetArn"
        )
    return count
