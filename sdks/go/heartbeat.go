package fila

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	beats      = 3           // within the visibility timeout
	beatsAgain = time.Second // until the timeout is known
)

// WithHeartbeat extends the leases of everything the subscription holds, received or not, until it is
// settled: three times within the queue's visibility timeout. A program that dies loses its messages
// within one visibility timeout. When the subscription ends, the messages in the hands of
// [Client.Consume] and [Client.ConsumeFunc] are kept on until they are settled or the loop is left.
func WithHeartbeat() ConsumeOption { return func(c *consumeConfig) { c.heartbeat = true } }

// beat extends what the stream holds until the stream ends, and what is at work then has settled all it had.
func (s *stream) beat() {
	ctx := s.client.seed.ctx  // ends with the client
	pause := time.Duration(0) // not known yet
	timer := time.NewTimer(0)
	defer timer.Stop()
	over := s.over
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			over = nil
		case <-timer.C:
		}
		if over == nil && !s.isAtWork() {
			return
		}
		pause = s.extendHeld(ctx, pause)
		timer.Reset(max(pause, time.Millisecond))
		if pause == 0 {
			timer.Reset(beatsAgain)
		}
	}
}

// extendHeld asks for more time for what is held; it returns how long to pause, 0 if that is unknown.
func (s *stream) extendHeld(ctx context.Context, pause time.Duration) time.Duration {
	ids := s.heldIDs()
	if len(ids) == 0 && pause > 0 {
		return pause
	}
	chunks := slices.Collect(slices.Chunk(ids, extendMax))
	if len(chunks) == 0 {
		chunks = [][]string{nil} // tells how long a lease lasts
	}
	for _, some := range chunks {
		reply, err := s.client.extend(ctx, s.queue, some, 0)
		if err != nil {
			var refused *Error
			if errors.As(err, &refused) && slices.Contains([]error{ErrInvalidFrame, ErrForbidden, ErrQueueNotFound}, refused.sentinel) {
				s.end(refused) // it will not be otherwise next time
			}
			return pause
		}
		s.drop(reply.Missing)
		pause = time.Duration(reply.VisibilityMs) * time.Millisecond / beats
	}
	return pause
}

// end ends the subscription with an error its reader sees, and hands back what nobody has read.
func (s *stream) end(err *Error) {
	unread := s.finish(err.during("consume queue " + quoted(s.queue)))
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.unsubscribe(s, unread)
	}
}

// work lets the heart-beat go on after the end of the subscription, until the function it returns is called.
func (s *stream) work() func() {
	set := func(on bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atWork = on
	}
	set(true)
	return func() { set(false) }
}

func (s *stream) isAtWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.atWork && len(s.held) > 0
}

// heldIDs begins a beat.
func (s *stream) heldIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats++
	ids := make([]string, 0, len(s.held))
	for id := range s.held {
		ids = append(ids, id)
	}
	return ids
}

// drop forgets what was not leased here when this beat's question was answered. What was delivered since is.
func (s *stream) drop(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.held[id] < s.beats {
			delete(s.held, id)
		}
	}
}
