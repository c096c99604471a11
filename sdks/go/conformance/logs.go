package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// lines is a log handler that keeps what it is told.
type lines struct {
	mu   sync.Mutex
	list []object
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *lines) WithGroup(string) slog.Handler { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, object{"level": strings.ToLower(r.Level.String()), "text": text})
	return nil
}

func (l *lines) told() []object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]object{}, l.list...)
}
