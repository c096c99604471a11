"""SQS's operations on messages, but for receiving: send, delete, change the visibility.

A batch is carried out in one turn. Each entry is judged by itself: one that is wrong fails alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from fila.broker.options import Options
from fila.broker.session import Session
from fila.core.entry import id_of
from fila.core.rejection import OK, Rejection
from fila.core.work import SHIFT
from fila.edges.sqs import faults, message
from fila.edges.sqs.caller import Caller, number_of
from fila.edges.sqs.faults import SqsError, invalid, missing, unsupported
from fila.edges.sqs.forms import Parameters
from fila.edges.sqs.handle import key_of
from fila.edges.sqs.message import Sent
from fila.edges.sqs.queue_attributes import MESSAGE_BYTES_MAX, Own
from fila.edges.sqs.queues import own_of
from fila.error_codes import CHANNEL_FULL, QUEUE_FULL
from fila.wire.ids import id_text

ENTRIES_MAX: Final = 10
VISIBILITY_S_MAX: Final = 43_200
RETURNED: Final = "visibility timeout set to 0"
_ENTRY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")

Entry = Mapping[str, Any]


async def send_message(caller: Caller, parameters: Parameters) -> Parameters:
    queue = caller.queue(parameters)
    own = own_of(caller, queue)
    sent = _sent(parameters, own)
    (result,) = await _store(caller, queue, [(sent, _delay_ms(parameters, own))])
    if isinstance(result, SqsError):
        raise result
    return {"MessageId": result, **sent.digests}


async def send_message_batch(caller: Caller, parameters: Parameters) -> Parameters:
    queue = caller.queue(parameters)
    own = own_of(caller, queue)
    entries = entries_of(parameters)
    good: list[tuple[Entry, Sent, int]] = []
    failed: list[Parameters] = []
    size = 0
    for entry in entries:
        try:
            sent = _sent(entry, own)
            good.append((entry, sent, _delay_ms(entry, own)))
            size += sent.size
        except SqsError as error:
            failed.append(_failed(entry, error))
    if size > MESSAGE_BYTES_MAX:
        text = f"a batch may have {MESSAGE_BYTES_MAX} bytes, and this one has {size}"
        raise SqsError("BatchRequestTooLong", text)
    results = await _store(caller, queue, [(sent, delay_ms) for _, sent, delay_ms in good])
    successful = []
    for (entry, sent, _), result in zip(good, results, strict=True):
        if isinstance(result, SqsError):
            failed.append(_failed(entry, result))
        else:
            successful.append({"Id": entry["Id"], "MessageId": result, **sent.digests})
    return _of_batch(successful, failed)


async def delete_message(caller: Caller, parameters: Parameters) -> Parameters:
    """Of a delivery that is over it changes nothing, and says so to nobody, as SQS does."""
    key = _handle_in(parameters)
    queue = caller.queue(parameters)
    await _settle(caller, queue, lambda session: _delete(session, queue, [key]))
    return {}


async def delete_message_batch(caller: Caller, parameters: Parameters) -> Parameters:
    queue = caller.queue(parameters)
    good, failed = _with_handles(entries_of(parameters))
    keys = [key for _, key in good]
    await _settle(caller, queue, lambda session: _delete(session, queue, keys))
    return _of_batch([{"Id": entry["Id"]} for entry, _ in good], failed)


async def change_message_visibility(caller: Caller, parameters: Parameters) -> Parameters:
    key = _handle_in(parameters)
    seconds = _visibility(parameters)
    queue = caller.queue(parameters)
    (found,) = await _settle(
        caller, queue, lambda session: changed(session, queue, [(key, seconds)])
    )
    if not found:
        raise _not_inflight()
    return {}


async def change_message_visibility_batch(caller: Caller, parameters: Parameters) -> Parameters:
    queue = caller.queue(parameters)
    good, failed = _with_handles(entries_of(parameters))
    wanted: list[tuple[bytes, int]] = []
    named: list[Entry] = []
    for entry, key in good:
        try:
            wanted.append((key, _visibility(entry)))
            named.append(entry)
        except SqsError as error:
            failed.append(_failed(entry, error))
    found = await _settle(caller, queue, lambda session: changed(session, queue, wanted))
    successful = []
    for entry, there in zip(named, found, strict=True):
        if there:
            successful.append({"Id": entry["Id"]})
        else:
            failed.append(_failed(entry, _not_inflight()))
    return _of_batch(successful, failed)


def changed(
    session: Session, queue: str, wanted: list[tuple[bytes, int]]
) -> list[bool] | Rejection:
    """Let deliveries end so many seconds from now; 0 is a failure, and they end at once. Whether
    each was still under way."""
    there = session.broker.machine.view.leased_under(queue, [key for key, _ in wanted])
    by_time: dict[int, list[bytes]] = {}
    for (key, seconds), found in zip(wanted, there, strict=True):
        if found:
            by_time.setdefault(seconds, []).append(id_of(key))
    missing_ids: set[bytes] = set()
    for seconds, ids in by_time.items():
        if seconds == 0:
            codes = session.nack(queue, ids, [RETURNED] * len(ids))
        else:
            codes = session.broker.extend(queue, ids, seconds * 1000, session.number)
        if isinstance(codes, Rejection):
            return codes
        missing_ids.update(id for id, code in zip(ids, codes, strict=True) if code != OK)
    return [
        found and id_of(key) not in missing_ids
        for (key, _), found in zip(wanted, there, strict=True)
    ]


def entries_of(parameters: Parameters) -> list[Entry]:
    """The entries of a batch. What is wrong with the batch as a whole is raised."""
    entries = parameters.get("Entries") or []
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise invalid("Entries", "it is no list of entries")
    if not entries:
        raise SqsError("EmptyBatchRequest", "the batch has no entries")
    if len(entries) > ENTRIES_MAX:
        text = f"a batch may have {ENTRIES_MAX} entries, and this one has {len(entries)}"
        raise SqsError("TooManyEntriesInBatchRequest", text)
    names = [one.get("Id") for one in entries]
    for name in names:
        if not isinstance(name, str) or not _ENTRY_ID.fullmatch(name):
            text = "the Id of an entry has 1 to 80 letters, digits, hyphens and underscores"
            raise SqsError("InvalidBatchEntryId", text)
    if len(set(names)) < len(names):
        raise SqsError("BatchEntryIdsNotDistinct", "two entries have the same Id")
    return entries


def _sent(fields: Entry, own: Own) -> Sent:
    if fields.get("MessageDeduplicationId"):
        raise unsupported("MessageDeduplicationId: Fila has no FIFO queues; see docs/sqs.md")
    sent = message.sent(fields)
    limit = own.number("MaximumMessageSize")
    if sent.size > limit:
        raise invalid("MessageBody", f"a message may have {limit} bytes, and it has {sent.size}")
    return sent


def _delay_ms(fields: Entry, own: Own) -> int:
    return 1000 * number_of(dict(fields), "DelaySeconds", 0, 900, own.number("DelaySeconds"))


async def _store(
    caller: Caller, queue: str, messages: list[tuple[Sent, int]]
) -> list[str | SqsError]:
    """Enqueue them; for each its id, or why it was not taken."""
    options = [
        Options(sent.body, delay_ms, b"", sent.group.encode()) for sent, delay_ms in messages
    ]
    session = caller.open()
    try:
        refused = session.may_produce(queue)
        if refused is not None:
            raise faults.of(refused)
        if not options:
            return []
        size = sum([len(one.body) for one in options])
        cost = max(size >> SHIFT, len(options))
        stored = await caller.carried(cost, lambda: session.enqueue_with(queue, options))
    finally:
        session.close()
    return [id_text(id).decode() if code == OK else _not_stored(code) for code, id, _ in stored]


def _not_stored(code: int) -> SqsError:
    if code == QUEUE_FULL:
        return SqsError("RequestThrottled", "the queue, or the message group, is full; try later")
    if code == CHANNEL_FULL:
        return SqsError("RequestThrottled", "the queue's hook has no verdict; try again later")
    return invalid("MessageGroupId", "the broker refuses it")


async def _settle(
    caller: Caller, queue: str, act: Callable[[Session], list[bool] | Rejection]
) -> list[bool]:
    session = caller.open()
    try:
        refused = session.may_consume(queue)
        if refused is not None:
            raise faults.of(refused)
        return await caller.carried(ENTRIES_MAX, lambda: _there(session, queue) or act(session))
    finally:
        session.close()


def _there(session: Session, queue: str) -> Rejection | None:
    session.broker.begin()
    view = session.broker.machine.view
    return None if view.has_queue(queue) else view.no_queue(queue)


def _delete(session: Session, queue: str, keys: list[bytes]) -> list[bool] | Rejection:
    view = session.broker.machine.view
    there = view.leased_under(queue, keys)
    ids = [id_of(key) for key, found in zip(keys, there, strict=True) if found]
    codes = session.ack(queue, ids)
    if isinstance(codes, Rejection):
        return codes
    return there


def _with_handles(
    entries: list[Entry],
) -> tuple[list[tuple[Entry, bytes]], list[Parameters]]:
    """Entries with what their handles name, and those that failed over theirs."""
    good: list[tuple[Entry, bytes]] = []
    failed: list[Parameters] = []
    for entry in entries:
        try:
            good.append((entry, _handle_in(entry)))
        except SqsError as error:
            failed.append(_failed(entry, error))
    return good, failed


def _handle_in(fields: Entry) -> bytes:
    if not fields.get("ReceiptHandle"):
        raise missing("ReceiptHandle")
    return key_of(fields["ReceiptHandle"])


def _visibility(fields: Entry) -> int:
    if fields.get("VisibilityTimeout") in (None, ""):
        raise missing("VisibilityTimeout")
    return number_of(dict(fields), "VisibilityTimeout", 0, VISIBILITY_S_MAX, 0)


def _not_inflight() -> SqsError:
    text = "the message is not in flight under this handle: it was deleted, or its time ran out"
    return SqsError("MessageNotInflight", text)


def _failed(entry: Entry, error: SqsError) -> Parameters:
    return {
        "Id": entry["Id"],
        "SenderFault": error.sender_fault,
        "Code": error.query_code,
        "Message": str(error),
    }


def _of_batch(successful: list[Parameters], failed: list[Parameters]) -> Parameters:
    result: Parameters = {"Successful": successful}
    if failed:
        result["Failed"] = failed
    return result
