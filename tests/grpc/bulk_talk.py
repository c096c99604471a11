"""The bulk operations over either protocol, each with the fewest words that mean something."""

from __future__ import annotations

from typing import Any

from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.wire import bodies, errors
from tests.grpc.talkers import STATUS, Fault, GrpcTalker, Talker, fibp_faults, grpc_faults

_START = b"\x00"
_END = b"\xff" * 4


def bulk(talker: Talker, operation: str, subject: str, id: str = "", **options: Any) -> Any:
    """Carry it out on a queue, or for pages on a snapshot: an id, a token, a code or a count."""
    if isinstance(talker, GrpcTalker):
        with grpc_faults():
            answer = talker.client.call(operation, _grpc_request(operation, subject, id, options))
        if operation == "EnqueueWith":
            (one,) = answer.results
            if one.code:
                raise Fault(STATUS[one.code], one.message)
            return one.message_id
        if operation == "Release":
            return answer.codes[0]
        if operation == "Extend":
            return answer.visibility_ms, list(answer.missing)
        if operation in ("LeaseBatch", "BrowsePage"):
            return answer.message_count
        if operation == "Browse":
            return answer.snapshot
        if operation == "ListBatches":
            return len(answer.batches)
        return answer.batches if operation != "BrowseClose" else None
    with fibp_faults():
        body = _fibp_request(operation, subject, id, options)
        reply = talker.peer.request(body, getattr(bodies, f"{operation}Result"))  # type: ignore[attr-defined]
    if operation == "EnqueueWith":
        (one,) = reply.results
        if one.code:
            raise Fault(STATUS[one.code], errors.name_of(one.code))
        return one.message_id
    if operation == "Release":
        return reply.results[0].code
    if operation == "Extend":
        return reply.visibility_ms, list(reply.missing)
    if operation in ("LeaseBatch", "BrowsePage"):
        return reply.messages
    if operation == "Browse":
        return reply.snapshot
    if operation == "ListBatches":
        return len(reply.batches)
    return reply.batches if operation != "BrowseClose" else None


def _grpc_request(operation: str, subject: str, id: str, options: dict[str, Any]) -> Any:
    if operation == "EnqueueWith":
        one = pb.MessageWithOptions(queue=subject, payload=b"x", **options)
        return pb.EnqueueWithRequest(messages=[one])
    if operation == "Release":
        return pb.ReleaseRequest(queue=subject, message_ids=[id])
    if operation == "Extend":
        return pb.ExtendRequest(queue=subject, message_ids=[id] if id else [], **options)
    if operation == "LeaseBatch":
        return pb.LeaseBatchRequest(
            **{"queue": subject, "name": "s/0", "max_messages": 1, **options}
        )
    if operation == "ExtendBatch":
        return pb.ExtendBatchRequest(**{"queue": subject, "name": "s", "below": 9, **options})
    if operation in ("AckBatch", "ReleaseBatch"):
        return pb.BatchSelection(**{"queue": subject, "name": "s", "below": 9, **options})
    if operation == "ListBatches":
        return pb.ListBatchesRequest(queue=subject)
    if operation == "Browse":
        return pb.BrowseRequest(queue=subject, **options)
    if operation == "BrowsePage":
        return pb.BrowsePageRequest(snapshot=subject, start=_START, end=_END, **options)
    return pb.BrowseCloseRequest(snapshot=subject)


def _fibp_request(operation: str, subject: str, id: str, options: dict[str, Any]) -> Any:
    if operation == "EnqueueWith":
        return bodies.EnqueueWith((bodies.EnqueueWithItem(subject, {}, b"x", **options),))
    if operation == "Release":
        return bodies.Release((bodies.ReleaseItem(subject, id),))
    if operation == "Extend":
        return bodies.Extend(subject, (id,) if id else ())._replace(**options)
    if operation == "LeaseBatch":
        return bodies.LeaseBatch(subject, "s/0", 1)._replace(**options)
    if operation == "ExtendBatch":
        return bodies.ExtendBatch(subject, "s", 0, 9)._replace(**options)
    if operation in ("AckBatch", "ReleaseBatch"):
        return getattr(bodies, operation)(subject, "s", 9)._replace(**options)
    if operation == "ListBatches":
        return bodies.ListBatches(subject)
    if operation == "Browse":
        return bodies.Browse(subject)._replace(**options)
    if operation == "BrowsePage":
        return bodies.BrowsePage(subject, _START, _END)._replace(**options)
    return bodies.BrowseClose(subject)
