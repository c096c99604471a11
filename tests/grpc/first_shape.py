"""A client generated from the first shape of the service (first_shape.proto).

The present shape has the same names, so the classes live in a descriptor pool of their own.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

import grpc
from tests.grpc.client import LARGE, WAIT_S

HERE = Path(__file__).parent


@cache
def classes() -> dict[str, Any]:
    """Every message of the first shape, by name."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "set"
        arguments = [f"-I{HERE}", f"--descriptor_set_out={out}", str(HERE / "first_shape.proto")]
        assert protoc.main(["protoc", *arguments]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"fila.v1.{message.name}")
        )
        for file in files.file
        for message in file.message_type
    }


class FirstClient:
    """One channel, which is one connection."""

    def __init__(self, address: tuple[str, int], key: str | None = None) -> None:
        self.channel = grpc.insecure_channel(f"{address[0]}:{address[1]}", LARGE)
        self.metadata = [("authorization", f"Bearer {key}")] if key is not None else []
        self._streams: list[Any] = []

    def enqueue(
        self, queue: str, payload: bytes = b"", headers: dict[str, str] | None = None
    ) -> str:
        answer = self._unary("Enqueue", queue=queue, headers=headers or {}, payload=payload)
        return str(answer.message_id)

    def consume(self, queue: str) -> Any:
        made = classes()
        call = self.channel.unary_stream(
            "/fila.v1.FilaService/Consume",
            made["ConsumeRequest"].SerializeToString,
            made["ConsumeResponse"].FromString,
        )(made["ConsumeRequest"](queue=queue), metadata=self.metadata, timeout=30)
        self._streams.append(call)
        return call

    def ack(self, queue: str, message_id: str) -> None:
        self._unary("Ack", queue=queue, message_id=message_id)

    def nack(self, queue: str, message_id: str, error: str = "") -> None:
        self._unary("Nack", queue=queue, message_id=message_id, error=error)

    def close(self) -> None:
        self.channel.close()

    def __enter__(self) -> FirstClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _unary(self, method: str, **fields: Any) -> Any:
        made = classes()
        call = self.channel.unary_unary(
            f"/fila.v1.FilaService/{method}",
            made[f"{method}Request"].SerializeToString,
            made[f"{method}Response"].FromString,
        )
        return call(made[f"{method}Request"](**fields), metadata=self.metadata, timeout=WAIT_S)
