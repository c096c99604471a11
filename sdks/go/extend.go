package fila

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// extendMax is how many ids one request names.
const extendMax = 1000

// Extend lets a message's lease end that much later from now; 0 means the queue's visibility timeout.
func (c *Client) Extend(ctx context.Context, queue, id string, visibility time.Duration) error {
	return single(c.ExtendMany(ctx, queue, []string{id}, visibility))
}

// ExtendMany lets the leases of many messages end later. If some are not leased here any more, the error
// is a [*BatchError] with one entry for each id; the others are extended.
func (c *Client) ExtendMany(ctx context.Context, queue string, ids []string, visibility time.Duration) error {
	if visibility < 0 {
		return invalid("extend", fmt.Errorf("visibility must not be negative, not %v", visibility))
	}
	errs := make([]error, 0, len(ids))
	refused := false
	for some := range slices.Chunk(ids, extendMax) {
		reply, err := c.extend(ctx, queue, some, visibility)
		if err != nil {
			return err
		}
		for _, id := range some {
			if slices.Contains(reply.Missing, id) {
				errs = append(errs, settlementError("extend", wire.CodeMessageNotFound, queue, id))
				refused = true
			} else {
				errs = append(errs, nil)
			}
		}
	}
	if refused {
		return &BatchError{Errs: errs}
	}
	return nil
}

func (c *Client) extend(ctx context.Context, queue string, ids []string, visibility time.Duration) (*wire.ExtendResult, error) {
	var reply wire.ExtendResult
	q := query{op: "extend leases of queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue), repeatable: true, settles: true,
		body: &wire.Extend{Queue: queue, MessageIds: ids, VisibilityMs: millis(visibility)}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	return &reply, q.refusal(reply.Code, nil)
}

// Extend lets the message's lease end that much later from now; 0 means the queue's visibility timeout.
func (m *Message) Extend(ctx context.Context, visibility time.Duration) error {
	if m.link == nil {
		return invalid("extend", fmt.Errorf("message %q was not received from a consumer", m.ID))
	}
	return m.link.client.Extend(ctx, m.Queue, m.ID, visibility)
}
