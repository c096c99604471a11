package fila

import (
	"sync"
	"time"
)

// EventKind says what happened to a connection.
type EventKind uint8

// The kinds of connection events.
const (
	EventConnected    EventKind = iota + 1 // a handshake was accepted
	EventDisconnected                      // a connection was lost; Err says why
	EventReconnecting                      // the next attempt comes after Pause
	EventRedirected                        // another node leads a queue; Addr is its address
	EventClosed                            // the client has ended; Err is nil if it was closed
)

// String is the kind in lower case.
func (k EventKind) String() string {
	switch k {
	case EventConnected:
		return "connected"
	case EventDisconnected:
		return "disconnected"
	case EventReconnecting:
		return "reconnecting"
	case EventRedirected:
		return "redirected"
	case EventClosed:
		return "closed"
	}
	return "unknown"
}

// Event is something that happened to a client's connections.
type Event struct {
	Kind EventKind
	// Addr is the node concerned.
	Addr string
	// Err is why a connection was lost, or could not be opened before a pause.
	Err error
	// Pause is how long a reconnecting client waits before its next attempt.
	Pause time.Duration
}

// announcer hands events to the user's function, in order, on a goroutine that lives only while
// there are some.
type announcer struct {
	call    func(Event)
	mu      sync.Mutex
	waiting []Event
	idle    chan struct{} // closed when all events were handed over; nil when there were none
	busy    bool
}

func (a *announcer) announce(e Event) {
	if a.call == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, e)
	if !a.busy {
		a.busy = true
		a.idle = make(chan struct{})
		go a.run()
	}
}

func (a *announcer) run() {
	for {
		a.mu.Lock()
		events := a.waiting
		a.waiting = nil
		if len(events) == 0 {
			a.busy = false
			close(a.idle)
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		for _, e := range events {
			a.call(e)
		}
	}
}

// flush waits until the events so far were handed over, for a while: a handler may itself be the one
// who closes the client.
func (a *announcer) flush(patience time.Duration) {
	a.mu.Lock()
	idle := a.idle
	a.mu.Unlock()
	if idle == nil {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
