"""Metrics and spans over OTLP (gRPC). The only module that imports opentelemetry.

Readings and spans come as plain data and are put into the SDK's own data model here, on the export
thread; the SDK's instruments, readers and processors are not used, because they would count per
message, or read the core from another thread.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from fila.telemetry.instruments import COUNTER, Distribution, Instrument
from fila.telemetry.readings import Family, Labels, Value
from fila.telemetry.spans import Span
from fila.telemetry.traceparent import TraceContext

TIMEOUT_S: Final = 5.0
PIECE_POINTS: Final = 100  # about a millisecond
PIECE_PAUSE_S: Final = 0.002
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE


class OtlpExporter:
    """Made on the loop's thread, used on the export thread alone."""

    def __init__(self, endpoint: str, service_name: str, version: str, instance: str) -> None:
        # Failures are told once by our own log, not with every attempt.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        secure = endpoint.startswith("https://")
        self._metrics = OTLPMetricExporter(endpoint, insecure=not secure, timeout=TIMEOUT_S)
        self._spans = OTLPSpanExporter(endpoint, insecure=not secure, timeout=TIMEOUT_S)
        self._resource = Resource(
            {
                "service.name": service_name,
                "service.version": version,
                "service.instance.id": instance,
            }
        )
        self._scope = InstrumentationScope("fila", version)

    def send_metrics(self, families: list[Family], began_ns: int, now_ns: int) -> bool:
        """In pieces with a pause between them: encoding holds the GIL, and the loop
        must not wait for it longer than a millisecond or two."""
        sent = True
        piece: list[Family] = []
        points = 0
        for family in families:
            piece.append(family)
            points += len(family.samples)
            if points >= PIECE_POINTS:
                sent = self._send_piece(piece, began_ns, now_ns) and sent
                piece, points = [], 0
                time.sleep(PIECE_PAUSE_S)
        return (not piece or self._send_piece(piece, began_ns, now_ns)) and sent

    def _send_piece(self, families: list[Family], began_ns: int, now_ns: int) -> bool:
        metrics = [
            Metric(one.name, one.words, one.unit, _data(one, samples, began_ns, now_ns))
            for one, samples in families
            if samples
        ]
        scope = ScopeMetrics(self._scope, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        return self._metrics.export(data) is MetricExportResult.SUCCESS

    def send_spans(self, spans: list[Span]) -> bool:
        readable = [self._readable(span) for span in spans]
        return self._spans.export(readable) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._metrics.shutdown()
        self._spans.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED),
            _context(span.parent) if span.parent is not None else None,
            self._resource,
            span.attributes,
            links=[Link(_context(one)) for one in span.links],
            kind=SpanKind.SERVER if span.incoming else SpanKind.PRODUCER,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.began_ns,
            end_time=span.ended_ns,
            instrumentation_scope=self._scope,
        )


def _context(found: TraceContext) -> SpanContext:
    flags = _SAMPLED if found.sampled else TraceFlags(TraceFlags.DEFAULT)
    return SpanContext(found.trace_id, found.span_id, is_remote=True, trace_flags=flags)


def _data(
    instrument: Instrument, samples: list[tuple[Labels, Value]], began_ns: int, now_ns: int
) -> Sum | Gauge | Histogram:
    numbers: list[NumberDataPoint] = []
    histograms: list[HistogramDataPoint] = []
    for values, value in samples:
        labels = dict(zip(instrument.labels, values, strict=True))
        if isinstance(value, Distribution):
            histograms.append(
                HistogramDataPoint(
                    labels,
                    began_ns,
                    now_ns,
                    sum(value.counts),
                    value.sum,
                    value.counts,
                    instrument.bounds,
                    0.0,
                    0.0,
                )
            )
        else:
            numbers.append(NumberDataPoint(labels, began_ns, now_ns, value))
    if histograms:
        return Histogram(histograms, _CUMULATIVE)
    if instrument.kind == COUNTER:
        return Sum(numbers, _CUMULATIVE, True)
    return Gauge(numbers)
