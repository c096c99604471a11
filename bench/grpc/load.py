"""A worker with the official gRPC client: `python -m bench.grpc.load '{"role": …}'`.

produce   StreamEnqueue: keep batches under way, as long as not too much is unsettled
consume   Consume, and Ack whatever a response brought, many under way
unary     Enqueue of one message, so many calls under way; each one's latency
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from bench.system.board import PAUSE_S, Seat
from bench.system.latencies import Latencies
from fila.edges.grpc.v1 import service_pb2 as pb

_SERVICE = "/fila.v1.FilaService/"
_GLANCE_S = 0.0003


def main() -> None:
    told = json.loads(sys.argv[1])
    seat = Seat(Path(told["board"]), told["seats"], told["seat"])
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
    with grpc.insecure_channel(told["address"], options) as channel:
        {"produce": produce, "consume": consume, "unary": unary}[told["role"]](seat, told, channel)


def produce(seat: Seat, told: dict[str, Any], channel: grpc.Channel) -> None:
    batch = told["batch"]
    # Made once, sent as bytes: the broker is to be measured, not the making of messages.
    request = pb.StreamEnqueueRequest(messages=_messages(told, batch), sequence_number=1)
    content = request.SerializeToString()
    batches_max = max(told["in_flight"] // batch, 1)
    under_way = 0

    def requests() -> Iterator[bytes]:
        nonlocal under_way
        while seat.wait_to_run():
            if under_way >= batches_max or seat.unsettled + batch > told["unsettled_max"]:
                time.sleep(_GLANCE_S)
                continue
            under_way += 1
            seat.add_sent(batch)
            yield content

    stream = channel.stream_stream(
        _SERVICE + "StreamEnqueue", response_deserializer=pb.StreamEnqueueResponse.FromString
    )
    seat.ready()
    for response in stream(requests()):
        assert all(one.message_id for one in response.results)
        under_way -= 1
        seat.add_stored(len(response.results))


def consume(seat: Seat, told: dict[str, Any], channel: grpc.Channel) -> None:
    queue = told["queue"]
    consuming = channel.unary_stream(
        _SERVICE + "Consume",
        request_serializer=pb.ConsumeRequest.SerializeToString,
        response_deserializer=pb.ConsumeResponse.FromString,
    )
    acking = channel.unary_unary(
        _SERVICE + "Ack",
        request_serializer=pb.AckRequest.SerializeToString,
        response_deserializer=pb.AckResponse.FromString,
    )
    call = consuming(pb.ConsumeRequest(queue=queue, prefetch=told["prefetch"]))
    threading.Thread(target=_cancel_when_stopped, args=(seat, call), daemon=True).start()
    seat.ready()
    under_way = set()

    def acked(done: Any) -> None:
        under_way.discard(done)
        if done.code() is grpc.StatusCode.OK:
            seat.add_acked(sum(one.HasField("success") for one in done.result().results))

    try:
        for response in call:
            items = [pb.AckMessage(queue=queue, message_id=one.id) for one in response.messages]
            ack = acking.future(pb.AckRequest(messages=items))
            under_way.add(ack)
            ack.add_done_callback(acked)
    except grpc.RpcError:
        if not seat.stopped:
            raise


def unary(seat: Seat, told: dict[str, Any], channel: grpc.Channel) -> None:
    content = pb.EnqueueRequest(messages=_messages(told, 1)).SerializeToString()
    enqueue = channel.unary_unary(_SERVICE + "Enqueue")
    latencies = Latencies(seat)
    room = threading.Semaphore(told["in_flight"])
    under_way = set()

    def answered(done: Any, begin_ns: int) -> None:
        under_way.discard(done)
        assert done.code() is grpc.StatusCode.OK, done.details()
        latencies.add(time.monotonic_ns() - begin_ns)
        seat.add_stored(1)
        seat.add_acked(1)  # nobody consumes it: for the crew it is settled
        room.release()

    seat.ready()
    while seat.wait_to_run():
        room.acquire()
        begin_ns = time.monotonic_ns()
        seat.add_sent(1)
        call = enqueue.future(content)
        under_way.add(call)
        call.add_done_callback(lambda done, begin_ns=begin_ns: answered(done, begin_ns))
    while under_way:
        time.sleep(PAUSE_S)
    latencies.write(told["samples"])


def _messages(told: dict[str, Any], count: int) -> list[pb.EnqueueMessage]:
    payload = b"x" * told["bytes"]
    headers = {"tenant": "acme"}
    return [
        pb.EnqueueMessage(queue=told["queue"], headers=headers, payload=payload)
        for _ in range(count)
    ]


def _cancel_when_stopped(seat: Seat, call: Any) -> None:
    while not seat.stopped:
        time.sleep(0.02)
    call.cancel()


if __name__ == "__main__":
    main()
