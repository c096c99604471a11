package fila

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// chunkBytes of a long list are handed over together.
const chunkBytes = 4 << 20

// EnqueueMessage is a message to store. Only Queue is required.
type EnqueueMessage struct {
	Queue   string
	Headers map[string]string
	Payload []byte
	// Delay is how long the message waits before it can be delivered; at most 366 days.
	Delay time.Duration
	// IdempotencyKey names this enqueue: a queue that remembers it stores nothing and answers with
	// the first message's id. With a key an enqueue is repeated by itself after a lost connection.
	IdempotencyKey string
	// FairnessKey, Weight and ThrottleKeys place the message in a queue without an on_enqueue hook.
	// Empty and 0 mean not given.
	FairnessKey  string
	Weight       uint32
	ThrottleKeys []string
}

// EnqueueManyResult is what became of one message.
type EnqueueManyResult struct {
	// MessageID is set when the broker has stored the message.
	MessageID string
	// Duplicate: the queue knew the idempotency key; MessageID is the first message's.
	Duplicate bool
	Err       error
}

// EnqueueOption sets one thing about a message, see [Client.Enqueue].
type EnqueueOption func(*EnqueueMessage)

// WithDelay lets the message become ready that much later.
func WithDelay(d time.Duration) EnqueueOption { return func(m *EnqueueMessage) { m.Delay = d } }

// WithIdempotencyKey names the enqueue, so that repeating it stores nothing.
func WithIdempotencyKey(key string) EnqueueOption {
	return func(m *EnqueueMessage) { m.IdempotencyKey = key }
}

// WithFairnessKey places the message in a queue without an on_enqueue hook.
func WithFairnessKey(key string) EnqueueOption {
	return func(m *EnqueueMessage) { m.FairnessKey = key }
}

// WithWeight sets the fairness key's weight in a queue without an on_enqueue hook.
func WithWeight(weight uint32) EnqueueOption { return func(m *EnqueueMessage) { m.Weight = weight } }

// WithThrottleKeys names the buckets the message takes tokens from in a queue without an on_enqueue
// hook; at most 16.
func WithThrottleKeys(keys ...string) EnqueueOption {
	return func(m *EnqueueMessage) { m.ThrottleKeys = keys }
}

// Enqueue stores a message and returns its id once the broker has it. Headers and payload may be
// reused when it returns.
func (c *Client) Enqueue(ctx context.Context, queue string, headers map[string]string, payload []byte, opts ...EnqueueOption) (string, error) {
	messages := []EnqueueMessage{{Queue: queue, Headers: headers, Payload: payload}}
	for _, opt := range opts {
		opt(&messages[0])
	}
	results, err := c.enqueue(ctx, messages)
	if err != nil {
		return "", err
	}
	return results[0].MessageID, results[0].Err
}

// EnqueueMany stores messages, of one queue or of several. The results are in the messages' order,
// one for each. A refused message costs only itself; if there are any, the error is a [*BatchError],
// so that nobody who looks only at the error loses a message.
//
// Any other error is about the call as a whole. If its context ended there are results all the same,
// with the ids of what was stored before that; if it could not be sent at all there are none.
func (c *Client) EnqueueMany(ctx context.Context, messages []EnqueueMessage) ([]EnqueueManyResult, error) {
	results, err := c.enqueue(ctx, slices.Clone(messages))
	if err != nil {
		return results, err
	}
	return results, outcomeOf(results)
}

func (c *Client) enqueue(ctx context.Context, messages []EnqueueMessage) (results []EnqueueManyResult, err error) {
	const op = "enqueue"
	k := kindEnqueue
	for i := range messages {
		if err := messages[i].check(); err != nil {
			if len(messages) > 1 {
				err = fmt.Errorf("messages[%d]: %w", i, err)
			}
			return nil, invalid(op, err)
		}
		if messages[i].hasOptions() {
			k = kindEnqueueWith // for all of them, so that they are stored in their order
		}
	}
	if len(messages) == 0 {
		return nil, nil
	}
	if err := c.begin(op, true); err != nil {
		return nil, err
	}
	defer c.calls.leave()
	traceparent, end := c.startEnqueue(ctx, messages[0].Queue, len(messages))
	defer func() { end(firstError(results, err)) }()
	if err := wire.CheckString("traceparent", traceparent); err != nil {
		return nil, invalid(op, err)
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	cl := newCall(op, k, len(messages))
	cl.messages, cl.traceparent = messages, traceparent
	if err := c.handOver(ctx, cl); err != nil {
		return cl.results, err
	}
	return cl.results, c.await(ctx, cl)
}

// handOver gives a call's messages to their links, as the bound on bytes in flight lets them in.
func (c *Client) handOver(ctx context.Context, cl *call) error {
	chunkMax := min(chunkBytes, c.cfg.inFlightBytes)
	for first := 0; first < len(cl.messages); {
		var items []item
		bytes := 0
		for n := first; n < len(cl.messages); n++ {
			size := cl.messages[n].size()
			if bytes > 0 && bytes+size > chunkMax {
				break
			}
			if items == nil {
				items = make([]item, 0, min(len(cl.messages)-first, enough*10))
			}
			items = append(items, item{call: cl, index: n, size: size})
			bytes += size
		}
		if err := c.gate.enter(ctx, bytes); err != nil {
			return c.giveUp(cl, c.late(ctx, cl.op, c.route(cl.messages[first].Queue), c.waitingForRoom()))
		}
		first += len(items)
		cl.bytes += bytes
		c.dispatch(cl.kind, items)
	}
	return nil
}

func (c *Client) waitingForRoom() string {
	return fmt.Sprintf("; %d bytes are under way without an answer", c.cfg.inFlightBytes)
}

// dispatch gives items to the links of their queues, in order.
func (c *Client) dispatch(k kind, items []item) {
	for len(items) > 0 {
		l := c.route(items[0].queue())
		n := 1
		for n < len(items) && (items[n].queue() == items[n-1].queue() || c.route(items[n].queue()) == l) {
			n++
		}
		c.submit(l, k, items[:n:n])
		items = items[n:]
	}
}

// submit gives items to a link; if that has ended meanwhile, to where their queue is led now, or to
// the seed.
func (c *Client) submit(l *link, k kind, items []item) {
	if l.submit(k, items) {
		return
	}
	if next := c.route(items[0].queue()); next != l && next.submit(k, items) {
		return
	}
	if !c.seed.submit(k, items) {
		c.failItems(k, items, c.seed.whyEnded())
	}
}

func (m *EnqueueMessage) hasOptions() bool {
	return m.Delay != 0 || m.IdempotencyKey != "" || m.FairnessKey != "" || m.Weight != 0 || len(m.ThrottleKeys) > 0
}

func (m *EnqueueMessage) check() error {
	if err := wire.CheckString("queue", m.Queue); err != nil {
		return err
	}
	if m.Queue == "" {
		return fmt.Errorf("queue has no name")
	}
	if len(m.Headers) >= math.MaxUint16 {
		return fmt.Errorf("%d headers are more than can be sent", len(m.Headers))
	}
	for key, value := range m.Headers {
		if err := wire.CheckString("header name", key); err != nil {
			return err
		}
		if err := wire.CheckString("header "+quoted(key), value); err != nil {
			return err
		}
	}
	if uint64(len(m.Payload)) > math.MaxUint32 {
		return fmt.Errorf("payload has %d bytes; at most %d can be sent", len(m.Payload), uint32(math.MaxUint32))
	}
	if !m.hasOptions() {
		return nil
	}
	if m.Delay < 0 {
		return fmt.Errorf("delay must not be negative, not %v", m.Delay)
	}
	if err := wire.CheckString("idempotency key", m.IdempotencyKey); err != nil {
		return err
	}
	if err := wire.CheckString("fairness key", m.FairnessKey); err != nil {
		return err
	}
	if len(m.ThrottleKeys) > math.MaxUint16 {
		return fmt.Errorf("%d throttle keys are more than can be sent", len(m.ThrottleKeys))
	}
	for _, key := range m.ThrottleKeys {
		if err := wire.CheckString("throttle key", key); err != nil {
			return err
		}
	}
	return nil
}

// delayMs rounds up: a message never becomes ready too early.
func (m *EnqueueMessage) delayMs() uint64 {
	return uint64((m.Delay + time.Millisecond - 1) / time.Millisecond)
}

// size is about what the message takes on the wire.
func (m *EnqueueMessage) size() int {
	n := 8 + len(m.Queue) + len(m.Payload)
	for key, value := range m.Headers {
		n += 4 + len(key) + len(value)
	}
	return n
}

func outcomeOf(results []EnqueueManyResult) error {
	return (&call{results: results}).outcome()
}

func firstError(results []EnqueueManyResult, err error) error {
	if err != nil {
		return err
	}
	for i := range results {
		if results[i].Err != nil {
			return results[i].Err
		}
	}
	return nil
}
