package fila

import (
	"container/list"
	"context"
	"sync"
)

// gate bounds the bytes under way without an answer. Who comes first is let in first; what is larger
// than the bound is let in alone.
type gate struct {
	mu      sync.Mutex
	limit   int
	used    int
	waiting list.List // of *waiter
}

type waiter struct {
	bytes int
	admit chan struct{}
}

func (g *gate) enter(ctx context.Context, bytes int) error {
	g.mu.Lock()
	if g.waiting.Len() == 0 && g.fits(bytes) {
		g.used += bytes
		g.mu.Unlock()
		return nil
	}
	w := &waiter{bytes, make(chan struct{})}
	place := g.waiting.PushBack(w)
	g.mu.Unlock()
	select {
	case <-w.admit:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.admit: // admitted at the same moment
		g.used -= bytes
	default:
		g.waiting.Remove(place)
	}
	g.admit()
	return ctx.Err()
}

func (g *gate) leave(bytes int) {
	if bytes == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= bytes
	g.admit()
}

func (g *gate) admit() {
	for first := g.waiting.Front(); first != nil; first = g.waiting.Front() {
		w := first.Value.(*waiter)
		if !g.fits(w.bytes) {
			return
		}
		g.used += w.bytes
		g.waiting.Remove(first)
		close(w.admit)
	}
}

func (g *gate) fits(bytes int) bool { return g.used == 0 || g.used+bytes <= g.limit }
