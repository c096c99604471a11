package fila

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// waitMargin is how much longer than the broker's own wait its answer may take.
const waitMargin = 10 * time.Second

// Client is a connection to a broker. It is safe for use by several goroutines.
type Client struct {
	cfg    config
	events announcer
	gate   gate
	calls  tracker // calls under way
	loops  tracker // Consume and ConsumeFunc under way

	mu       sync.RWMutex
	seed     *link            // to the address the user gave
	leaders  map[string]*link // to other nodes, by address
	routes   map[string]*link // queues that another node leads
	streams  map[*stream]struct{}
	draining bool
	closed   bool
}

// Dial connects to a broker. The address is host:port, host (port 5555) or [ipv6]:port; a leading
// https:// switches TLS on. It fails at once if the broker cannot be reached, does not speak the
// protocol or refuses the key; only later connections are retried.
func Dial(addr string, opts ...Option) (*Client, error) {
	return DialContext(context.Background(), addr, opts...)
}

// DialContext is [Dial] under a context, which bounds connecting and nothing after it.
func DialContext(ctx context.Context, addr string, opts ...Option) (*Client, error) {
	where, encrypted, err := parseAddress(addr)
	if err != nil {
		return nil, invalid("connect", err)
	}
	if encrypted {
		opts = append([]Option{WithTLS()}, opts...)
	}
	c := &Client{
		cfg:     newConfig(opts),
		leaders: map[string]*link{},
		routes:  map[string]*link{},
		streams: map[*stream]struct{}{},
	}
	if c.cfg.err != nil {
		return nil, invalid("connect", c.cfg.err)
	}
	c.events.call = c.cfg.onEvent
	c.gate.limit = c.cfg.inFlightBytes
	conn, failure := connect(ctx, where, &c.cfg)
	if failure != nil {
		return nil, failure
	}
	c.seed = newLink(c, where, true)
	c.seed.attach(conn) // before anybody can call or close
	go c.seed.run(conn)
	return c, nil
}

// Close ends the client at once: it says goodbye, which hands every leased message back without a
// counted attempt, and fails what is under way with [ErrClosed]. Consumers end without an error. See
// [Client.Drain] for an end that loses nothing. Close may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.stopConsumers()
	var closing sync.WaitGroup
	for _, l := range c.links() {
		closing.Add(1)
		go func() {
			defer closing.Done()
			l.close(closedError(l.addr))
		}()
	}
	closing.Wait()
	if c.seed.endedByItself() == nil {
		c.announce(Event{Kind: EventClosed, Addr: c.seed.addr})
	}
	c.events.flush(goodbye)
	return nil
}

// Drain ends the client in order: consumers stop and hand back what nobody has read, loops and
// handlers finish the message they are at, calls under way get their answers; then it closes. New
// calls other than settling are refused with [ErrClosed]. When ctx ends before that, Drain closes and
// returns the context's error.
//
// Called from inside a Consume loop or a ConsumeFunc handler it would wait for itself: call it from
// another goroutine there.
func (c *Client) Drain(ctx context.Context) error {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.stopConsumers()
	for _, l := range c.links() {
		l.flush()
	}
	err := c.loops.wait(ctx)
	if err == nil {
		err = c.calls.wait(ctx)
	}
	c.Close()
	if err != nil {
		return clientError("drain", ErrTimeout, err, "not everything was answered in time: %v", err)
	}
	return nil
}

func (c *Client) stopConsumers() {
	c.mu.RLock()
	streams := make([]*stream, 0, len(c.streams))
	for s := range c.streams {
		streams = append(streams, s)
	}
	c.mu.RUnlock()
	for _, s := range streams {
		s.close()
	}
}

// join makes a stream the client's; left takes it out again.
func (c *Client) join(s *stream) {
	c.mu.Lock()
	c.streams[s] = struct{}{}
	late := c.draining || c.closed
	c.mu.Unlock()
	if late {
		s.close()
	}
}

func (c *Client) left(s *stream) {
	c.mu.Lock()
	delete(c.streams, s)
	c.mu.Unlock()
}

// begin counts a call in. While the client drains, only settling is allowed.
func (c *Client) begin(op string, fresh bool) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed || (fresh && c.draining) {
		return closedError(c.seed.addr).during(op)
	}
	c.calls.enter()
	return nil
}

// deadline adds the client's call timeout to a context without one.
func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.deadlineAfter(ctx, 0)
}

// deadlineAfter is deadline for a call that the broker answers after a wait of its own.
func (c *Client) deadlineAfter(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	timeout := c.cfg.callTimeout
	if _, has := ctx.Deadline(); has || timeout == 0 {
		return ctx, func() {}
	}
	if wait > 0 {
		timeout = max(timeout, wait+waitMargin)
	}
	return context.WithTimeoutCause(ctx, timeout, errCallTimeout(timeout))
}

// errCallTimeout tells the client's own timeout from the caller's deadline.
type errCallTimeout time.Duration

func (e errCallTimeout) Error() string { return "no answer within " + time.Duration(e).String() }

// await waits for a call's results, or gives it up with its context. What was answered before that
// stands in the results.
func (c *Client) await(ctx context.Context, cl *call) error {
	select {
	case <-cl.done:
		return nil
	case <-ctx.Done():
		return c.giveUp(cl, c.late(ctx, cl.op, c.route(item{call: cl}.queue()), ""))
	}
}

// giveUp ends a call whose caller waits no longer. Afterwards nobody reads the caller's memory.
func (c *Client) giveUp(cl *call, err *Error) error {
	cl.abandon(err)
	for _, l := range c.links() {
		l.abandon(cl)
	}
	return err
}

// late is the error of a call whose context has ended.
func (c *Client) late(ctx context.Context, op string, l *link, why string) *Error {
	cause := ctx.Err()
	if errors.Is(cause, context.Canceled) {
		return clientError(op, cause, context.Cause(ctx), "cancelled before %s answered", l.addr)
	}
	text := "no answer from " + l.addr + " before the deadline"
	var own errCallTimeout
	if errors.As(context.Cause(ctx), &own) {
		text = fmt.Sprintf("no answer from %s within %s", l.addr, time.Duration(own))
	}
	return clientError(op, ErrTimeout, cause, "%s%s%s", text, why, l.state())
}

// ended: the seed cannot be reached again, so the client has ended by itself.
func (c *Client) ended(reason *Error) {
	c.cfg.logger.Error("fila: the client has ended", "addr", c.seed.addr, "error", reason)
	for _, l := range c.links() {
		if l != c.seed {
			go l.close(reason)
		}
	}
	c.announce(Event{Kind: EventClosed, Addr: c.seed.addr, Err: reason})
}

func (c *Client) announce(e Event) { c.events.announce(e) }
