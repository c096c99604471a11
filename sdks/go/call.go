package fila

import (
	"fmt"
	"sync"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// A call is what one caller waits for: some items of one kind, each with a result. Its items may
// travel in several frames, together with those of other calls, over several connections.
type call struct {
	op          string
	kind        kind
	messages    []EnqueueMessage // of enqueues; headers and payloads are the caller's, see abandoned
	traceparent string           // added to the messages' headers
	bytes       int              // of the messages, as far as they were handed over
	refs        []ref            // of settlements

	mu      sync.Mutex
	results []EnqueueManyResult
	settled []bool
	left    int
	// abandoned: the caller has gone, and its headers and payloads must not be read any more. A link's
	// lock is held while they are encoded; a caller takes every link's lock once before it returns.
	abandoned bool
	done      chan struct{}
	then      func() // called at the end instead of waking somebody; must not block
}

// kind is an operation whose items are collected into frames.
type kind uint8

const (
	kindAck kind = iota // settlements go first: they free leases and credit
	kindNack
	kindRelease
	kindEnqueue
	kindEnqueueWith
	kinds
)

var kindOpcodes = [kinds]uint8{
	kindAck: wire.OpAck, kindNack: wire.OpNack, kindRelease: wire.OpRelease,
	kindEnqueue: wire.OpEnqueue, kindEnqueueWith: wire.OpEnqueueWith,
}

func (k kind) enqueues() bool { return k == kindEnqueue || k == kindEnqueueWith }

// ref names a leased message.
type ref struct{ queue, id, reason string }

// item is one message or settlement on its way.
type item struct {
	call  *call
	index int
	size  int // bytes, as the bound on bytes in flight counts them
	hops  int // how often it was sent on to another node
}

func newCall(op string, k kind, n int) *call {
	c := &call{
		op: op, kind: k,
		results: make([]EnqueueManyResult, n),
		settled: make([]bool, n),
		left:    n,
		done:    make(chan struct{}),
	}
	if n == 0 {
		close(c.done)
	}
	return c
}

func (i item) queue() string {
	if i.call.kind.enqueues() {
		return i.call.messages[i.index].Queue
	}
	return i.call.refs[i.index].queue
}

// repeatable reports whether the item may be sent again although its answer was lost.
func (i item) repeatable() bool {
	return i.call.kind == kindEnqueueWith && i.call.messages[i.index].IdempotencyKey != ""
}

func (i item) gone() bool {
	i.call.mu.Lock()
	defer i.call.mu.Unlock()
	return i.call.abandoned
}

func (i item) settle(result EnqueueManyResult) {
	c := i.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled[i.index] {
		return
	}
	c.settled[i.index] = true
	c.results[i.index] = result
	c.left--
	if c.left == 0 {
		close(c.done)
		if c.then != nil {
			c.then()
		}
	}
}

func (i item) fail(err *Error) { i.settle(EnqueueManyResult{Err: err.during(i.call.op)}) }

// abandon gives everything that is still open this error. Nothing is read from the caller's messages
// afterwards, provided that no link is encoding them now.
func (c *call) abandon(err *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	for i := range c.settled {
		if !c.settled[i] {
			c.settled[i] = true
			c.results[i] = EnqueueManyResult{Err: err}
		}
	}
}

// outcome is nil, or a BatchError with all results' errors.
func (c *call) outcome() error {
	for i := range c.results {
		if c.results[i].Err == nil {
			continue
		}
		errs := make([]error, len(c.results))
		for j := range c.results {
			errs[j] = c.results[j].Err
		}
		return &BatchError{Errs: errs}
	}
	return nil
}

// appendTo appends the item's bytes as its kind of frame has them.
func (i item) appendTo(b []byte) []byte {
	c := i.call
	if c.kind.enqueues() {
		m := &c.messages[i.index]
		b = wire.AppendMessage(b, m.Queue, m.Headers, TraceParentHeader, c.traceparent, m.Payload)
		if c.kind == kindEnqueueWith {
			b = wire.AppendOptions(b, m.delayMs(), m.IdempotencyKey, m.FairnessKey, m.Weight, m.ThrottleKeys)
		}
		return b
	}
	r := &c.refs[i.index]
	b = wire.AppendText(b, r.queue)
	b = wire.AppendText(b, r.id)
	if c.kind == kindNack {
		b = wire.AppendText(b, r.reason)
	}
	return b
}

// answer settles a frame's items with the broker's results.
func (l *link) answer(k kind, items []item, body []byte) error {
	switch k {
	case kindEnqueue:
		var reply wire.EnqueueResult
		if err := decodeResults(body, &reply, &reply.Results, len(items)); err != nil {
			return err
		}
		for n, r := range reply.Results {
			items[n].settleEnqueue(r.Code, r.MessageID, false)
		}
	case kindEnqueueWith:
		var reply wire.EnqueueWithResult
		if err := decodeResults(body, &reply, &reply.Results, len(items)); err != nil {
			return err
		}
		for n, r := range reply.Results {
			items[n].settleEnqueue(r.Code, r.MessageID, r.Duplicate)
		}
	default:
		// AckResult, NackResult and ReleaseResult have the same layout.
		var reply wire.AckResult
		if err := decodeResults(body, &reply, &reply.Results, len(items)); err != nil {
			return err
		}
		for s := range l.streams {
			s.settled(items, reply.Results)
		}
		for n, r := range reply.Results {
			items[n].settleRef(r.Code)
		}
	}
	return nil
}

func decodeResults[T any](body []byte, reply wire.Body, results *[]T, items int) error {
	if err := wire.Decode(body, reply); err != nil {
		return err
	}
	if len(*results) != items {
		return fmt.Errorf("%d results for %d items", len(*results), items)
	}
	return nil
}

func (i item) settleEnqueue(code uint8, id string, duplicate bool) {
	if code == wire.CodeOk {
		i.settle(EnqueueManyResult{MessageID: id, Duplicate: duplicate})
		return
	}
	subject := fmt.Sprintf("queue %q", i.queue())
	i.settle(EnqueueManyResult{Err: brokerError(i.call.op, code, "", subject, nil)})
}

func (i item) settleRef(code uint8) {
	if code == wire.CodeOk {
		i.settle(EnqueueManyResult{})
		return
	}
	r := i.call.refs[i.index]
	i.settle(EnqueueManyResult{Err: settlementError(i.call.op, code, r.queue, r.id)})
}
