"""SQS's operations on queues: make, find, describe, change, delete, purge, redrive."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from typing import Any, Final

from fila.core import versions
from fila.core.queue import DLQ_SUFFIX
from fila.core.rejection import Rejection
from fila.edges.sqs import faults, queue_attributes
from fila.edges.sqs.caller import Caller, as_text, number_of, text_of
from fila.edges.sqs.faults import SqsError, invalid, unsupported
from fila.edges.sqs.forms import Parameters
from fila.edges.sqs.queue_attributes import CONFIG_PREFIX, NAMES, NUMBERS, Own, Wanted
from fila.wire import bodies

LIST_MAX: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_S: Final = 1_000_000_000


def own_of(caller: Caller, queue: str) -> Own:
    """What only SQS knows of a queue; of one that is not there the defaults."""
    view = caller.broker.machine.view
    return queue_attributes.kept(view.config, queue, view.queue_number(queue))


async def create_queue(caller: Caller, parameters: Parameters) -> Parameters:
    name = text_of(parameters, "QueueName")
    if name.endswith(".fifo"):
        raise unsupported("Fila has no FIFO queues: name a standard queue; see docs/sqs.md")
    if not _NAME.fullmatch(name):
        raise invalid("QueueName", "use 1 to 80 letters, digits, hyphens, underscores and dots")
    if parameters.get("tags") or parameters.get("Tags"):
        raise unsupported("tags are not supported")
    wanted = queue_attributes.wanted(name, parameters.get("Attributes") or {})
    request = bodies.CreateQueue(
        name, None, None, wanted.visibility_ms or 0, wanted.max_attempts or 0
    )
    try:
        await caller.operation(request)
    except SqsError as error:
        if error.code != "QueueNameExists":
            raise
        _same_or_refused(caller, name, wanted)
        return {"QueueUrl": caller.url(name)}
    await _keep(caller, name, wanted.own)
    return {"QueueUrl": caller.url(name)}


async def get_queue_url(caller: Caller, parameters: Parameters) -> Parameters:
    name = text_of(parameters, "QueueName")
    caller.sees(name)
    return {"QueueUrl": caller.url(name)}


async def list_queues(caller: Caller, parameters: Parameters) -> Parameters:
    """By name, some at a time. The token is the last name that was told."""
    prefix = as_text(parameters.get("QueueNamePrefix") or "", "QueueNamePrefix")
    after = as_text(parameters.get("NextToken") or "", "NextToken")
    count = number_of(parameters, "MaxResults", 1, LIST_MAX, LIST_MAX)
    guard, identity = caller.guard, caller.identity
    names = caller.broker.machine.view.queue_names()
    found = sorted(
        name
        for name in names
        if name > after and name.startswith(prefix) and guard.sees(identity, name)
    )
    if not found:
        return {}
    result: Parameters = {"QueueUrls": [caller.url(name) for name in found[:count]]}
    if len(found) > count:
        result["NextToken"] = found[count - 1]
    return result


async def get_queue_attributes(caller: Caller, parameters: Parameters) -> Parameters:
    name = caller.queue(parameters)
    names = parameters.get("AttributeNames") or []
    if not isinstance(names, list):
        raise invalid("AttributeNames", "it is no list")
    for one in names:
        if one != "All" and one not in NAMES and one not in _ABSENT:
            raise SqsError("InvalidAttributeName", f"there is no attribute {str(one)[:100]}")
    caller.sees(name)
    every = _attributes(caller, name)
    if "All" not in names:
        every = {one: value for one, value in every.items() if one in names}
    return {"Attributes": every} if every else {}


# Known to SQS, and never there.
_ABSENT: Final = (
    "Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled",
    "RedriveAllowPolicy", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope",
    "FifoThroughputLimit",
)  # fmt: skip


async def set_queue_attributes(caller: Caller, parameters: Parameters) -> Parameters:
    name = caller.queue(parameters)
    wanted = queue_attributes.wanted(name, parameters.get("Attributes") or {})
    refused = caller.guard.permit_admin(caller.identity, name)
    if refused is not None:
        raise faults.of(refused)
    caller.sees(name)
    settings: dict[str, str] = {}
    if wanted.visibility_ms is not None:
        settings[versions.VISIBILITY] = str(wanted.visibility_ms)
    if wanted.max_attempts is not None:
        settings[versions.MAX_ATTEMPTS] = str(wanted.max_attempts)
    if settings:
        await caller.operation(bodies.UpdateQueue(name, settings, note="SetQueueAttributes"))
    await _keep(caller, name, wanted.own)
    return {}


async def delete_queue(caller: Caller, parameters: Parameters) -> Parameters:
    name = caller.queue(parameters)
    await caller.operation(bodies.DeleteQueue(name))
    if CONFIG_PREFIX + name in caller.broker.machine.view.config:
        await caller.carried(1, lambda: _write(caller, name, ""))
    return {}


async def purge_queue(caller: Caller, parameters: Parameters) -> Parameters:
    await caller.operation(bodies.Purge(caller.queue(parameters), None))
    return {}


async def list_dead_letter_source_queues(caller: Caller, parameters: Parameters) -> Parameters:
    name = caller.queue(parameters)
    caller.sees(name)
    source = name.removesuffix(DLQ_SUFFIX)
    there = source != name and caller.broker.machine.view.has_queue(source)
    return {"queueUrls": [caller.url(source)] if there else []}


class MoveTasks:
    """StartMessageMoveTask is a redrive; the last few of each queue are remembered until the broker
    stops."""

    QUEUES_MAX: Final = 100
    TASKS_MAX: Final = 10

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()

    async def start(self, caller: Caller, parameters: Parameters) -> Parameters:
        source = _queue_of_arn(parameters, "SourceArn")
        parent = source.removesuffix(DLQ_SUFFIX)
        if parameters.get("MaxNumberOfMessagesPerSecond"):
            raise unsupported("MaxNumberOfMessagesPerSecond: use throttle keys to limit a rate")
        if parameters.get("DestinationArn"):
            target = _queue_of_arn(parameters, "DestinationArn")
            if target != parent:
                raise unsupported(f"dead letters of {source} can be moved to {parent} alone")
        task: dict[str, Any] = {
            "TaskHandle": caller.sessions.random_hex(16),
            "Status": "RUNNING",
            "SourceArn": caller.arn(source),
            "DestinationArn": caller.arn(parent),
            "ApproximateNumberOfMessagesMoved": 0,
            "StartedTimestamp": caller.sessions.now_ms(),
        }
        _move(caller, source, task)
        tasks = self._tasks.setdefault(source, [])
        tasks.insert(0, task)
        del tasks[self.TASKS_MAX :]
        self._tasks.move_to_end(source)
        if len(self._tasks) > self.QUEUES_MAX:
            self._tasks.popitem(last=False)
        return {"TaskHandle": task["TaskHandle"]}

    async def list(self, caller: Caller, parameters: Parameters) -> Parameters:
        source = _queue_of_arn(parameters, "SourceArn")
        count = number_of(parameters, "MaxResults", 1, self.TASKS_MAX, 1)
        refused = caller.guard.permit_admin(caller.identity, source)
        if refused is not None:
            raise faults.of(refused)
        found = []
        for task in self._tasks.get(source, [])[:count]:
            told = dict(task)
            if told["Status"] != "RUNNING":
                del told["TaskHandle"]
            found.append(told)
        return {"Results": found}


def _move(caller: Caller, source: str, task: dict[str, Any]) -> None:
    """Begin a redrive; what is wrong with it is raised at once. The moving itself may take long."""

    def done(result: Any) -> None:
        if isinstance(result, Rejection):
            task.update(Status="FAILED", FailureReason=result.message)
        else:
            task.update(Status="COMPLETED", ApproximateNumberOfMessagesMoved=result.redriven)

    session = caller.open()
    try:
        fault = session.carry_out(bodies.Redrive(source, 0), done)
    finally:
        session.close()
    if fault is not None:
        raise faults.of(fault)


def _queue_of_arn(parameters: Parameters, name: str) -> str:
    arn = text_of(parameters, name)
    parts = arn.split(":", 5)
    if len(parts) != 6 or parts[:3] != ["arn", "aws", "sqs"]:
        raise invalid(name, "it is no ARN of a queue")
    return parts[5]


def _attributes(caller: Caller, name: str) -> dict[str, str]:
    view = caller.broker.machine.view
    figures = view.queue(name)
    assert figures is not None
    own = queue_attributes.kept(view.config, name, figures.number)
    created_s = figures.created_ns // _S
    found = {
        "QueueArn": caller.arn(name),
        "ApproximateNumberOfMessages": figures.pending,
        "ApproximateNumberOfMessagesNotVisible": figures.leased,
        "ApproximateNumberOfMessagesDelayed": 0,
        "CreatedTimestamp": created_s,
        "LastModifiedTimestamp": own.changed_s or created_s,
        **{one: own.number(one) for one in NUMBERS},
        "VisibilityTimeout": figures.visibility_ms // 1000,
    }
    attempts = view.max_attempts(name)
    if attempts:
        policy = {"deadLetterTargetArn": caller.arn(name + DLQ_SUFFIX), "maxReceiveCount": attempts}
        found["RedrivePolicy"] = json.dumps(policy)
    return {one: str(value) for one, value in found.items()}


def _same_or_refused(caller: Caller, name: str, wanted: Wanted) -> None:
    """Nothing may be wanted that the queue is not: it is there already."""
    view = caller.broker.machine.view
    own = own_of(caller, name)
    different = [one for one, value in wanted.own.items() if own.number(one) != value]
    if wanted.visibility_ms not in (None, view.visibility_ms(name)):
        different.append("VisibilityTimeout")
    if wanted.max_attempts not in (None, view.max_attempts(name)):
        different.append("RedrivePolicy")
    if different:
        raise SqsError("QueueNameExists", f'queue "{name}" has another {different[0]}')


async def _keep(caller: Caller, name: str, numbers: dict[str, int]) -> None:
    """Remember what only SQS knows, if there is any."""
    if not numbers:
        return
    own = own_of(caller, name)
    changed_s = caller.broker.machine.view.now_ns // _S
    row = queue_attributes.row_of(Own(own.queue, changed_s, {**own.numbers, **numbers}))
    await caller.carried(1, lambda: _write(caller, name, row))


def _write(caller: Caller, name: str, row: str) -> Rejection | bool:
    return caller.broker.set_config(CONFIG_PREFIX + name, row) or True
