// Package peertest is a scripted peer, for faults a real broker does not produce: redirects, silence
// and garbage.
package peertest

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Peer accepts connections, answers their handshakes and hands every other message to its script.
type Peer struct {
	Addr     string
	listener net.Listener

	mu     sync.Mutex
	conns  []*Conn
	opens  int
	keys   []string
	firsts []byte
}

// Conn is one accepted connection.
type Conn struct {
	net.Conn
	mu sync.Mutex
}

// Script answers one message. It runs on the connection's goroutine.
type Script func(c *Conn, m wire.Message)

// Start listens on a free port; with a configuration it speaks TLS.
func Start(t testing.TB, cfg *tls.Config, script Script) *Peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{Addr: listener.Addr().String(), listener: listener}
	t.Cleanup(func() {
		listener.Close()
		p.HangUp()
	})
	go p.accept(cfg, script)
	return p
}

func (p *Peer) accept(cfg *tls.Config, script Script) {
	for {
		raw, err := p.listener.Accept()
		if err != nil {
			return
		}
		if cfg != nil {
			raw = tls.Server(raw, cfg)
		}
		c := &Conn{Conn: raw}
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.opens++
		p.mu.Unlock()
		go p.serve(c, script)
	}
}

func (p *Peer) serve(c *Conn, script Script) {
	defer c.Close()
	frames := wire.NewFrameReader(c, wire.DefaultLimits)
	if first, err := frames.First(); err == nil {
		p.mu.Lock()
		p.firsts = append(p.firsts, first)
		p.mu.Unlock()
	}
	for {
		m, err := frames.Next()
		if err != nil {
			return
		}
		switch m.Opcode {
		case wire.OpHandshake:
			var hello wire.Handshake
			if wire.Decode(m.Body, &hello) == nil && hello.APIKey != nil {
				p.mu.Lock()
				p.keys = append(p.keys, *hello.APIKey)
				p.mu.Unlock()
			}
			c.Send(0, &wire.HandshakeOk{Version: wire.Version, MaxFrameSize: wire.FrameBytesMax})
		case wire.OpDisconnect:
			return
		default:
			m.Body = append([]byte(nil), m.Body...)
			script(c, m)
		}
	}
}

// Send sends a body.
func (c *Conn) Send(id uint32, body wire.Body) {
	encoded, err := wire.Encode(nil, body)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Write(wire.AppendFrame(nil, body.Opcode(), id, encoded, wire.FrameBytesMax))
}

// NotLeader answers that another node leads; with an empty address it does not say which.
func (c *Conn) NotLeader(id uint32, leader string) {
	e := &wire.Error{Code: wire.CodeNotLeader, Message: "another node leads this queue"}
	if leader != "" {
		e.Metadata = []wire.Pair{{Key: "leader_addr", Value: leader}}
	}
	c.Send(id, e)
}

// StoreAll answers an Enqueue with an id for each message, and reports how many there were.
func (c *Conn) StoreAll(m wire.Message) int {
	const id = "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"
	if m.Opcode == wire.OpEnqueueWith {
		var e wire.EnqueueWith
		if wire.Decode(m.Body, &e) != nil {
			return 0
		}
		results := make([]wire.EnqueueWithResultItem, len(e.Messages))
		for i := range results {
			results[i].MessageID = id
		}
		c.Send(m.RequestID, &wire.EnqueueWithResult{Results: results})
		return len(results)
	}
	var e wire.Enqueue
	if wire.Decode(m.Body, &e) != nil {
		return 0
	}
	results := make([]wire.EnqueueResultItem, len(e.Messages))
	for i := range results {
		results[i].MessageID = id
	}
	c.Send(m.RequestID, &wire.EnqueueResult{Results: results})
	return len(results)
}

// HangUp closes every connection.
func (p *Peer) HangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// Opened is how many connections were accepted so far.
func (p *Peer) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opens
}

// Keys are the API keys seen in handshakes.
func (p *Peer) Keys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.keys...)
}

// FirstBytes are the first byte of each connection, after TLS if the peer speaks it.
func (p *Peer) FirstBytes() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]byte(nil), p.firsts...)
}
