package otelfila_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/brokertest"
	otelfila "github.com/faiscadev/fila/sdks/go/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestAHandledMessageIsAChildOfItsEnqueue(t *testing.T) {
	dir, err := os.MkdirTemp("", "fila-otel-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	broker, err := brokertest.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Kill()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	client, err := fila.Dial(broker.Addr, fila.WithTracer(otelfila.NewTracer(otelfila.WithTracerProvider(provider))))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	if _, err := client.CreateQueue(ctx, "traced", fila.QueueConfig{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "traced", nil, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "nowhere", nil, nil); err == nil {
		t.Fatal("stored nowhere")
	}
	var inHandler trace.SpanContext
	err = client.ConsumeFunc(ctx, "traced", func(ctx context.Context, _ *fila.Message) error {
		inHandler = trace.SpanContextFromContext(ctx)
		stop()
		return errors.New("not today")
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans", len(ended))
	}
	sent, refused, processed := ended[0], ended[1], ended[2]
	if sent.Name() != "send traced" || sent.SpanKind() != trace.SpanKindProducer || processed.SpanKind() != trace.SpanKindConsumer {
		t.Errorf("spans %s and %s", sent.Name(), processed.Name())
	}
	if processed.Parent().SpanID() != sent.SpanContext().SpanID() || processed.SpanContext().SpanID() != inHandler.SpanID() {
		t.Errorf("processed under %v, sent as %v", processed.Parent(), sent.SpanContext())
	}
	if len(refused.Events()) != 1 || len(processed.Events()) != 1 || len(sent.Events()) != 0 {
		t.Error("errors were not recorded where they happened")
	}
}
