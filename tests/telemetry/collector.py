"""A real OTLP collector, small: a gRPC server on the official protos that remembers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc

import grpc
from tests.e2e.process import wait_until

Labels = frozenset[tuple[str, str]]


class Collector(metrics_grpc.MetricsServiceServicer):
    """The newest data point of every series, and every span."""

    def __init__(self) -> None:
        self.exports = 0
        self.resource: dict[str, str] = {}
        self.metrics: dict[str, Any] = {}  # the newest Metric by name
        self.spans: list[Any] = []
        self.lock = threading.Lock()

    def Export(  # noqa: N802  gRPC's name
        self, request: metrics_pb.ExportMetricsServiceRequest, context: grpc.ServicerContext
    ) -> metrics_pb.ExportMetricsServiceResponse:
        with self.lock:
            for resource in request.resource_metrics:
                self.resource = _attributes(resource.resource.attributes)
                for scope in resource.scope_metrics:
                    # A round of metrics comes in pieces; this one opens it.
                    self.exports += scope.metrics[0].name == "fila.messages.enqueued"
                    self.metrics.update({metric.name: metric for metric in scope.metrics})
        return metrics_pb.ExportMetricsServiceResponse()

    def fresh(self, timeout_s: float = 15) -> None:
        """Wait for an export that began after now."""
        seen = self.exports
        wait_until(lambda: self.exports >= seen + 2, timeout_s, "two exports")

    def points(self, name: str) -> dict[Labels, Any]:
        with self.lock:
            metric = self.metrics[name]
        data = getattr(metric, metric.WhichOneof("data"))
        return {frozenset(_attributes(one.attributes).items()): one for one in data.data_points}

    def value(self, name: str, **labels: str) -> float:
        point = self.points(name)[frozenset(labels.items())]
        return float(getattr(point, point.WhichOneof("value")))


class _Traces(trace_grpc.TraceServiceServicer):
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def Export(  # noqa: N802
        self, request: trace_pb.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_pb.ExportTraceServiceResponse:
        with self._collector.lock:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self._collector.spans += scope.spans
        return trace_pb.ExportTraceServiceResponse()


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A collector and its endpoint."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    metrics_grpc.add_MetricsServiceServicer_to_server(collector, server)
    trace_grpc.add_TraceServiceServicer_to_server(_Traces(collector), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector, f"http://127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def _attributes(found: Any) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in found}
