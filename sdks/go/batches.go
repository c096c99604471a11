package fila

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// How the messages of a lease batch or a page are sent.
const (
	formMessages = 0
	formArrow    = 1
	formNone     = 2
)

const leaseWaitMax = time.Minute

// LeaseRequest asks for messages under a name, see [Client.LeaseBatch].
type LeaseRequest struct {
	// MaxMessages is from 1 to 65,535; 0 returns a batch that is open and never leases one.
	MaxMessages uint32
	// MaxBytes 0 means 8 MiB.
	MaxBytes uint64
	// Visibility 0 means the queue's visibility timeout.
	Visibility time.Duration
	// Wait is how long the broker waits for the first message, at most a minute. A call without a
	// deadline of its own gets at least that much time, and ten seconds for the answer.
	Wait time.Duration
	// CountAttempt makes a batch whose time runs out a failed delivery.
	CountAttempt bool
	// Arrow asks for the messages as an Arrow IPC stream.
	Arrow bool
	// CountOnly leaves the messages out, for one who leases what others read.
	CountOnly bool
}

// LeasedBatch is messages leased together under a name.
type LeasedBatch struct {
	Name string
	// Again: the batch was open before this call.
	Again        bool
	MessageCount uint32
	ExpiresAt    time.Time
	// Messages is empty when Arrow or CountOnly was asked for.
	Messages []*Message
	Arrow    []byte
}

// BatchCount is what an operation on batches acted on.
type BatchCount struct {
	Batches  uint32
	Messages uint64
}

// OpenBatch is a line of the list of open batches.
type OpenBatch struct {
	Name      string
	Messages  uint32
	LeasedAt  time.Time
	ExpiresAt time.Time
}

// LeaseBatch leases messages under a name. Whoever asks again with the name gets the same messages,
// until the batch is acknowledged, released or its time is up, also across a restart of the broker.
// "s/7" is batch number 7 of the stream "s". It is sent again by itself after a lost connection.
func (c *Client) LeaseBatch(ctx context.Context, queue, name string, lease LeaseRequest) (*LeasedBatch, error) {
	var reply wire.LeaseBatchResult
	op := fmt.Sprintf("lease batch %q of queue %q", name, queue)
	if lease.Visibility < 0 || lease.Wait < 0 || lease.Wait > leaseWaitMax {
		return nil, invalid(op, fmt.Errorf("visibility must not be negative and wait be from 0 to %v, not %v and %v",
			leaseWaitMax, lease.Visibility, lease.Wait))
	}
	if lease.Arrow && lease.CountOnly {
		return nil, invalid(op, errors.New("only one of Arrow and CountOnly can be asked for"))
	}
	body := &wire.LeaseBatch{
		Queue: queue, Name: name, MaxMessages: lease.MaxMessages, MaxBytes: lease.MaxBytes,
		VisibilityMs: millis(lease.Visibility), WaitMs: uint32(millis(lease.Wait)),
		CountAttempt: lease.CountAttempt,
	}
	switch {
	case lease.Arrow:
		body.Form = formArrow
	case lease.CountOnly:
		body.Form = formNone
	}
	q := query{op: op, queue: queue, subject: "queue " + quoted(queue), repeatable: true, wait: lease.Wait,
		body: body, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, nil); err != nil {
		return nil, err
	}
	batch := &LeasedBatch{
		Name: name, Again: reply.Again, MessageCount: reply.Messages, ExpiresAt: fromMillis(reply.ExpiresAtMs),
	}
	switch reply.Form {
	case formArrow:
		batch.Arrow = reply.Body
		return batch, nil
	case formNone:
		return batch, nil
	}
	names := newStream(c, queue, 0) // only for its names
	messages, err := decodeDelivery(reply.Body, names, c.route(queue))
	if err != nil {
		return nil, protocolError("the messages of the batch do not parse: %v", err).during(q.op)
	}
	batch.Messages = messages
	return batch, nil
}

// AckBatch acknowledges a batch by its exact name.
func (c *Client) AckBatch(ctx context.Context, queue, name string) (BatchCount, error) {
	return c.ackBatches(ctx, queue, name, nil)
}

// AckBatchesBelow acknowledges every open batch of a stream whose number is less than below; it is
// no error if there is none.
func (c *Client) AckBatchesBelow(ctx context.Context, queue, stream string, below uint64) (BatchCount, error) {
	return c.ackBatches(ctx, queue, stream, &below)
}

func (c *Client) ackBatches(ctx context.Context, queue, name string, below *uint64) (BatchCount, error) {
	var reply wire.AckBatchResult
	q := onBatch("ack", queue, name, below, &wire.AckBatch{Queue: queue, Name: name, Below: below}, &reply)
	if err := c.ask(ctx, q); err != nil {
		return BatchCount{}, err
	}
	return BatchCount{reply.Batches, reply.Messages}, q.refusal(reply.Code, nil)
}

// ExtendBatch lets a batch end that much later from now; 0 means the queue's visibility timeout.
func (c *Client) ExtendBatch(ctx context.Context, queue, name string, visibility time.Duration) (BatchCount, error) {
	return c.extendBatches(ctx, queue, name, visibility, nil)
}

// ExtendBatchesBelow extends every open batch of a stream whose number is less than below.
func (c *Client) ExtendBatchesBelow(ctx context.Context, queue, stream string, visibility time.Duration, below uint64) (BatchCount, error) {
	return c.extendBatches(ctx, queue, stream, visibility, &below)
}

func (c *Client) extendBatches(ctx context.Context, queue, name string, visibility time.Duration, below *uint64) (BatchCount, error) {
	var reply wire.ExtendBatchResult
	body := &wire.ExtendBatch{Queue: queue, Name: name, VisibilityMs: millis(visibility), Below: below}
	q := onBatch("extend", queue, name, below, body, &reply)
	if err := c.ask(ctx, q); err != nil {
		return BatchCount{}, err
	}
	return BatchCount{reply.Batches, reply.Messages}, q.refusal(reply.Code, nil)
}

// ReleaseBatch hands a batch's messages back to their old places.
func (c *Client) ReleaseBatch(ctx context.Context, queue, name string) (BatchCount, error) {
	return c.releaseBatches(ctx, queue, name, nil)
}

// ReleaseBatchesBelow releases every open batch of a stream whose number is less than below.
func (c *Client) ReleaseBatchesBelow(ctx context.Context, queue, stream string, below uint64) (BatchCount, error) {
	return c.releaseBatches(ctx, queue, stream, &below)
}

func (c *Client) releaseBatches(ctx context.Context, queue, name string, below *uint64) (BatchCount, error) {
	var reply wire.ReleaseBatchResult
	q := onBatch("release", queue, name, below, &wire.ReleaseBatch{Queue: queue, Name: name, Below: below}, &reply)
	if err := c.ask(ctx, q); err != nil {
		return BatchCount{}, err
	}
	return BatchCount{reply.Batches, reply.Messages}, q.refusal(reply.Code, nil)
}

// ListBatches lists the open batches of a queue, oldest first.
func (c *Client) ListBatches(ctx context.Context, queue string) ([]OpenBatch, error) {
	var reply wire.ListBatchesResult
	q := query{op: "batches of queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue), repeatable: true,
		body: &wire.ListBatches{Queue: queue}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	batches := make([]OpenBatch, len(reply.Batches))
	for i, b := range reply.Batches {
		batches[i] = OpenBatch{b.Name, b.Messages, fromMillis(b.LeasedAtMs), fromMillis(b.ExpiresAtMs)}
	}
	return batches, q.refusal(reply.Code, nil)
}

// onBatch may be repeated with below: what is done already is not found again, and that is fine.
func onBatch(verb, queue, name string, below *uint64, body, reply wire.Body) query {
	return query{op: fmt.Sprintf("%s batch %q of queue %q", verb, name, queue), queue: queue,
		subject: fmt.Sprintf("batch %q", name), repeatable: below != nil, body: body, reply: reply}
}
