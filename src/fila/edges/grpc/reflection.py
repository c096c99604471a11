"""The gRPC reflection service: tools such as grpcurl ask here what can be called.

The descriptions are in the public source, so they need no API key. The older package name,
`v1alpha`, has the same fields and is answered too.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import Default

from fila.edges.grpc import message_codec
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Call, Method, parser
from fila.edges.grpc.status import DONE
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2, health_pb2, messages_pb2, service_pb2
from fila.edges.grpc.v1 import reflection_pb2 as pb

REQUEST_BYTES_MAX: Final = 4_096

_FILES: Final[dict[str, FileDescriptor]] = {
    one.DESCRIPTOR.name: one.DESCRIPTOR
    for one in (messages_pb2, service_pb2, bulk_pb2, admin_pb2, health_pb2, pb)
}
_SERVICES: Final = sorted(
    service.full_name for file in _FILES.values() for service in file.services_by_name.values()
)


class ReflectionCall(Call):
    """One answer per question."""

    def message(self, data: bytes) -> None:
        request = self.parse(data)
        if request is not None:
            answer = answer_to(request).SerializeToString()
            self.write(message_codec.message_prefix(len(answer)) + answer)

    def half_closed(self) -> None:
        self.end(DONE)


def answer_to(request: pb.ServerReflectionRequest) -> pb.ServerReflectionResponse:
    answer = pb.ServerReflectionResponse(valid_host=request.host, original_request=request)
    kind = request.WhichOneof("message_request")
    if kind == "list_services":
        services = [pb.ServiceResponse(name=name) for name in _SERVICES]
        answer.list_services_response.CopyFrom(pb.ListServiceResponse(service=services))
        return answer
    file = None
    if kind == "file_by_filename":
        file = _all_files().get(request.file_by_filename)
    elif kind == "file_containing_symbol":
        file = _declaring(request.file_containing_symbol)
    if file is not None:
        found = [one.serialized_pb for one in _with_imports(file)]
        answer.file_descriptor_response.file_descriptor_proto.extend(found)
    else:
        answer.error_response.error_code = grpc_status.NOT_FOUND
        answer.error_response.error_message = "there is nothing of this name here"
    return answer


def _declaring(symbol: str) -> FileDescriptor | None:
    """The pool does not find methods; the service they belong to is in the same file."""
    while symbol:
        try:
            file = Default().FindFileContainingSymbol(symbol)
        except KeyError:
            symbol = symbol.rpartition(".")[0]
        else:
            return file if file.name in _all_files() else None
    return None


def _all_files() -> dict[str, FileDescriptor]:
    return {one.name: one for file in _FILES.values() for one in _with_imports(file)}


def _with_imports(file: FileDescriptor) -> list[FileDescriptor]:
    """The file and all it needs, each once."""
    found = {file.name: file}
    for needed in file.dependencies:
        found.update({one.name: one for one in _with_imports(needed)})
    return list(found.values())


_METHOD: Final = Method(
    ReflectionCall,
    parser(pb.ServerReflectionRequest),
    None,
    "ServerReflectionRequest",
    REQUEST_BYTES_MAX,
    open_to_all=True,
)
METHODS: Final[dict[bytes, Method]] = {
    b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": _METHOD,
    b"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _METHOD,
}
