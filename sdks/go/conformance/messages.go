package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

const payloadShownMax = 4096

type options struct {
	TLS                bool `json:"tls"`
	CA, Cert, Key      string
	APIKey             *string `json:"api_key"`
	TimeoutMs          int     `json:"timeout_ms"`
	ConnectTimeoutMs   int     `json:"connect_timeout_ms"`
	Batch              string
	LingerMs           float64 `json:"linger_ms"`
	InFlightBytesMax   int     `json:"in_flight_bytes_max"`
	Reconnect          *bool
	PauseMinMs         float64 `json:"reconnect_pause_min_ms"`
	PauseMaxMs         float64 `json:"reconnect_pause_max_ms"`
	KeepAliveMs        int     `json:"keepalive_interval_ms"`
	KeepAliveTimeoutMs int     `json:"keepalive_timeout_ms"`
}

func ms[N int | int64 | float64](n N) time.Duration {
	return time.Duration(float64(n) * float64(time.Millisecond))
}

func (o options) list() ([]fila.Option, error) {
	var opts []fila.Option
	if o.TLS {
		opts = append(opts, fila.WithTLS())
	}
	if o.CA != "" {
		ca, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		opts = append(opts, fila.WithTLSCACert(ca))
	}
	if o.Cert != "" {
		cert, err := os.ReadFile(o.Cert)
		if err != nil {
			return nil, err
		}
		key, err := os.ReadFile(o.Key)
		if err != nil {
			return nil, err
		}
		opts = append(opts, fila.WithTLSClientCert(cert, key))
	}
	if o.APIKey != nil {
		opts = append(opts, fila.WithAPIKey(*o.APIKey))
	}
	if o.TimeoutMs > 0 {
		opts = append(opts, fila.WithCallTimeout(ms(o.TimeoutMs)))
	}
	if o.ConnectTimeoutMs > 0 {
		opts = append(opts, fila.WithConnectTimeout(ms(o.ConnectTimeoutMs)))
	}
	switch o.Batch {
	case "linger":
		opts = append(opts, fila.WithBatchMode(fila.Linger(ms(o.LingerMs))))
	case "off":
		opts = append(opts, fila.WithBatchMode(fila.Disabled()))
	}
	if o.InFlightBytesMax > 0 {
		opts = append(opts, fila.WithInFlightBytes(o.InFlightBytesMax))
	}
	if o.Reconnect != nil && !*o.Reconnect {
		opts = append(opts, fila.WithoutReconnect())
	}
	if o.PauseMinMs > 0 || o.PauseMaxMs > 0 {
		lowest, highest := fila.DefaultReconnectPauseMin, fila.DefaultReconnectPauseMax
		if o.PauseMinMs > 0 {
			lowest = ms(o.PauseMinMs)
		}
		if o.PauseMaxMs > 0 {
			highest = ms(o.PauseMaxMs)
		}
		opts = append(opts, fila.WithReconnectPause(min(lowest, highest), highest))
	}
	if o.KeepAliveMs > 0 || o.KeepAliveTimeoutMs > 0 {
		interval, timeout := fila.DefaultKeepAliveInterval, fila.DefaultKeepAliveTimeout
		if o.KeepAliveMs > 0 {
			interval = ms(o.KeepAliveMs)
		}
		if o.KeepAliveTimeoutMs > 0 {
			timeout = ms(o.KeepAliveTimeoutMs)
		}
		opts = append(opts, fila.WithKeepAlive(interval, timeout))
	}
	return opts, nil
}

func (a *adapter) connect(ctx context.Context, r *request) (object, error) {
	opts, err := r.Options.list()
	if err != nil {
		return nil, err
	}
	opts = append(opts, fila.WithEventHandler(func(e fila.Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch e.Kind {
		case fila.EventConnected, fila.EventDisconnected, fila.EventClosed:
			a.events[r.Client] = append(a.events[r.Client], e.Kind.String())
		}
	}))
	told := &lines{list: []object{}}
	a.mu.Lock()
	a.logs[r.Client] = told
	a.mu.Unlock()
	opts = append(opts, fila.WithLogger(slog.New(told)))
	c, err := fila.DialContext(ctx, r.Address, opts...)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients[r.Client] = c
	return object{}, nil
}

func (m *message) outgoing() (fila.EnqueueMessage, error) {
	payload, err := payloadOf(m.Payload)
	out := fila.EnqueueMessage{
		Queue: m.Queue, Headers: m.Headers, Payload: payload, Delay: ms(m.DelayMs),
		IdempotencyKey: m.IdempotencyKey, Weight: m.Weight, ThrottleKeys: m.ThrottleKeys,
	}
	if m.FairnessKey != nil {
		out.FairnessKey = *m.FairnessKey
	}
	return out, err
}

func payloadOf(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return base64.StdEncoding.DecodeString(v)
	case map[string]any:
		unit, err := base64.StdEncoding.DecodeString(fmt.Sprint(v["repeat"]))
		count, _ := v["count"].(float64)
		return bytes.Repeat(unit, int(count)), err
	}
	return nil, fmt.Errorf("%T is no payload", v)
}

func (r *request) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Trace != "" {
		ctx = fila.ContextWithTraceParent(ctx, r.Trace)
	}
	if r.TimeoutMs > 0 {
		return context.WithTimeout(ctx, ms(r.TimeoutMs))
	}
	return ctx, func() {}
}

func (a *adapter) enqueue(ctx context.Context, c *fila.Client, r *request) (object, error) {
	r.message.Queue = r.Queue
	m, err := r.message.outgoing()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	id, err := c.Enqueue(ctx, m.Queue, m.Headers, m.Payload, fila.WithDelay(m.Delay),
		fila.WithIdempotencyKey(m.IdempotencyKey), fila.WithFairnessKey(m.FairnessKey),
		fila.WithWeight(m.Weight), fila.WithThrottleKeys(m.ThrottleKeys...))
	return object{"message_id": id}, err
}

func (a *adapter) enqueueMany(ctx context.Context, c *fila.Client, r *request) (object, error) {
	messages := make([]fila.EnqueueMessage, len(r.Messages))
	for i := range r.Messages {
		var err error
		if messages[i], err = r.Messages[i].outgoing(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	outcome, err := c.EnqueueMany(ctx, messages)
	var batch *fila.BatchError
	if err != nil && !errors.As(err, &batch) {
		return nil, err
	}
	list := make([]object, len(outcome))
	for i, one := range outcome {
		if one.Err != nil {
			list[i] = object{"error": describe(one.Err)}
		} else {
			list[i] = object{"message_id": one.MessageID}
		}
	}
	return object{"results": list}, nil
}

// consumer keeps what its subscription handed out, until it is settled by the message's methods.
type consumer struct {
	*fila.Consumer
	mu   sync.Mutex
	held map[string]*fila.Message
}

func (a *adapter) consume(ctx context.Context, c *fila.Client, r *request) (object, error) {
	var opts []fila.ConsumeOption
	if r.Prefetch > 0 {
		opts = append(opts, fila.WithPrefetch(r.Prefetch))
	}
	if r.Heartbeat {
		opts = append(opts, fila.WithHeartbeat())
	}
	// An abort concerns subscribing; the subscription lives on after this request.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	found, err := c.Subscribe(life, r.Queue, opts...)
	stop()
	if err != nil {
		end()
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.consumers[r.Consumer] = &consumer{Consumer: found, held: map[string]*fila.Message{}}
	return object{}, nil
}

func (a *adapter) consumer(name string) (*consumer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.consumers[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no consumer %q", name)
}

func (a *adapter) next(ctx context.Context, r *request) (object, error) {
	c, err := a.consumer(r.Consumer)
	if err != nil {
		return nil, err
	}
	waiting, cancel := r.within(ctx)
	defer cancel()
	messages := []object{}
	for len(messages) < max(1, r.Max) {
		m, err := c.Receive(waiting)
		switch {
		case err == nil:
			c.mu.Lock()
			c.held[m.ID] = m
			c.mu.Unlock()
			messages = append(messages, delivered(m))
			continue
		case ctx.Err() != nil:
			return nil, err
		case waiting.Err() != nil:
			return object{"messages": messages, "end": false}, nil
		case errors.Is(err, fila.ErrClosed):
			return object{"messages": messages, "end": true}, nil
		case len(messages) > 0:
			return object{"messages": messages, "end": false}, nil
		}
		return nil, err
	}
	return object{"messages": messages, "end": false}, nil
}

func delivered(m *fila.Message) object {
	sum := sha256.Sum256(m.Payload)
	keys := m.ThrottleKeys
	if keys == nil {
		keys = []string{}
	}
	headers := m.Headers
	if headers == nil {
		headers = map[string]string{}
	}
	shown := object{
		"id": m.ID, "queue": m.Queue, "headers": headers, "payload": nil, "size": len(m.Payload),
		"sha256": hex.EncodeToString(sum[:]), "fairness_key": m.FairnessKey, "weight": m.Weight,
		"throttle_keys": keys, "attempt_count": m.AttemptCount,
		"enqueued_at_ms": m.EnqueuedAt.UnixMilli(), "leased_at_ms": m.LeasedAt.UnixMilli(), "traceparent": nil,
	}
	if trace := m.TraceParent(); trace != "" {
		shown["traceparent"] = trace
	}
	if len(m.Payload) <= payloadShownMax {
		shown["payload"] = base64.StdEncoding.EncodeToString(m.Payload)
	}
	return shown
}

// settle acknowledges, rejects or releases: by the messages' methods or by the client's.
func (a *adapter) settle(ctx context.Context, r *request) (object, error) {
	ctx, cancel := r.within(ctx)
	defer cancel()
	if r.Consumer != "" {
		return a.settleMessages(ctx, r)
	}
	c, err := a.client(r.Client)
	if err != nil {
		return nil, err
	}
	if len(r.IDs) == 1 {
		switch r.Op {
		case "ack":
			err = c.Ack(ctx, r.Queue, r.IDs[0])
		case "nack":
			err = c.Nack(ctx, r.Queue, r.IDs[0], r.Error)
		case "extend":
			err = c.Extend(ctx, r.Queue, r.IDs[0], r.visibility())
		default:
			err = c.Release(ctx, r.Queue, r.IDs[0])
		}
	} else {
		switch r.Op {
		case "ack":
			err = c.AckMany(ctx, r.Queue, r.IDs)
		case "nack":
			err = c.NackMany(ctx, r.Queue, r.IDs, r.Error)
		case "extend":
			err = c.ExtendMany(ctx, r.Queue, r.IDs, r.visibility())
		default:
			err = c.ReleaseMany(ctx, r.Queue, r.IDs)
		}
	}
	return results(len(r.IDs), err), nil
}

func (r *request) visibility() time.Duration { return time.Duration(r.ExtendMs) * time.Millisecond }

func (a *adapter) settleMessages(ctx context.Context, r *request) (object, error) {
	c, err := a.consumer(r.Consumer)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(r.IDs))
	var settling sync.WaitGroup
	for i, id := range r.IDs {
		c.mu.Lock()
		m := c.held[id]
		if r.Op != "extend" {
			delete(c.held, id)
		}
		c.mu.Unlock()
		if m == nil {
			return nil, fmt.Errorf("consumer %q does not hold %q", r.Consumer, id)
		}
		settling.Add(1)
		go func() {
			defer settling.Done()
			switch r.Op {
			case "ack":
				errs[i] = m.Ack(ctx)
			case "nack":
				errs[i] = m.Nack(ctx, r.Error)
			case "extend":
				errs[i] = m.Extend(ctx, r.visibility())
			default:
				errs[i] = m.Release(ctx)
			}
		}()
	}
	settling.Wait()
	return results(len(r.IDs), &fila.BatchError{Errs: errs}), nil
}
