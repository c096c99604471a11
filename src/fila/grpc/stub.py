"""A stub: one attribute per method of a service, made from its descriptor."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass


class Stub:
    def __init__(self, channel: Any, described: ServiceDescriptor) -> None:
        for method in described.methods:
            kind = (
                f"{'stream' if method.client_streaming else 'unary'}_"
                f"{'stream' if method.server_streaming else 'unary'}"
            )
            call = getattr(channel, kind)(
                f"/{described.full_name}/{method.name}",
                request_serializer=GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            setattr(self, method.name, call)

    def __getattr__(self, name: str) -> Any:
        # Only for what __init__ did not set; says to type checkers that there are more.
        raise AttributeError(f"{type(self).__name__} has no method {name}")
