package fila

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

const (
	stableAfter  = time.Second            // a connection that lived this long resets the pause
	resubscribe  = 500 * time.Millisecond // after the broker ended a stream for the moment
	goodbye      = time.Second            // for the broker to close after Disconnect
	composeBytes = 1 << 20                // frames written together
	hopsMax      = 8                      // how often an item or stream is sent on to another node
)

// link is the client's side of one node: the present connection, what waits for it and what it
// still owes an answer. The seed link, to the address the user gave, reconnects; a link to a leader
// hands everything back to the seed when it ends.
type link struct {
	client *Client
	addr   string
	seed   bool
	ctx    context.Context // ends with the link; its cause is an *Error
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the link's goroutines have ended

	mu         sync.Mutex
	wake       *sync.Cond // something to write, or the connection has ended
	conn       *connection
	ended      *Error // no call can succeed here any more
	failure    string // why there is no connection
	complaint  *Error // an Error that belongs to no request
	lastID     uint32
	pending    map[uint32]any   // *frame, *request, *stream or *leaving
	requests   map[*request]int // waiting for a connection, and in which order
	lastPlace  int
	streams    map[*stream]struct{}
	collectors [kinds]collector
	out        []byte // frames that are ready to be written
	linger     *time.Timer
	pauses     int // attempts to connect since the last stable connection
}

// frame is a batch of items, sent and not yet answered.
type frame struct {
	kind  kind
	items []item
}

func newLink(c *Client, addr string, seed bool) *link {
	l := &link{
		client: c, addr: addr, seed: seed,
		done:     make(chan struct{}),
		pending:  map[uint32]any{},
		requests: map[*request]int{},
		streams:  map[*stream]struct{}{},
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.wake = sync.NewCond(&l.mu)
	for k := range l.collectors {
		mode := c.cfg.batch
		if !kind(k).enqueues() && mode.kind == batchLinger {
			mode = Auto() // lingering would only keep leases longer than needed
		}
		l.collectors[k] = collector{mode: mode, maxItems: c.cfg.batchMessages, maxBytes: c.cfg.batchBytes}
	}
	l.linger = time.AfterFunc(time.Hour, func() {
		l.mu.Lock()
		l.wake.Signal()
		l.mu.Unlock()
	})
	l.linger.Stop()
	return l
}

// run serves connections, beginning with this one, until the link ends. Without a first connection
// it opens one.
func (l *link) run(conn *connection) {
	defer close(l.done)
	defer l.linger.Stop()
	log := l.client.cfg.logger
	for {
		if conn == nil {
			var err *Error
			if conn, err = connect(l.ctx, l.addr, &l.client.cfg); err != nil {
				log.Warn("fila: connect failed", "addr", l.addr, "error", err)
				if !l.retry(err, false) {
					return
				}
				continue
			}
		}
		log.Info("fila: connected", "addr", l.addr, "node_id", conn.nodeID)
		l.client.announce(Event{Kind: EventConnected, Addr: l.addr})
		reason := l.serve(conn)
		if l.ctx.Err() == nil {
			log.Warn("fila: connection lost", "addr", l.addr, "error", reason)
		}
		l.client.announce(Event{Kind: EventDisconnected, Addr: l.addr, Err: reason})
		if time.Since(conn.opened) >= stableAfter {
			l.pauses = 0
		}
		conn = nil
		if !l.retry(reason, true) {
			return
		}
	}
}

// retry decides what follows a connection that ended or was not opened, and pauses before the next
// attempt. False: the link has ended.
func (l *link) retry(reason *Error, wasOpen bool) bool {
	cfg := &l.client.cfg
	switch {
	case l.ctx.Err() != nil:
		l.end(l.over())
		return false
	case !l.seed:
		l.retire(reason, wasOpen)
		return false
	case reason.permanent() || !cfg.reconnect:
		l.end(reason)
		l.client.ended(reason)
		return false
	}
	pause := l.pause()
	l.client.announce(Event{Kind: EventReconnecting, Addr: l.addr, Err: reason, Pause: pause})
	l.mu.Lock()
	l.failure = reason.Message
	l.mu.Unlock()
	return l.sleep(pause)
}

// pause doubles with every attempt.
func (l *link) pause() time.Duration {
	pause := l.client.cfg.pauseAfter(l.pauses)
	l.pauses++
	return shortened(pause)
}

// shortened by up to half at random: many clients lose one node at the same moment and must not come back
// at one moment.
func shortened(pause time.Duration) time.Duration {
	return pause - time.Duration(rand.Float64()/2*float64(pause))
}

func (l *link) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
	if l.ctx.Err() != nil {
		l.end(l.over())
		return false
	}
	return true
}

// serve runs one connection to its end and says why it ended.
func (l *link) serve(conn *connection) *Error {
	if !l.attach(conn) {
		conn.drop(l.over())
		return l.over()
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		l.write(conn)
	}()
	beating := make(chan struct{})
	go l.keepAlive(conn, beating)
	reason := l.read(conn)
	conn.drop(reason)
	l.mu.Lock()
	if l.complaint != nil && reason.Code == CodeNone {
		reason = l.complaint // the broker said why before it closed
	}
	if first := conn.why(); first != nil && first.Code == CodeNone && reason.Code == CodeNone {
		reason = first
	}
	l.mu.Unlock()
	l.detach(reason)
	close(beating)
	<-writing
	return reason
}

// attach makes this the present connection; false if the link was closed meanwhile.
func (l *link) attach(conn *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn {
		return true
	}
	if l.ctx.Err() != nil {
		return false
	}
	l.conn = conn
	l.failure, l.complaint = "", nil
	l.out = nil
	for s := range l.streams {
		l.sendConsume(s)
	}
	for _, r := range l.takeRequests() {
		l.sendRequest(r)
	}
	l.wake.Signal()
	return true
}

// detach fails what was sent and not answered, keeps what may be sent again.
func (l *link) detach(reason *Error) {
	lost := clientError("", ErrConnectionLost, reason,
		"connection to %s lost before the broker answered: %s", l.addr, reason.Message)
	if l.ctx.Err() != nil && l.over().sentinel == ErrClosed {
		lost = closedError(l.addr)
		lost.sent = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
	l.failure = reason.Message
	l.wake.Broadcast()
	pending := l.pending
	l.pending = map[uint32]any{}
	// The last first: what is sent again is put before the rest, so it keeps its order.
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(pending))) {
		switch p := pending[id].(type) {
		case *frame:
			l.lose(p, lost)
		case *request:
			if p.repeatable {
				l.hold(p)
			} else {
				p.done <- lost.during(p.op)
			}
		}
	}
	for s := range l.streams {
		s.disconnected()
	}
}

// lose settles a frame that will not be answered; items with an idempotency key are sent again.
func (l *link) lose(f *frame, lost *Error) {
	var again []item
	freed := 0
	for _, i := range f.items {
		if i.repeatable() && !i.gone() {
			again = append(again, i)
			continue
		}
		freed += i.size
		i.fail(lost)
	}
	l.landed(f.kind, freed)
	if len(again) > 0 {
		l.collectors[f.kind].putBack(again)
	}
}

// landed: a frame is no longer under way. Its items' bytes make room for others.
func (l *link) landed(k kind, bytes int) {
	l.collectors[k].inFlight--
	if k.enqueues() {
		l.client.gate.leave(bytes)
	}
	l.wake.Signal()
}

// submit hands items in; false if the link has ended.
func (l *link) submit(k kind, items []item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.collectors[k].add(items)
	l.wake.Signal()
	return true
}

// abandon withdraws what a call has not sent yet. When it returns, nobody reads the call's messages.
func (l *link) abandon(c *call) {
	l.mu.Lock()
	freed := l.collectors[c.kind].forget(len(c.results), c.bytes)
	l.mu.Unlock()
	if c.kind.enqueues() {
		l.client.gate.leave(freed)
	}
}

// flush sends what lingers at once, now and later.
func (l *link) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.collectors {
		if l.collectors[k].mode.kind == batchLinger {
			l.collectors[k].mode = Auto()
		}
	}
	l.wake.Signal()
}

// endedByItself is why the link ended before anybody closed it, nil if it did not.
func (l *link) endedByItself() *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil || l.ended.sentinel == ErrClosed {
		return nil
	}
	return l.ended
}

func (l *link) whyEnded() *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	return closedError(l.addr)
}

// state says for people why a call may have had no answer.
func (l *link) state() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.conn != nil:
		return ""
	case l.failure != "":
		return "; not connected: " + l.failure
	}
	return "; still connecting"
}

// over is why the link was told to end.
func (l *link) over() *Error { return context.Cause(l.ctx).(*Error) }

// close says goodbye, which hands leased messages back, and waits for the broker to close. What is
// left open fails with the reason.
func (l *link) close(reason *Error) {
	l.cancel(reason) // first: from here on no new connection is attached
	l.mu.Lock()
	conn := l.conn
	if conn != nil {
		l.out = wire.AppendFrame(l.out, wire.OpDisconnect, 0, nil, conn.frameMax)
		l.wake.Signal()
	}
	l.mu.Unlock()
	if conn != nil {
		timer := time.AfterFunc(goodbye, func() { conn.drop(reason) })
		defer timer.Stop()
	}
	<-l.done
}

// end fails everything, now and later.
func (l *link) end(reason *Error) {
	l.mu.Lock()
	if l.ended == nil {
		l.ended = reason
	}
	items, requests, streams := l.takeAll()
	l.mu.Unlock()
	freed := 0
	for _, i := range items {
		if i.call.kind.enqueues() {
			freed += i.size
		}
		i.fail(reason)
	}
	l.client.gate.leave(freed)
	for _, r := range requests {
		r.done <- reason.during(r.op)
	}
	for _, s := range streams {
		s.fail(reason)
	}
}

func (l *link) takeAll() ([]item, []*request, []*stream) {
	var items []item
	for k := range l.collectors {
		items = append(items, l.collectors[k].takeAll()...)
	}
	requests := l.takeRequests()
	streams := make([]*stream, 0, len(l.streams))
	for s := range l.streams {
		streams = append(streams, s)
	}
	l.streams = map[*stream]struct{}{}
	return items, requests, streams
}

func (l *link) nextID() uint32 {
	// Never an id that is in use: a stream may live for more than 2^32 requests.
	for {
		l.lastID++
		if _, used := l.pending[l.lastID]; l.lastID != 0 && !used {
			return l.lastID
		}
	}
}

func closedError(addr string) *Error {
	return clientError("", ErrClosed, nil, "the client for %s is closed", addr)
}
