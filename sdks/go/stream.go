package fila

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// stream is a subscription: what was delivered and not yet read. It outlives connections: a link
// subscribes it again after a reconnect, and another link takes it when another node leads.
//
// A link's lock may be held when a stream's is taken, never the other way round.
type stream struct {
	client   *Client
	queue    string
	prefetch uint32
	id       uint32        // the Consume's request id on the present connection; the link's lock guards it
	late     []*Message    // came after the end and before the cancel; the link's lock guards it
	opened   chan struct{} // closed at the first ConsumeOk or the end
	over     chan struct{} // closed at the end
	notify   chan struct{} // of capacity 1: there is something to read
	revoked  chan struct{} // of capacity 1: what the channel form holds is settled

	mu     sync.Mutex
	link   *link
	buffer []*Message
	head   int
	again  map[string]*Message // delivered before and not yet read, by id
	held   map[string]uint64   // with a heart-beat: ids of what is not settled, each with the beat before its delivery
	beats  uint64
	atWork bool     // a loop or handlers finish what they have when the subscription ends
	hand   *Message // what the channel form holds out and nobody has taken
	open   bool     // it was accepted once
	ended  bool
	err    *Error // why it ended; nil if its user closed it
	hops   int    // to other nodes since it was last accepted
	names  map[string]string
}

// leaving is a stream that was closed while deliveries may be on their way to it.
type leaving struct {
	stream *stream
	id     uint32 // its Consume's request id
}

func newStream(c *Client, queue string, prefetch uint32) *stream {
	return &stream{
		client: c, queue: queue, prefetch: prefetch,
		opened: make(chan struct{}), over: make(chan struct{}), notify: make(chan struct{}, 1),
		revoked: make(chan struct{}, 1), again: map[string]*Message{}, names: map[string]string{},
	}
}

// next waits for a message. After the end it says why: ErrClosed if the user closed it.
func (s *stream) next(ctx context.Context) (*Message, error) { return s.wait(ctx, false) }

func (s *stream) wait(ctx context.Context, inHand bool) (*Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			s.signal() // it may have been told of a message that is another reader's now
			return nil, err
		}
		if m, over := s.pop(inHand); m != nil {
			return m, nil
		} else if over {
			return nil, s.why()
		}
		select {
		case <-s.notify:
		case <-s.over:
		case <-ctx.Done():
		}
	}
}

func (s *stream) pop(inHand bool) (m *Message, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.buffer) {
		return nil, s.ended
	}
	m = s.buffer[s.head]
	s.buffer[s.head] = nil
	s.head++
	if s.again[m.ID] == m {
		delete(s.again, m.ID)
	}
	if inHand {
		s.hand = m
	}
	if s.head == len(s.buffer) {
		s.buffer, s.head = s.buffer[:0], 0
	} else {
		s.signal() // for another reader
	}
	return m, false
}

// push takes deliveries; false if the stream has ended.
func (s *stream) push(messages []*Message) bool {
	beyond, ok := s.take(messages)
	if beyond > 0 {
		s.client.cfg.logger.Debug("fila: leases ran out unread", "queue", s.queue, "messages", beyond)
	}
	return ok
}

func (s *stream) take(messages []*Message) (beyond int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, false
	}
	if s.head > 0 {
		n := copy(s.buffer, s.buffer[s.head:])
		clear(s.buffer[n:])
		s.buffer, s.head = s.buffer[:n], 0
	}
	s.buffer = append(s.buffer, messages...)
	for _, m := range messages {
		if m.AttemptCount > 0 {
			s.again[m.ID] = m
		}
		if s.held != nil {
			s.held[m.ID] = s.beats
		}
	}
	// The broker sends more than the credit only when leases ran out, and the oldest unread messages
	// are those: they belong to somebody else by now.
	if beyond = max(0, len(s.buffer)-int(s.prefetch)); beyond > 0 {
		for _, m := range s.buffer[:beyond] {
			if s.again[m.ID] == m {
				delete(s.again, m.ID)
			}
		}
		clear(s.buffer[:beyond])
		s.head = beyond
	}
	s.signal()
	return beyond, true
}

// settled: the broker has settled these. One whose lease had run out before may have been delivered a
// second time and lie here unread: that copy is nobody's now, and goes before its caller hears.
func (s *stream) settled(items []item, results []wire.CodeItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.hand != nil && s.hand.AttemptCount > 0
	if len(s.again) == 0 && !held && s.held == nil {
		return
	}
	for n, r := range results {
		ref := &items[n].call.refs[items[n].index]
		if r.Code != wire.CodeOk || ref.queue != s.queue {
			continue
		}
		delete(s.held, ref.id)
		if held && s.hand.ID == ref.id {
			held = false
			s.revoke()
		}
		if _, unread := s.again[ref.id]; unread {
			delete(s.again, ref.id)
			kept := slices.DeleteFunc(s.buffer[s.head:], func(m *Message) bool { return m.ID == ref.id })
			s.buffer = s.buffer[:s.head+len(kept)]
		}
	}
}

// revoke takes back what the channel form holds out. The lock is held.
func (s *stream) revoke() {
	s.hand = nil
	s.revoked <- struct{}{} // nobody else sends, and the channel form is waiting
}

// letGo: the channel form has handed over what it held, or gives it back. False if it was settled
// meanwhile.
func (s *stream) letGo() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hand == nil {
		<-s.revoked
		return false
	}
	s.hand = nil
	return true
}

func (s *stream) signal() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// subscribed: the broker accepted the Consume.
func (s *stream) subscribed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hops = 0
	if !s.open && !s.ended {
		s.open = true
		close(s.opened)
	}
}

// disconnected: what was delivered over the old connection cannot be settled over a new one that
// consumes the same queue, so it waits for its redelivery.
func (s *stream) disconnected() {
	s.id, s.late = 0, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer, s.head = nil, 0
	clear(s.again)
	clear(s.held)
	if s.hand != nil {
		s.revoke()
	}
}

// joins makes l the stream's link; false if it has ended meanwhile.
func (s *stream) joins(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = l
	return !s.ended
}

func (s *stream) wasOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *stream) hop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hops++
	return s.hops <= hopsMax
}

func (s *stream) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return clientError("consume", ErrClosed, nil, "the consumer of queue %q is closed", s.queue)
}

// fail ends the stream with an error its reader sees. The client's own close is not one.
func (s *stream) fail(err *Error) {
	if err.sentinel == ErrClosed {
		s.finish(nil)
	} else {
		s.finish(err.during("consume queue " + quoted(s.queue)))
	}
}

// finish ends the stream and returns what nobody has read.
func (s *stream) finish(err *Error) []*Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	s.ended, s.err = true, err
	if !s.open {
		close(s.opened)
	}
	close(s.over)
	s.client.left(s)
	unread := s.buffer[s.head:]
	s.buffer, s.head = nil, 0
	clear(s.again)
	for _, m := range unread {
		delete(s.held, m.ID)
	}
	return unread
}

// close ends the subscription and hands back what nobody has read.
func (s *stream) close() {
	unread := s.finish(nil)
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.unsubscribe(s, unread)
	}
}

// later subscribes again after a pause, unless a new connection has done so before.
func (s *stream) later(pause time.Duration) {
	time.AfterFunc(shortened(pause), func() {
		s.mu.Lock()
		l := s.link
		s.mu.Unlock()
		l.resubscribe(s)
	})
}

// The link's part.

// subscribe takes a stream in; false if the link has ended.
func (l *link) subscribe(s *stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	if s.joins(l) {
		l.streams[s] = struct{}{}
		if l.conn != nil {
			l.sendConsume(s)
			l.wake.Signal()
		}
	}
	return true
}

func (l *link) resubscribe(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.streams[s]; here && l.conn != nil && s.id == 0 {
		l.sendConsume(s)
		l.wake.Signal()
	}
}

func (l *link) unsubscribe(s *stream, unread []*Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, here := l.streams[s]; !here {
		return
	}
	delete(l.streams, s)
	late := s.late
	s.late = nil
	if s.id == 0 || l.conn == nil {
		return
	}
	l.send(wire.OpCancelConsume, s.id, nil)
	gone := &leaving{s, s.id}
	l.pending[s.id] = gone
	s.id = 0
	l.release(gone, append(unread, late...))
}

// release hands back what a closed consumer was sent and nobody read. It is sent also with nothing
// in it: its answer tells that no delivery is on its way any more.
func (l *link) release(gone *leaving, unread []*Message) {
	body := wire.Release{Messages: make([]wire.ReleaseItem, 0, len(unread))}
	for _, m := range unread {
		body.Messages = append(body.Messages, wire.ReleaseItem{Queue: m.Queue, ID: m.ID})
	}
	encoded, err := wire.Encode(nil, &body)
	if err != nil {
		return // names and ids came from the broker
	}
	id := l.nextID()
	l.pending[id] = gone
	l.send(wire.OpRelease, id, encoded)
	l.wake.Signal()
}

func (l *link) releaseLate(id uint32, messages []*Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch gone := l.pending[id].(type) {
	case *leaving:
		if l.conn != nil {
			l.release(gone, messages)
		}
	case *stream: // whoever closes it has still to cancel it
		gone.late = append(gone.late, messages...)
	}
}
