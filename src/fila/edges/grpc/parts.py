"""Requests that are larger than a turn: cut into parts, each carried out in a turn of its own.

A protobuf message is the list of its fields, so any run of them is a message too: a request of
65,535 items is cut between two fields into requests of a few hundred, and their answers, one after
the other, are the answer. All of it is read and checked before anything is done, as over FIBP
(`fibp_messages.py`), and answered when the last part is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.broker.stepping import Steps
from fila.core.work import SHIFT
from fila.edges.grpc.protobuf_reader import Fields, InvalidMessage
from fila.edges.grpc.status import Status

if TYPE_CHECKING:
    from fila.edges.grpc.call import Call

WHOLE_BYTES: Final = 16 * 1024  # a request that is not larger is never cut

Answer = bytes | Status


class Parts(NamedTuple):
    """How a method's request is carried out in parts."""

    # Bytes to a request of at most so many items, whose fields are counted: raises InvalidMessage.
    parse: Callable[[bytes, int, Fields], Any]
    count: Callable[[Any], int]  # items of a request
    apply: Callable[[Any, Any], Answer]  # a call's request, or a part of it
    # Settings that one part of a request gives apply to all of them.
    joined: Callable[[list[Any]], list[Any]] = list
    takes: Callable[[bytes], bool] = lambda data: True  # whether a request may be cut at all
    # Cut a part of messages that are read and stored anew where they become so large; with bytes.
    runs: Callable[[Any, Any, int], list[tuple[Any, int]]] | None = None


def wanted(call: Call, data: bytes) -> bool:
    """Whether a request is to be carried out in parts: it is large, or the turn has no room."""
    parts = call.method.parts
    if parts is None:
        return False
    work = call.connection.broker.work
    large = len(data) > WHOLE_BYTES or (
        len(data) > 0 and (work.done >= work.limit or parts.runs is not None)
    )
    return large and parts.takes(data)


def guarded(call: Call, steps: Steps) -> Steps:
    """The same steps; one that fails ends the connection of the call."""
    try:
        yield from steps
    except Exception as error:
        call.connection.fail(error)


def carried_out(call: Call, held: list[bytes]) -> Generator[None, None, Answer | None]:
    """Carry the one request in this list out; the answer, or nothing when the call ended meanwhile.
    It is taken from the list, so that its bytes are gone once they are read."""
    data = held.pop()
    parts = call.method.parts
    assert parts is not None
    work = call.connection.broker.work
    inbound = call.connection.inbound
    size = len(data)
    inbound.keep(size)
    try:
        read: list[tuple[Any, int, int]] = []  # a part, its items and its bytes
        messages_max = left = call.connection.limits.messages_max
        outer, inner = Fields(), Fields()
        position = 0
        try:
            while position < size:
                end = cut(data, position, work.step, work.step << SHIFT, outer)
                part = parts.parse(data[position:end], messages_max, inner)
                count = parts.count(part)
                left -= count
                if left < 0:
                    raise InvalidMessage(f"it may hold {messages_max} messages; send several")
                read.append((part, count, end - position))
                position = end
                work.done += 1 + count // 4
                yield
                if call.over:
                    return None
        except InvalidMessage as error:
            call.invalid(error)
            return None
        data = b""
        answers: list[bytes] = []
        joined = parts.joined([part for part, _, _ in read])
        counts = [(count, size) for _, count, size in read]
        read.clear()
        for at, (count, part_bytes) in enumerate(counts):
            cut_up = [(joined[at], part_bytes)]
            if parts.runs is not None:
                cut_up = parts.runs(call, joined[at], work.step << SHIFT)
            joined[at] = None
            for place, (run, run_bytes) in enumerate(cut_up):
                answer = parts.apply(call, run)
                work.done += max(1, count // len(cut_up), run_bytes >> SHIFT)
                if isinstance(answer, Status):
                    return answer
                answers.append(answer)
                if at < len(counts) - 1 or place < len(cut_up) - 1:
                    yield
                    if call.over:
                        return None
        return b"".join(answers)
    finally:
        inbound.keep(-size)


def cut(data: bytes, position: int, fields_max: int, bytes_max: int, fields: Fields) -> int:
    """Where the next part of a request ends: after so many of its fields, or bytes, one at least.
    Raises InvalidMessage."""
    size = len(data)
    most = min(size, position + bytes_max)
    try:
        for _ in range(fields_max):
            end = fields.skip(data, position)
            if end > size:
                raise InvalidMessage("it is cut short")
            position = end
            if position >= most:
                break
    except IndexError:
        raise InvalidMessage("it is cut short") from None
    return position
