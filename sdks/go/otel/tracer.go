// Package otelfila makes OpenTelemetry spans of Fila's enqueues and handled messages.
//
//	client, err := fila.Dial(addr, fila.WithTracer(otelfila.NewTracer()))
//
// An enqueue is a span of kind producer, whose context travels in the messages' traceparent header.
// A message handled by ConsumeFunc is a span of kind consumer, a child of its producer's. Users of the
// other forms of consuming start theirs with [Tracer.StartProcess].
package otelfila

import (
	"context"

	fila "github.com/faiscadev/fila/sdks/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/faiscadev/fila/sdks/go/otel"

// Tracer is a [fila.Tracer] for OpenTelemetry.
type Tracer struct {
	tracer trace.Tracer
}

var _ fila.Tracer = (*Tracer)(nil)

// Option sets one thing about a tracer.
type Option func(*config)

type config struct{ provider trace.TracerProvider }

// WithTracerProvider uses this provider instead of the global one.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.provider = provider }
}

// NewTracer makes a tracer.
func NewTracer(opts ...Option) *Tracer {
	c := config{provider: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	return &Tracer{c.provider.Tracer(scope, trace.WithInstrumentationVersion(fila.Version))}
}

// StartEnqueue begins the span of one enqueue call.
func (t *Tracer) StartEnqueue(ctx context.Context, queue string, messages int) (string, func(error)) {
	ctx, span := t.tracer.Start(ctx, "send "+queue, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(
			attribute.String("messaging.system", "fila"),
			attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.destination.name", queue),
			attribute.Int("messaging.batch.message_count", messages),
		))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[fila.TraceParentHeader], finish(span)
}

// StartProcess begins the span of handling one message, a child of the producer's span if the message
// carries one.
func (t *Tracer) StartProcess(ctx context.Context, msg *fila.Message) (context.Context, func(error)) {
	if parent := msg.TraceParent(); parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{fila.TraceParentHeader: parent})
	}
	ctx, span := t.tracer.Start(ctx, "process "+msg.Queue, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "fila"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", msg.Queue),
			attribute.String("messaging.message.id", msg.ID),
			attribute.Int("messaging.message.body.size", len(msg.Payload)),
			attribute.String("fila.fairness_key", msg.FairnessKey),
			attribute.Int64("fila.attempt_count", int64(msg.AttemptCount)),
		))
	return ctx, finish(span)
}

func finish(span trace.Span) func(error) {
	return func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
