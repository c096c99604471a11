package fila

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

const prefetchMax = 65535

// ConsumeOption sets one thing about a subscription.
type ConsumeOption func(*consumeConfig)

type consumeConfig struct {
	prefetch    int
	concurrency int
	heartbeat   bool
}

// WithPrefetch is how many messages the broker may have delivered without their being settled; from
// 1 to 65,535, by default [DefaultPrefetch].
func WithPrefetch(n int) ConsumeOption { return func(c *consumeConfig) { c.prefetch = n } }

// WithConcurrency lets [Client.ConsumeFunc] handle so many messages at the same time; 1 by default.
func WithConcurrency(n int) ConsumeOption { return func(c *consumeConfig) { c.concurrency = n } }

func newConsumeConfig(opts []ConsumeOption) (consumeConfig, error) {
	c := consumeConfig{prefetch: DefaultPrefetch, concurrency: 1}
	for _, opt := range opts {
		opt(&c)
	}
	if c.prefetch < 1 || c.prefetch > prefetchMax {
		return c, fmt.Errorf("prefetch must be from 1 to %d, not %d", prefetchMax, c.prefetch)
	}
	if c.concurrency < 1 {
		return c, fmt.Errorf("concurrency must be positive, not %d", c.concurrency)
	}
	return c, nil
}

// Consume subscribes when it is ranged over and yields messages as they come. The loop ends without
// an error when ctx ends or the client is closed or drained. Whatever else ends the subscription is
// yielded as the last pair, with a nil message. Leaving the loop ends the subscription and hands back
// what was fetched and not yielded.
//
//	for msg, err := range client.Consume(ctx, "orders") {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (c *Client) Consume(ctx context.Context, queue string, opts ...ConsumeOption) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		consumer, err := c.Subscribe(ctx, queue, opts...)
		if err != nil {
			if !c.ownDoing(ctx, err) {
				yield(nil, err)
			}
			return
		}
		defer consumer.Close()
		c.loops.enter()
		defer c.loops.leave()
		defer consumer.stream.work()()
		for msg, err := range consumer.All(ctx) {
			if !yield(msg, err) {
				return
			}
		}
	}
}

// ConsumeFunc subscribes and calls handle for every message. A message is acknowledged when handle
// returns nil and rejected with the error's text when it does not, unless handle has settled it
// already. With [WithConcurrency] several calls run at the same time.
//
// It returns nil when ctx ends or the client is drained or closed, after the handlers have returned
// and their settlements are answered; else the error that ended the subscription. A message whose
// handler fails because ctx has ended is handed back without a counted attempt.
func (c *Client) ConsumeFunc(ctx context.Context, queue string, handle func(context.Context, *Message) error, opts ...ConsumeOption) error {
	cfg, err := newConsumeConfig(opts)
	if err != nil {
		return invalid("consume", err)
	}
	consumer, err := c.Subscribe(ctx, queue, opts...)
	if err != nil {
		if c.ownDoing(ctx, err) {
			return nil
		}
		return err
	}
	defer consumer.Close()
	c.loops.enter()
	defer c.loops.leave()
	defer consumer.stream.work()()
	var settlements tracker
	work := func() {
		for msg, err := range consumer.All(ctx) {
			if err != nil {
				return
			}
			c.handle(ctx, msg, handle, &settlements)
		}
	}
	var workers sync.WaitGroup
	for range cfg.concurrency - 1 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			work()
		}()
	}
	work()
	workers.Wait()
	patience, cancel := c.deadline(context.WithoutCancel(ctx))
	defer cancel()
	if settlements.wait(patience) != nil {
		c.cfg.logger.Warn("fila: settlements were not answered", "queue", queue)
	}
	return consumer.Err()
}

// handle runs a handler and settles its message without waiting for the answer: credit and leases
// bound how many are under way.
func (c *Client) handle(ctx context.Context, msg *Message, handle func(context.Context, *Message) error, settlements *tracker) {
	handlerCtx, end := c.startProcess(ctx, msg)
	err := handle(handlerCtx, msg)
	end(err)
	if msg.settled.Load() {
		return
	}
	op, k, reason := "ack", kindAck, ""
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		op, k = "release", kindRelease
	case err != nil:
		op, k, reason = "nack", kindNack, clipped(err.Error())
	}
	settlements.enter()
	c.settleSoon(op, k, msg, reason, func(err error) {
		settlements.leave()
		if err != nil {
			// Not under the locks of whoever calls this.
			go c.cfg.logger.Warn("fila: a handled message was not settled and comes again",
				"op", op, "queue", msg.Queue, "message_id", msg.ID, "error", err)
		}
	})
}

// ownDoing reports whether an error only says that the caller or the client has ended it.
func (c *Client) ownDoing(ctx context.Context, err error) bool {
	return errors.Is(err, ErrClosed) || ctx.Err() != nil
}

// Consumer is a subscription. It ends when it is closed, when the context it was made with ends, when
// the client is closed, or with an error of the broker's: see Err. After a lost connection it
// subscribes again by itself.
type Consumer struct {
	stream   *stream
	detach   func() bool
	once     sync.Once
	messages chan *Message
}

// Subscribe opens a subscription and waits until the broker has accepted it. The subscription ends
// with ctx; accepting it is bounded by the client's call timeout as well.
func (c *Client) Subscribe(ctx context.Context, queue string, opts ...ConsumeOption) (*Consumer, error) {
	op := "consume queue " + quoted(queue)
	cfg, err := newConsumeConfig(opts)
	if err == nil {
		err = wire.CheckString("queue", queue)
	}
	if err != nil {
		return nil, invalid("consume", err)
	}
	if err := c.begin(op, true); err != nil {
		return nil, err
	}
	defer c.calls.leave()
	s := newStream(c, queue, uint32(cfg.prefetch))
	if cfg.heartbeat {
		s.held = map[string]uint64{}
	}
	c.join(s)
	if l := c.route(queue); !l.subscribe(s) && (l == c.seed || !c.seed.subscribe(s)) {
		s.fail(c.seed.whyEnded())
	}
	patience := make(<-chan time.Time)
	if c.cfg.callTimeout > 0 {
		timer := time.NewTimer(c.cfg.callTimeout)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
		s.close()
		return nil, c.late(ctx, op, c.route(queue), "")
	case <-patience:
		s.close()
		return nil, clientError(op, ErrTimeout, nil, "no answer from %s within %s%s",
			c.route(queue).addr, c.cfg.callTimeout, c.route(queue).state())
	}
	if !s.wasOpen() {
		return nil, s.why()
	}
	if cfg.heartbeat {
		go s.beat()
	}
	return &Consumer{stream: s, detach: context.AfterFunc(ctx, s.close)}, nil
}

// Queue is the queue's name.
func (c *Consumer) Queue() string { return c.stream.queue }

// Receive waits for the next message. It fails with ctx's error when ctx ends, with [ErrClosed] when
// the consumer was closed, and with the error that ended the subscription otherwise. Several
// goroutines may receive from one consumer.
func (c *Consumer) Receive(ctx context.Context) (*Message, error) { return c.stream.next(ctx) }

// ReceiveMany waits for a message as Receive does and adds what else is here already, up to limit
// messages: the fast form for those who settle in batches.
func (c *Consumer) ReceiveMany(ctx context.Context, limit int) ([]*Message, error) {
	if limit < 1 {
		return nil, invalid("receive", fmt.Errorf("limit must be positive, not %d", limit))
	}
	first, err := c.stream.next(ctx)
	if err != nil {
		return nil, err
	}
	messages := append(make([]*Message, 0, min(limit, int(c.stream.prefetch))), first)
	for len(messages) < limit {
		m, _ := c.stream.pop(false)
		if m == nil {
			break
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// All yields messages until ctx ends or the consumer is closed. Any other end is yielded as the last
// pair, with a nil message.
func (c *Consumer) All(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			msg, err := c.stream.next(ctx)
			if err != nil {
				if err := c.Err(); err != nil && ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			if !yield(msg, nil) {
				return
			}
		}
	}
}

// Messages is the subscription as a channel. It is closed when the subscription ends; Err says why.
// What stands in the channel's hand at that moment is handed back. Do not mix it with the other forms.
func (c *Consumer) Messages() <-chan *Message {
	c.once.Do(func() {
		c.messages = make(chan *Message)
		go c.pump()
	})
	return c.messages
}

func (c *Consumer) pump() {
	defer close(c.messages)
	s := c.stream
	for {
		m, err := s.wait(context.Background(), true)
		if err != nil {
			return
		}
		select {
		case c.messages <- m:
			s.letGo()
		case <-s.revoked: // it was delivered before, and is settled by now
		case <-s.over:
			if s.letGo() && s.why().(*Error).sentinel == ErrClosed {
				s.client.settleSoon("release", kindRelease, m, "", func(error) {})
			}
			return
		}
	}
}

// Err says why the subscription ended: nil while it lives, and after Close, Drain or the end of its
// context.
func (c *Consumer) Err() error {
	s := c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return s.err
}

// Close ends the subscription and hands back what was fetched and not received. Messages received
// before can still be settled. Close may be called more than once.
func (c *Consumer) Close() error {
	c.detach()
	c.stream.close()
	return nil
}

// clipped is a reason of a length that is pleasant to read, and that can be sent.
func clipped(reason string) string {
	const longest = 4096
	if len(reason) > longest {
		reason = reason[:longest]
	}
	return strings.ToValidUTF8(reason, "?")
}
