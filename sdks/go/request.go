package fila

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// request is an administrative call: sent when there is a connection, answered by one result.
type request struct {
	op         string
	queue      string // "" if it concerns none
	opcode     uint8
	body       []byte
	reply      wire.Body
	repeatable bool // a read: may be sent again after a lost connection
	hops       int
	done       chan *Error // of capacity 1
}

// query is a request and what is said about it.
type query struct {
	op         string
	queue      string        // whose leader is asked
	subject    string        // what an answer without a text is about
	repeatable bool          // a read: sent again by itself after a lost connection
	wait       time.Duration // the broker's own, before it answers
	settles    bool          // it concerns what is leased already: allowed while the client drains
	body       wire.Body
	reply      wire.Body
}

// ask sends a request and waits for its reply. The reply's code is the caller's to look at.
func (c *Client) ask(ctx context.Context, q query) error {
	body, err := wire.Encode(nil, q.body)
	if err != nil {
		return invalid(q.op, err)
	}
	if err := c.begin(q.op, !q.settles); err != nil {
		return err
	}
	defer c.calls.leave()
	ctx, cancel := c.deadlineAfter(ctx, q.wait)
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

// The link's part.

// ask hands a request in; false if the link has ended.
func (l *link) ask(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	if l.conn == nil {
		l.hold(r)
	} else {
		l.sendRequest(r)
		l.wake.Signal()
	}
	return true
}

func (l *link) withdraw(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.requests, r)
}

// hold keeps a request until there is a connection.
func (l *link) hold(r *request) {
	l.lastPlace++
	l.requests[r] = l.lastPlace
}

// takeRequests takes what waits, in the order of its coming.
func (l *link) takeRequests() []*request {
	waiting := slices.SortedFunc(maps.Keys(l.requests), func(a, b *request) int { return l.requests[a] - l.requests[b] })
	clear(l.requests)
	return waiting
}
