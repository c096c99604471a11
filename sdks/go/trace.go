package fila

import "context"

// TraceParentHeader is the header that carries a W3C trace context.
const TraceParentHeader = "traceparent"

type traceKey struct{}

// ContextWithTraceParent returns a context under which messages are enqueued with this traceparent
// header, unless they have one already.
func ContextWithTraceParent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// TraceParentFromContext is the traceparent of a context, "" if it has none.
func TraceParentFromContext(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}

// Tracer makes spans; see [WithTracer].
type Tracer interface {
	// StartEnqueue begins the span of one enqueue call. The traceparent is sent with its messages;
	// end is called with the call's outcome.
	StartEnqueue(ctx context.Context, queue string, messages int) (traceparent string, end func(error))
	// StartProcess begins the span of handling one message in ConsumeFunc. The handler runs under the
	// context it returns; end is called with what the handler returned.
	StartProcess(ctx context.Context, msg *Message) (handlerCtx context.Context, end func(error))
}

func (c *Client) startEnqueue(ctx context.Context, queue string, messages int) (string, func(error)) {
	if c.cfg.tracer != nil {
		return c.cfg.tracer.StartEnqueue(ctx, queue, messages)
	}
	return TraceParentFromContext(ctx), func(error) {}
}

func (c *Client) startProcess(ctx context.Context, msg *Message) (context.Context, func(error)) {
	if c.cfg.tracer != nil {
		return c.cfg.tracer.StartProcess(ctx, msg)
	}
	if traceparent := msg.TraceParent(); traceparent != "" {
		ctx = ContextWithTraceParent(ctx, traceparent)
	}
	return ctx, func(error) {}
}
