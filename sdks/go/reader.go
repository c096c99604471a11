package fila

import (
	"errors"
	"io"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// read takes frames until the connection ends and says why it did. It never waits for anybody: a
// consumer that does not read has its messages in its stream's buffer.
func (l *link) read(conn *connection) *Error {
	for {
		m, err := conn.frames.Next()
		var broken *wire.FrameError
		switch {
		case err == nil:
		case errors.As(err, &broken) && !broken.Fatal:
			l.unreadable(broken.RequestID, protocolError("%s sent a frame that cannot be accepted: %v", l.addr, err))
			continue
		case errors.As(err, &broken):
			return protocolError("%s sent bytes that are no frame: %v", l.addr, err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return clientError("", ErrConnectionLost, err, "%s closed the connection", l.addr)
		default:
			return clientError("", ErrConnectionLost, err, "reading from %s: %v", l.addr, err)
		}
		if reason := l.receive(m); reason != nil {
			return reason
		}
	}
}

func (l *link) receive(m wire.Message) *Error {
	if verdict := wire.ClientReceives(wire.Open, m.Opcode); verdict.Refused {
		return nil // an operation of a later version: not for us
	}
	var err error
	switch m.Opcode {
	case wire.OpDelivery:
		err = l.deliver(m)
	case wire.OpPing:
		l.mu.Lock()
		if l.conn != nil {
			l.send(wire.OpPong, m.RequestID, nil)
			l.wake.Signal()
		}
		l.mu.Unlock()
	case wire.OpPong:
	case wire.OpDisconnect:
		return clientError("", ErrConnectionLost, nil, "%s said goodbye", l.addr)
	case wire.OpError:
		var refusal *Error
		if refusal, err = decodeError(m.Body); err == nil {
			l.refused(m.RequestID, refusal)
		}
	default:
		err = l.reply(m)
	}
	if err != nil {
		return protocolError("%s sent a %s that does not parse: %v", l.addr, wire.Name(m.Opcode), err)
	}
	return nil
}

// deliver hands messages to their stream. What a closed consumer is still sent goes back at once.
func (l *link) deliver(m wire.Message) error {
	l.mu.Lock()
	p := l.pending[m.RequestID]
	l.mu.Unlock()
	switch p := p.(type) {
	case *stream:
		messages, err := decodeDelivery(m.Body, p, l)
		if err != nil {
			return err
		}
		if !p.push(messages) {
			l.releaseLate(m.RequestID, messages) // it was closed meanwhile
		}
	case *leaving:
		messages, err := decodeDelivery(m.Body, p.stream, l)
		if err != nil {
			return err
		}
		l.releaseLate(m.RequestID, messages)
	}
	return nil
}

func (l *link) reply(m wire.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending[m.RequestID]
	switch p := p.(type) {
	case *frame:
		if err := expect(kindOpcodes[p.kind], m.Opcode); err != nil {
			return err
		}
		if err := l.answer(p.kind, p.items, m.Body); err != nil {
			return err
		}
		delete(l.pending, m.RequestID)
		l.landed(p.kind, sizeOf(p.items))
	case *request:
		if err := expect(p.opcode, m.Opcode); err != nil {
			return err
		}
		if err := wire.Decode(append([]byte(nil), m.Body...), p.reply); err != nil {
			return err
		}
		delete(l.pending, m.RequestID)
		p.done <- nil
	case *leaving:
		// What was delivered before the broker heard of the cancel has come by now.
		delete(l.pending, m.RequestID)
		delete(l.pending, p.id)
	case *stream:
		if err := expect(wire.OpConsume, m.Opcode); err != nil {
			return err
		}
		p.subscribed()
	}
	return nil
}

func expect(asked, answered uint8) error {
	if wire.ReplyTo(asked) != answered {
		return errors.New(wire.Name(asked) + " is not answered with it")
	}
	return nil
}

// refused: the broker answered with an Error.
func (l *link) refused(id uint32, err *Error) {
	l.mu.Lock()
	p := l.pending[id]
	delete(l.pending, id)
	var after func()
	switch p := p.(type) {
	case nil:
		if id == 0 { // an answer to none of our requests: why the connection is about to end
			l.complaint = err
		}
	case *frame:
		after = l.refusedFrame(p, err)
	case *request:
		after = l.refusedRequest(p, err)
	case *leaving:
		delete(l.pending, p.id)
	case *stream:
		after = l.refusedStream(p, err)
	}
	l.mu.Unlock()
	if after != nil {
		after() // without the lock: another link is concerned
	}
}

// unreadable: the broker answered, but what it said is lost. That is no refusal: what was asked may
// have been carried out, and a stream is still open over there.
func (l *link) unreadable(id uint32, err *Error) {
	err.sent = true
	l.mu.Lock()
	if _, streaming := l.pending[id].(*stream); streaming {
		l.send(wire.OpCancelConsume, id, nil)
		l.wake.Signal()
	}
	l.mu.Unlock()
	l.refused(id, err)
}

func (l *link) refusedFrame(f *frame, err *Error) func() {
	several := len(f.items) > 1
	oneQueue := true
	for _, i := range f.items[1:] {
		oneQueue = oneQueue && i.queue() == f.items[0].queue()
	}
	separable := !err.sent && (err.Code == CodeForbidden || err.Code == CodeInvalidFrame)
	switch {
	case several && (separable || (err.Code == CodeNotLeader && !oneQueue)):
		// The whole frame was refused and nothing of it applied: one caller's mistake must not cost
		// the others who shared it.
		l.collectors[f.kind].inFlight--
		for _, part := range split(f.items) {
			l.sendItems(f.kind, part, l.conn.frameMax)
		}
		l.wake.Signal()
		return nil
	case err.Code == CodeNotLeader && err.LeaderAddr() != "" && f.items[0].hops < hopsMax:
		l.landed(f.kind, 0)
		for n := range f.items {
			f.items[n].hops++
		}
		return func() {
			if next := l.client.redirect(l, f.items[0].queue(), err.LeaderAddr()); next != nil {
				l.client.submit(next, f.kind, f.items)
			} else {
				l.client.failItems(f.kind, f.items, err)
			}
		}
	}
	for _, i := range f.items {
		i.fail(err)
	}
	l.landed(f.kind, sizeOf(f.items))
	return nil
}

func (l *link) refusedRequest(r *request, err *Error) func() {
	if err.Code == CodeNotLeader && err.LeaderAddr() != "" && r.hops < hopsMax {
		r.hops++
		return func() {
			next := l.client.redirect(l, r.queue, err.LeaderAddr())
			if next == nil || !(next.ask(r) || l.client.seed.ask(r)) {
				r.done <- err.during(r.op)
			}
		}
	}
	r.done <- err.during(r.op)
	return nil
}

func (l *link) refusedStream(s *stream, err *Error) func() {
	s.id = 0
	if err.Code == CodeNotLeader && err.LeaderAddr() != "" && s.hop() {
		delete(l.streams, s)
		s.disconnected()
		return func() {
			next := l.client.redirect(l, s.queue, err.LeaderAddr())
			if next == nil || !(next.subscribe(s) || l.client.seed.subscribe(s)) {
				s.fail(err)
			}
		}
	}
	if s.wasOpen() && err.transient() {
		// No verdict on the consumer: the broker may accept it again in a moment.
		s.disconnected()
		return func() { s.later(resubscribe) }
	}
	delete(l.streams, s)
	return func() { s.fail(err) }
}

func sizeOf(items []item) int {
	n := 0
	for i := range items {
		n += items[i].size
	}
	return n
}
