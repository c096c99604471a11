"""`python -m tests.grpc.grpcurl …`: as much of grpcurl as the documentation uses.

Knows nothing of Fila: services, methods and messages are what the server's reflection says they
are, requests and answers are JSON. So the documented calls run where grpcurl is not installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

import grpc

FAILED = 64  # grpcurl adds the status to this


def main(words: list[str] | None = None) -> int:
    options = _parser().parse_args(words)
    with _channel(options) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(database)
        try:
            if options.what == "list":
                print("\n".join(sorted(database.get_services())))
            elif options.what == "describe":
                print(_described(pool.FindServiceByName(options.symbol)))
            else:
                _call(channel, pool, options)
        except grpc.RpcError as error:
            sys.stderr.write(f"ERROR:\n  Code: {_camel(error)}\n  Message: {error.details()}\n")
            return FAILED + int(error.code().value[0])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="grpcurl")
    parser.add_argument("-plaintext", action="store_true")
    parser.add_argument("-cacert", default="")
    parser.add_argument("-cert", default="")
    parser.add_argument("-key", default="")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data", default="")
    parser.add_argument("-max-time", dest="max_time_s", type=float, default=20.0)
    parser.add_argument("address")
    parser.add_argument("what", help="list, describe, or service/method")
    parser.add_argument("symbol", nargs="?", default="")
    return parser


def _channel(options: argparse.Namespace) -> grpc.Channel:
    if options.plaintext:
        return grpc.insecure_channel(options.address)
    files = (options.cacert, options.key, options.cert)
    read = [Path(name).read_bytes() if name else None for name in files]
    return grpc.secure_channel(options.address, grpc.ssl_channel_credentials(*read))


def _described(service: ServiceDescriptor) -> str:
    lines = [f"{service.full_name} is a service:", f"service {service.name} {{"]
    for method in service.methods:
        asks = ("stream " if _streams(method)[0] else "") + f".{method.input_type.full_name}"
        gives = ("stream " if _streams(method)[1] else "") + f".{method.output_type.full_name}"
        lines.append(f"  rpc {method.name} ( {asks} ) returns ( {gives} );")
    return "\n".join([*lines, "}"])


def _call(channel: grpc.Channel, pool: DescriptorPool, options: argparse.Namespace) -> None:
    service, _, name = options.what.rpartition("/")
    method = pool.FindServiceByName(service).methods_by_name[name]
    asks, gives = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    streams = _streams(method)
    kind = f"{'stream' if streams[0] else 'unary'}_{'stream' if streams[1] else 'unary'}"
    invoke = getattr(channel, kind)(
        f"/{options.what}",
        request_serializer=asks.SerializeToString,
        response_deserializer=gives.FromString,
    )
    request: Any = json_format.Parse(options.data or "{}", asks())
    metadata = [_header(text) for text in options.headers]
    answer = invoke(
        iter([request]) if streams[0] else request, timeout=options.max_time_s, metadata=metadata
    )
    answers: Iterator[Any] = answer if streams[1] else iter([answer])
    for one in answers:
        print(json_format.MessageToJson(one), flush=True)


def _streams(method: MethodDescriptor) -> tuple[bool, bool]:
    said = MethodDescriptorProto()
    method.CopyToProto(said)
    return said.client_streaming, said.server_streaming


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip().lower(), value.strip()


def _camel(error: grpc.RpcError) -> str:
    return "".join(word.capitalize() for word in error.code().name.split("_"))


if __name__ == "__main__":
    sys.exit(main())
