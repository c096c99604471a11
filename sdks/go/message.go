package fila

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Message is one delivery. Its lease lasts for the queue's visibility timeout: settle it within that
// time with Ack, Nack or Release, or it is delivered again, perhaps to somebody else.
//
// Payload shares memory with the other messages of its frame: clone it to keep a small one for long.
type Message struct {
	// ID is a UUID as text, unique and increasing: a good key for deduplication.
	ID    string
	Queue string
	// Headers is nil if there are none.
	Headers map[string]string
	Payload []byte
	// FairnessKey, Weight and ThrottleKeys are what the queue's on_enqueue hook or the producer chose.
	FairnessKey  string
	Weight       uint32
	ThrottleKeys []string
	// AttemptCount is how often the message failed before: 0 at the first delivery.
	AttemptCount uint32
	EnqueuedAt   time.Time
	LeasedAt     time.Time

	link    *link // where it is leased
	settled atomic.Bool
}

// ConsumeMessage is another name for [Message].
type ConsumeMessage = Message

// Ack settles the message: done and gone.
func (m *Message) Ack(ctx context.Context) error {
	return m.settle(ctx, "ack", kindAck, "")
}

// Nack gives the message back as failed. The queue's on_failure hook sees the reason, of which 4,096
// bytes are sent at most, and decides whether and when it is delivered again.
func (m *Message) Nack(ctx context.Context, reason string) error {
	return m.settle(ctx, "nack", kindNack, clipped(reason))
}

// Release hands the message back at once, to its old place and without a counted attempt.
func (m *Message) Release(ctx context.Context) error {
	return m.settle(ctx, "release", kindRelease, "")
}

// TraceParent is the message's W3C trace context, "" if it has none.
func (m *Message) TraceParent() string { return m.Headers[TraceParentHeader] }

// String describes the message without its payload and header values: messages end up in logs.
func (m *Message) String() string {
	return fmt.Sprintf("message %s of queue %q (fairness key %q, attempt %d, %d bytes)",
		m.ID, m.Queue, m.FairnessKey, m.AttemptCount, len(m.Payload))
}

func (m *Message) settle(ctx context.Context, op string, k kind, reason string) error {
	if m.link == nil {
		return invalid(op, fmt.Errorf("message %q was not received from a consumer", m.ID))
	}
	m.settled.Store(true)
	c := m.link.client
	return single(c.settle(ctx, op, k, []ref{{m.Queue, m.ID, reason}}, m.link))
}

// decodeDelivery reads a Delivery's messages. Their payloads are slices of body.
func decodeDelivery(body []byte, s *stream, l *link) ([]*Message, error) {
	d := wire.NewDecoder(body)
	n := d.Deliveries()
	// One allocation for the messages of a frame: they share their payloads' memory anyway.
	slab := make([]Message, n)
	messages := make([]*Message, n)
	for i := range slab {
		m := &slab[i]
		messages[i] = m
		m.ID = d.String("id")
		m.Queue = s.name(d.Text("queue"))
		m.Headers = decodeHeaders(&d, s)
		m.Payload = d.Bytes("payload")
		m.FairnessKey = s.name(d.Text("fairness_key"))
		m.Weight = d.U32("weight")
		if keys := d.Count("throttle_keys", 2); keys > 0 {
			m.ThrottleKeys = make([]string, keys)
			for k := range m.ThrottleKeys {
				m.ThrottleKeys[k] = s.name(d.Text("throttle_keys"))
			}
		}
		m.AttemptCount = d.U32("attempt_count")
		m.EnqueuedAt = fromMillis(d.U64("enqueued_at_ms"))
		m.LeasedAt = fromMillis(d.U64("leased_at_ms"))
		m.link = l
		if err := d.Err(); err != nil {
			return nil, fmt.Errorf("messages[%d].%w", i, err)
		}
	}
	return messages, d.Err()
}

func decodeHeaders(d *wire.Decoder, s *stream) map[string]string {
	n := d.Count("headers", 4)
	if n == 0 {
		return nil
	}
	headers := make(map[string]string, n)
	for range n {
		key := s.name(d.Text("headers"))
		headers[key] = d.String("headers")
	}
	return headers
}

// name is a string for text that repeats: queues, keys and header names are few. Only the reading
// goroutine of the stream's link calls it.
func (s *stream) name(text []byte) string {
	if name, ok := s.names[string(text)]; ok { // does not allocate
		return name
	}
	name := string(text)
	if len(s.names) < 1024 && len(name) <= 256 {
		s.names[name] = name
	}
	return name
}

func fromMillis(ms uint64) time.Time { return time.UnixMilli(int64(ms)) }

func quoted(s string) string { return strconv.Quote(s) }
