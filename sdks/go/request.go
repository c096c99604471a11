package fila

import (
	"context"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// query is a request and what is said about it.
type query struct {
	op         string
	queue      string // whose leader is asked
	subject    string // what an answer without a text is about
	repeatable bool   // a read: sent again by itself after a lost connection
	body       wire.Body
	reply      wire.Body
}

// ask sends a request and waits for its reply. The reply's code is the caller's to look at.
func (c *Client) ask(ctx context.Context, q query) error {
	body, err := wire.Encode(nil, q.body)
	if err != nil {
		return invalid(q.op, err)
	}
	if err := c.begin(q.op, true); err != nil {
		return err
	}
	defer c.calls.leave()
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	r := &request{
		op: q.op, queue: q.queue, opcode: q.body.Opcode(), body: body,
		reply: q.reply, repeatable: q.repeatable, done: make(chan *Error, 1),
	}
	l := c.route(q.queue)
	if !l.ask(r) && (l == c.seed || !c.seed.ask(r)) {
		return c.seed.whyEnded().during(q.op)
	}
	select {
	case err := <-r.done:
		if err != nil {
			return err
		}
		return nil
	case <-ctx.Done():
		for _, l := range c.links() {
			l.withdraw(r)
		}
		return c.late(ctx, q.op, l, "")
	}
}

// refusal is the error of a reply's code, nil for Ok.
func (q query) refusal(code uint8, message *string) error {
	if code == wire.CodeOk {
		return nil
	}
	text := ""
	if message != nil {
		text = *message
	}
	return brokerError(q.op, code, text, q.subject, nil)
}
