package fila

import (
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// write sends what is due, many frames in one write, until the connection ends.
func (l *link) write(conn *connection) {
	var spare []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.conn == conn && len(l.out) == 0 && !l.anyDue() {
			l.armLinger()
			l.wake.Wait()
		}
		if l.conn != conn {
			return
		}
		l.compose(conn)
		buf := l.out
		l.out = spare[:0]
		l.mu.Unlock()
		err := conn.write(buf)
		if err != nil {
			conn.drop(clientError("", ErrConnectionLost, err, "writing to %s: %v", l.addr, err))
		}
		spare = buf
		if cap(spare) > 4*composeBytes {
			spare = nil // one large message must not cost its memory for ever
		}
		l.mu.Lock()
		if err != nil {
			return
		}
	}
}

func (l *link) anyDue() bool {
	for k := range l.collectors {
		if l.collectors[k].due() {
			return true
		}
	}
	return false
}

func (l *link) armLinger() {
	var soonest time.Duration
	for k := range l.collectors {
		if wait := l.collectors[k].wait(); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	if soonest > 0 {
		l.linger.Reset(soonest)
	}
}

// compose makes frames of what is due, up to about a MiB of them.
func (l *link) compose(conn *connection) {
	for k := range l.collectors {
		for len(l.out) < composeBytes && l.collectors[k].due() {
			l.sendItems(kind(k), l.collectors[k].take(), conn.frameMax)
		}
	}
}

// sendItems writes one frame. Messages of callers that have gone are left out.
func (l *link) sendItems(k kind, items []item, frameMax int) {
	id := l.nextID()
	start := len(l.out)
	b := wire.BeginFrame(l.out, kindOpcodes[k], id)
	b = append(b, 0, 0, 0, 0)
	sent := items[:0:0]
	freed := 0
	for n, i := range items {
		if i.gone() {
			if len(sent) == 0 && cap(sent) == 0 {
				sent = append(make([]item, 0, len(items)), items[:n]...)
			}
			freed += i.size
			continue
		}
		if cap(sent) > 0 {
			sent = append(sent, i)
		}
		b = i.appendTo(b)
	}
	if cap(sent) > 0 {
		items = sent
	}
	if freed > 0 && k.enqueues() {
		l.client.gate.leave(freed)
	}
	if len(items) == 0 {
		return
	}
	n := uint32(len(items))
	copy(b[start+10:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	l.out = wire.EndFrame(b, start, frameMax)
	l.pending[id] = &frame{k, items}
	l.collectors[k].inFlight++
}

func (l *link) send(opcode uint8, id uint32, body []byte) {
	l.out = wire.AppendFrame(l.out, opcode, id, body, l.conn.frameMax)
}

func (l *link) sendRequest(r *request) {
	id := l.nextID()
	l.pending[id] = r
	l.send(r.opcode, id, r.body)
}

func (l *link) sendConsume(s *stream) {
	s.id = l.nextID()
	l.pending[s.id] = s
	body := wire.AppendText(nil, s.queue)
	body = append(body, byte(s.prefetch>>24), byte(s.prefetch>>16), byte(s.prefetch>>8), byte(s.prefetch))
	l.send(wire.OpConsume, s.id, body)
}

// keepAlive pings a silent broker and gives the connection up when nothing comes back.
func (l *link) keepAlive(conn *connection, ended <-chan struct{}) {
	cfg := &l.client.cfg
	timer := time.NewTimer(cfg.keepAlive)
	defer timer.Stop()
	var pinged time.Time
	var moved int64
	for {
		select {
		case <-ended:
			return
		case <-timer.C:
		}
		silent := conn.silence()
		if silent < cfg.keepAlive {
			pinged = time.Time{}
			timer.Reset(cfg.keepAlive - silent)
			continue
		}
		if pinged.IsZero() {
			l.ping(conn)
			pinged, moved = time.Now(), conn.moved.Load()
		} else if now := conn.moved.Load(); now != moved {
			// A large message on a slow line: our ping stands behind it, but bytes are moving.
			pinged, moved = time.Now(), now
		} else if time.Since(pinged) >= cfg.keepAliveTimeout {
			conn.drop(clientError("", ErrConnectionLost, nil, "%s was silent for %s", l.addr, silent.Round(time.Millisecond)))
			return
		}
		timer.Reset(max(time.Millisecond, min(cfg.keepAliveTimeout-time.Since(pinged), cfg.keepAliveTimeout/4)))
	}
}

func (l *link) ping(conn *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn {
		l.send(wire.OpPing, l.nextID(), nil)
		l.wake.Signal()
	}
}
