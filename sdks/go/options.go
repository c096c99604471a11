package fila

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Defaults of the options.
const (
	DefaultCallTimeout       = 30 * time.Second
	DefaultConnectTimeout    = 10 * time.Second
	DefaultLinger            = 5 * time.Millisecond
	DefaultBatchMessages     = 1000
	DefaultBatchBytes        = 1 << 20
	DefaultInFlightBytes     = 64 << 20
	DefaultReconnectPauseMin = 50 * time.Millisecond
	DefaultReconnectPauseMax = 5 * time.Second
	DefaultKeepAliveInterval = 15 * time.Second
	DefaultKeepAliveTimeout  = 10 * time.Second
	DefaultPrefetch          = 256
)

// Option sets one thing about a client, see [Dial].
type Option func(*config)

type config struct {
	apiKey             *string
	tls                *tls.Config // nil: plaintext
	callTimeout        time.Duration
	connectTimeout     time.Duration
	batch              BatchMode
	batchMessages      int
	batchBytes         int
	inFlightBytes      int
	reconnect          bool
	pauseMin, pauseMax time.Duration
	keepAlive          time.Duration
	keepAliveTimeout   time.Duration
	logger             *slog.Logger
	onEvent            func(Event)
	tracer             Tracer
	dial               func(ctx context.Context, network, addr string) (net.Conn, error)
	err                error // the first option that cannot be
}

// BatchMode says how calls made at the same time share frames. Make one with [Auto], [Linger] or
// [Disabled].
type BatchMode struct {
	kind   batchKind
	linger time.Duration
}

type batchKind uint8

const (
	batchAuto batchKind = iota
	batchLinger
	batchDisabled
)

// Auto sends a lone call at once. While an answer is on its way, further calls are collected and
// leave together when it comes, or when there are a hundred of them. No call waits for company.
// This is the default.
func Auto() BatchMode { return BatchMode{kind: batchAuto} }

// Linger collects enqueues for the given time, or until a batch is full: fewer, larger frames, and
// that much more latency. 0 means [DefaultLinger]. Acks never linger.
func Linger(d time.Duration) BatchMode {
	if d == 0 {
		d = DefaultLinger
	}
	return BatchMode{kind: batchLinger, linger: d}
}

// Disabled sends one frame for every call.
func Disabled() BatchMode { return BatchMode{kind: batchDisabled} }

// WithAPIKey sends a key with the handshake.
func WithAPIKey(key string) Option {
	return func(c *config) {
		if err := wire.CheckString("API key", key); err != nil {
			c.fail(err)
		}
		c.apiKey = &key
	}
}

// WithTLS encrypts the connection and verifies the broker against the system's certificates.
func WithTLS() Option {
	return func(c *config) { c.withTLS() }
}

// WithTLSConfig encrypts the connection with a configuration of your own. The client sets the
// protocol's name (ALPN), and the server's name where it is empty.
func WithTLSConfig(cfg *tls.Config) Option {
	return func(c *config) {
		if cfg == nil {
			c.fail(errors.New("the TLS configuration is nil"))
			return
		}
		c.tls = cfg.Clone()
	}
}

// WithTLSCACert encrypts the connection and trusts the certificates in this PEM text alone.
func WithTLSCACert(pem []byte) Option {
	return func(c *config) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			c.fail(errors.New("the CA certificate is not PEM text with a certificate in it"))
		}
		c.withTLS().RootCAs = pool
	}
}

// WithTLSClientCert encrypts the connection and shows this certificate, both parts as PEM text.
func WithTLSClientCert(certPEM, keyPEM []byte) Option {
	return func(c *config) {
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			c.fail(fmt.Errorf("the client certificate cannot be used: %w", err))
		}
		c.withTLS().Certificates = []tls.Certificate{pair}
	}
}

// WithCallTimeout bounds every call whose context has no deadline. 0 waits for ever.
func WithCallTimeout(d time.Duration) Option {
	return func(c *config) { c.callTimeout = c.atLeast("call timeout", d, 0) }
}

// WithConnectTimeout bounds opening a connection, handshake included.
func WithConnectTimeout(d time.Duration) Option {
	return func(c *config) { c.connectTimeout = c.atLeast("connect timeout", d, 1) }
}

// WithBatchMode says how calls made at the same time share frames.
func WithBatchMode(mode BatchMode) Option {
	return func(c *config) {
		c.atLeast("linger", mode.linger, 0)
		c.batch = mode
	}
}

// WithBatchLimits bounds one frame. A message larger than the bytes goes alone.
func WithBatchLimits(messages, bytes int) Option {
	return func(c *config) {
		if messages < 1 || bytes < 1 {
			c.fail(fmt.Errorf("batch limits must be positive, not %d messages and %d bytes", messages, bytes))
		}
		c.batchMessages, c.batchBytes = messages, bytes
	}
}

// WithInFlightBytes bounds what has been enqueued and not been answered; further enqueues wait.
// A message larger than the bound goes alone.
func WithInFlightBytes(n int) Option {
	return func(c *config) {
		if n < 1 {
			c.fail(fmt.Errorf("bytes in flight must be positive, not %d", n))
		}
		c.inFlightBytes = n
	}
}

// WithReconnectPause sets the pauses between attempts to reconnect: they double from the first to
// the second, each shortened at random by up to half.
func WithReconnectPause(lowest, highest time.Duration) Option {
	return func(c *config) {
		c.pauseMin = c.atLeast("reconnect pause", lowest, 1)
		c.pauseMax = max(lowest, highest)
	}
}

// WithoutReconnect ends the client when its connection is lost.
func WithoutReconnect() Option {
	return func(c *config) { c.reconnect = false }
}

// WithKeepAlive sends a ping after this much silence and gives the connection up when nothing comes
// back within the timeout.
func WithKeepAlive(interval, timeout time.Duration) Option {
	return func(c *config) {
		c.keepAlive = c.atLeast("keep-alive interval", interval, 1)
		c.keepAliveTimeout = c.atLeast("keep-alive timeout", timeout, 1)
	}
}

// WithLogger tells what happens to the connection: lost and found again at Info and Warn, details at
// Debug. Payloads, header values and keys are never logged. Without it the client is silent.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) {
		if logger != nil {
			c.logger = logger
		}
	}
}

// WithEventHandler calls f with every connection event, one after the other, on a goroutine of its
// own. A slow handler delays only later events.
func WithEventHandler(f func(Event)) Option {
	return func(c *config) { c.onEvent = f }
}

// WithTracer makes spans of enqueues and handled messages; the module sdks/go/otel has one for
// OpenTelemetry.
func WithTracer(tracer Tracer) Option {
	return func(c *config) { c.tracer = tracer }
}

// WithDialer opens TCP connections in another manner, for example through a proxy. TLS, if asked
// for, is spoken over what it returns.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(c *config) {
		if dial != nil {
			c.dial = dial
		}
	}
}

func newConfig(opts []Option) config {
	dialer := net.Dialer{KeepAlive: -1} // FIBP has pings of its own
	c := config{
		callTimeout:      DefaultCallTimeout,
		connectTimeout:   DefaultConnectTimeout,
		batch:            Auto(),
		batchMessages:    DefaultBatchMessages,
		batchBytes:       DefaultBatchBytes,
		inFlightBytes:    DefaultInFlightBytes,
		reconnect:        true,
		pauseMin:         DefaultReconnectPauseMin,
		pauseMax:         DefaultReconnectPauseMax,
		keepAlive:        DefaultKeepAliveInterval,
		keepAliveTimeout: DefaultKeepAliveTimeout,
		logger:           slog.New(silence{}),
		dial:             dialer.DialContext,
	}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// pauseAfter doubles the shortest pause with every attempt, up to the longest.
func (c *config) pauseAfter(attempts int) time.Duration {
	pause := c.pauseMin
	for range attempts {
		if pause >= c.pauseMax {
			break
		}
		pause *= 2
	}
	return min(pause, c.pauseMax)
}

func (c *config) withTLS() *tls.Config {
	if c.tls == nil {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c.tls
}

func (c *config) atLeast(what string, d, least time.Duration) time.Duration {
	if d < least {
		c.fail(fmt.Errorf("%s must be positive, not %v", what, d))
	}
	return d
}

func (c *config) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// silence is a log handler that drops everything.
type silence struct{}

func (silence) Enabled(context.Context, slog.Level) bool  { return false }
func (silence) Handle(context.Context, slog.Record) error { return nil }
func (s silence) WithAttrs([]slog.Attr) slog.Handler      { return s }
func (s silence) WithGroup(string) slog.Handler           { return s }
