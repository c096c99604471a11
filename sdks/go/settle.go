package fila

import (
	"context"
	"fmt"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Ack settles a message: done and gone.
func (c *Client) Ack(ctx context.Context, queue, id string) error {
	return single(c.settle(ctx, "ack", kindAck, []ref{{queue, id, ""}}, nil))
}

// Nack gives a message back as failed; the queue's on_failure hook sees the reason, of which 4,096 bytes
// are sent at most.
func (c *Client) Nack(ctx context.Context, queue, id, reason string) error {
	return single(c.settle(ctx, "nack", kindNack, []ref{{queue, id, clipped(reason)}}, nil))
}

// Release hands a message back at once, to its old place and without a counted attempt.
func (c *Client) Release(ctx context.Context, queue, id string) error {
	return single(c.settle(ctx, "release", kindRelease, []ref{{queue, id, ""}}, nil))
}

// AckMany settles many messages in one round trip. If some are refused, the error is a [*BatchError]
// with one entry for each id; the others are settled.
func (c *Client) AckMany(ctx context.Context, queue string, ids []string) error {
	return c.settle(ctx, "ack", kindAck, refsOf(queue, ids, ""), nil)
}

// NackMany gives many messages back as failed, as [Client.AckMany] settles them.
func (c *Client) NackMany(ctx context.Context, queue string, ids []string, reason string) error {
	return c.settle(ctx, "nack", kindNack, refsOf(queue, ids, clipped(reason)), nil)
}

// ReleaseMany hands many messages back, as [Client.AckMany] settles them.
func (c *Client) ReleaseMany(ctx context.Context, queue string, ids []string) error {
	return c.settle(ctx, "release", kindRelease, refsOf(queue, ids, ""), nil)
}

// AckMessages settles received messages, of any queues, in one round trip.
func (c *Client) AckMessages(ctx context.Context, messages []*Message) error {
	refs := make([]ref, len(messages))
	var via *link
	for i, m := range messages {
		refs[i] = ref{m.Queue, m.ID, ""}
		m.settled.Store(true)
		if i == 0 {
			via = m.link
		} else if m.link != via {
			via = nil // from several nodes: each goes where its queue is led
		}
	}
	return c.settle(ctx, "ack", kindAck, refs, via)
}

// settle sends settlements to the link that leased the messages, or where their queues are led.
func (c *Client) settle(ctx context.Context, op string, k kind, refs []ref, via *link) error {
	if err := checkRefs(refs); err != nil {
		return invalid(op, err)
	}
	if len(refs) == 0 {
		return nil
	}
	if err := c.begin(op, false); err != nil {
		return err
	}
	defer c.calls.leave()
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	cl := newCall(op, k, len(refs))
	cl.refs = refs
	c.handIn(cl, via)
	if err := c.await(ctx, cl); err != nil {
		return err
	}
	return cl.outcome()
}

func (c *Client) handIn(cl *call, via *link) {
	items := make([]item, len(cl.refs))
	for i := range items {
		r := &cl.refs[i]
		items[i] = item{call: cl, index: i, size: 6 + len(r.queue) + len(r.id) + len(r.reason)}
	}
	if via != nil {
		c.submit(via, cl.kind, items)
	} else {
		c.dispatch(cl.kind, items)
	}
}

// settleSoon settles a message without waiting; then is called with the outcome and must not block.
func (c *Client) settleSoon(op string, k kind, m *Message, reason string, then func(error)) {
	m.settled.Store(true)
	refs := []ref{{m.Queue, m.ID, reason}}
	if err := checkRefs(refs); err != nil {
		then(invalid(op, err))
		return
	}
	if err := c.begin(op, false); err != nil {
		then(err)
		return
	}
	cl := newCall(op, k, 1)
	cl.refs = refs
	cl.then = func() {
		c.calls.leave()
		then(cl.results[0].Err)
	}
	c.handIn(cl, m.link)
}

func checkRefs(refs []ref) error {
	for i := range refs {
		if err := wire.CheckString("queue", refs[i].queue); err != nil {
			return err
		}
		if err := wire.CheckString("message id", refs[i].id); err != nil {
			return err
		}
		if err := wire.CheckString("reason", refs[i].reason); err != nil {
			return fmt.Errorf("%w; shorten it", err)
		}
	}
	return nil
}

func refsOf(queue string, ids []string, reason string) []ref {
	refs := make([]ref, len(ids))
	for i, id := range ids {
		refs[i] = ref{queue, id, reason}
	}
	return refs
}

// single is the error of a call with one item, without the batch around it.
func single(err error) error {
	if batch, ok := err.(*BatchError); ok && len(batch.Errs) == 1 {
		return batch.Errs[0]
	}
	return err
}
