package fila

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

const (
	frameBytesMin = 1024      // a broker that announces less could not be talked to
	writeBytes    = 256 << 10 // one write; progress is seen between two of them
)

// connection is one TCP connection after its handshake. It moves bytes and knows when the last one
// moved; what they mean is the link's part.
type connection struct {
	net      net.Conn
	frames   *wire.FrameReader
	frameMax int
	nodeID   uint64
	opened   time.Time
	heard    atomic.Int64 // when bytes last came in, in ns since opened
	moved    atomic.Int64 // bytes written so far

	mu     sync.Mutex
	reason *Error // why it was closed, the first cause
}

// connect opens a connection and shakes hands, within the connect timeout.
func connect(ctx context.Context, addr string, cfg *config) (*connection, *Error) {
	try := attempt{addr: addr, cfg: cfg, limit: "within " + cfg.connectTimeout.String() + "; is it a Fila broker?"}
	if own, has := ctx.Deadline(); has && time.Until(own) < cfg.connectTimeout {
		try.limit = "before the deadline"
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.connectTimeout)
	defer cancel()
	try.ctx = ctx
	raw, err := cfg.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, try.failed(err)
	}
	if cfg.tls != nil {
		secured := tls.Client(raw, tlsFor(addr, cfg.tls))
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, try.failed(err)
		}
		raw = secured
	}
	c := &connection{net: raw, opened: time.Now()}
	c.frames = wire.NewFrameReader(c, wire.DefaultLimits)
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	failure := c.shakeHands(try)
	if !stop() && failure == nil {
		failure = try.failed(ctx.Err())
	}
	if failure != nil {
		raw.Close()
		return nil, failure
	}
	raw.SetDeadline(time.Time{})
	return c, nil
}

func (c *connection) shakeHands(try attempt) *Error {
	addr := try.addr
	hello, err := wire.Encode(nil, &wire.Handshake{Version: wire.Version, APIKey: try.cfg.apiKey})
	if err != nil {
		return invalid("connect", err)
	}
	if err := c.write(wire.AppendFrame(nil, wire.OpHandshake, 0, hello, wire.FrameBytesMax)); err != nil {
		return try.failed(err)
	}
	if first, err := c.frames.First(); err == nil && first == 0x15 { // a TLS alert
		return clientError("connect", ErrConnectFailed, nil,
			"cannot connect to %s: it speaks TLS and this client does not; use WithTLS or WithTLSCACert", addr)
	}
	m, err := c.frames.Next()
	if err != nil {
		var broken *wire.FrameError
		if errors.As(err, &broken) {
			return clientError("connect", ErrConnectFailed, err,
				"cannot connect to %s: it does not speak FIBP (%v)", addr, err)
		}
		return try.failed(err)
	}
	switch m.Opcode {
	case wire.OpHandshakeOk:
		var welcome wire.HandshakeOk
		if err := wire.Decode(m.Body, &welcome); err != nil {
			return protocolError("%s sent a HandshakeOk that does not parse: %v", addr, err).during("connect")
		}
		if welcome.MaxFrameSize < frameBytesMin {
			return protocolError("%s allows frames of %d bytes only", addr, welcome.MaxFrameSize).during("connect")
		}
		c.frameMax, c.nodeID = int(welcome.MaxFrameSize), welcome.NodeID
		c.frames.Limits.FrameBytes = c.frameMax
		return nil
	case wire.OpError:
		refusal, err := decodeError(m.Body)
		if err != nil {
			return protocolError("%s sent an Error that does not parse: %v", addr, err).during("connect")
		}
		return refusal.during("connect")
	case wire.OpDisconnect:
		return try.failed(io.EOF)
	}
	return protocolError("%s does not speak FIBP: %s came instead of HandshakeOk", addr, wire.Name(m.Opcode)).during("connect")
}

// Read notes when bytes come in; the frame reader reads through it.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.net.Read(b)
	if n > 0 {
		c.heard.Store(int64(time.Since(c.opened)))
	}
	return n, err
}

func (c *connection) write(b []byte) error {
	for len(b) > 0 {
		n, err := c.net.Write(b[:min(len(b), writeBytes)])
		c.moved.Add(int64(n))
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// drop closes the connection for this reason, if it is the first.
func (c *connection) drop(reason *Error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	c.mu.Unlock()
	c.net.Close()
}

func (c *connection) why() *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

func (c *connection) silence() time.Duration {
	return time.Since(c.opened) - time.Duration(c.heard.Load())
}

// tlsFor names the protocol and the server. The name is always the host that is being dialled, also
// after a redirect, unless the user gave one.
func tlsFor(addr string, given *tls.Config) *tls.Config {
	cfg := given.Clone()
	cfg.NextProtos = []string{wire.ALPN}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return cfg
}

func decodeError(body []byte) (*Error, error) {
	var e wire.Error
	if err := wire.Decode(body, &e); err != nil {
		return nil, err
	}
	var metadata map[string]string
	if len(e.Metadata) > 0 {
		metadata = make(map[string]string, len(e.Metadata))
		for _, pair := range e.Metadata {
			metadata[pair.Key] = pair.Value
		}
	}
	return brokerError("", e.Code, e.Message, "", metadata), nil
}

// attempt is one try to connect.
type attempt struct {
	ctx   context.Context
	addr  string
	cfg   *config
	limit string // when it is given up, for people
}

// failed says in words for people why a broker cannot be reached.
func (a attempt) failed(err error) *Error {
	var (
		header  tls.RecordHeaderError
		invalid *tls.CertificateVerificationError
		remote  *net.OpError
		unknown x509.UnknownAuthorityError
		lookup  *net.DNSError
		why     string
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused; is the broker running there?"
	case errors.As(err, &unknown):
		why = "TLS: the broker's certificate is not signed by a trusted authority: " + err.Error()
	case errors.As(err, &invalid):
		why = "TLS: the broker's certificate cannot be verified: " + err.Error()
	case errors.As(err, &header):
		why = "TLS: the broker does not speak TLS on this port; leave WithTLS out, or use its TLS port"
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert
		why = "TLS: the broker refused the connection: " + err.Error()
	case errors.Is(a.ctx.Err(), context.Canceled):
		why, err = "cancelled", context.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		why, err = "no handshake "+a.limit, context.DeadlineExceeded
	case errors.As(err, &lookup):
		why = "the host name cannot be resolved: " + err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		why = "it closed the connection before the handshake was done"
		if a.cfg.tls == nil {
			why += "; does it expect TLS?"
		}
	default:
		why = err.Error()
	}
	return clientError("connect", ErrConnectFailed, err, "cannot connect to %s: %s", a.addr, why)
}

// final reports whether a failure to connect to a leader will not pass by itself.
func final(err *Error) bool {
	var header tls.RecordHeaderError
	var invalid *tls.CertificateVerificationError
	var remote *net.OpError
	return err.permanent() || errors.As(err, &header) || errors.As(err, &invalid) ||
		(errors.As(err, &remote) && remote.Op == "remote error")
}
