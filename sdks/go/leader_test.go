package fila_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/brokertest"
	"github.com/faiscadev/fila/sdks/go/internal/peertest"
	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// follower answers everything about queues with the address of the leader.
func follower(t *testing.T, cfg *tls.Config, leader string) (*peertest.Peer, *atomic.Int64) {
	var asked atomic.Int64
	peer := peertest.Start(t, cfg, func(c *peertest.Conn, m wire.Message) {
		if m.Opcode == wire.OpPing || m.Opcode == wire.OpCancelConsume {
			return
		}
		asked.Add(1)
		c.NotLeader(m.RequestID, leader)
	})
	return peer, &asked
}

// Mistake of earlier clients: a batcher that keeps the old connection after a redirect.
func TestCallsBatchesAndConsumersMoveToTheLeader(t *testing.T) {
	witness := dial(t, addr)
	q := queue(t, witness, fila.QueueConfig{})
	peer, asked := follower(t, nil, addr)
	client := dial(t, peer.Addr)
	enqueue(t, client, q, "0")
	before := asked.Load()
	for range 20 {
		enqueue(t, client, q, "x")
	}
	if asked.Load() != before {
		t.Errorf("the follower was asked %d times more after it had named the leader", asked.Load()-before)
	}
	stats, err := client.GetStats(soon(t), q)
	must(t, err)
	if stats.Depth != 21 {
		t.Errorf("depth %d", stats.Depth)
	}
	consumer := subscribe(t, dial(t, peer.Addr), q)
	for range 21 {
		must(t, receive(t, consumer).Ack(soon(t)))
	}
}

func TestALeaderThatGoesAwayGivesEverythingBackToTheSeed(t *testing.T) {
	first := ownBroker(t)
	witness := dial(t, addr)
	q := queue(t, witness, fila.QueueConfig{})
	_, err := dial(t, first.Addr).CreateQueue(soon(t), q, fila.QueueConfig{})
	must(t, err)
	var leader atomic.Pointer[string]
	leader.Store(&first.Addr)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) { c.NotLeader(m.RequestID, *leader.Load()) })
	client := dial(t, peer.Addr)
	consumer := subscribe(t, client, q)
	enqueue(t, client, q, "before")
	must(t, receive(t, consumer).Ack(soon(t)))
	leader.Store(&addr)
	first.Kill()
	enqueue(t, witness, q, "after")
	if msg := receive(t, consumer); string(msg.Payload) != "after" {
		t.Errorf("got %v", msg)
	}
}

func TestARedirectWithoutAnAddressOrInCirclesIsAnError(t *testing.T) {
	lost, _ := follower(t, nil, "")
	_, err := dial(t, lost.Addr).Enqueue(soon(t), "q", nil, nil)
	if !errors.Is(err, fila.ErrNotLeader) || !fila.Retryable(err) {
		t.Errorf("without an address: %v", err)
	}
	var there atomic.Pointer[string]
	one := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) { c.NotLeader(m.RequestID, *there.Load()) })
	two, _ := follower(t, nil, one.Addr)
	there.Store(&two.Addr)
	client := dial(t, one.Addr)
	if _, err := client.Enqueue(soon(t), "q", nil, nil); !errors.Is(err, fila.ErrNotLeader) {
		t.Errorf("in circles: %v", err)
	}
	if _, err := client.GetStats(soon(t), "q"); !errors.Is(err, fila.ErrNotLeader) {
		t.Errorf("a request in circles: %v", err)
	}
	if _, err := client.Subscribe(soon(t), "q"); !errors.Is(err, fila.ErrNotLeader) {
		t.Errorf("a consumer in circles: %v", err)
	}
}

type certificates struct {
	ca, other           []byte
	cert, key           []byte
	certFile, keyFile   string
	caFile              string
	clientCert, clientK []byte
}

func makeCertificates(t *testing.T) certificates {
	t.Helper()
	authority, err := brokertest.NewAuthority("test")
	must(t, err)
	other, err := brokertest.NewAuthority("other")
	must(t, err)
	c := certificates{ca: authority.PEM, other: other.PEM}
	c.cert, c.key, err = authority.Issue("server")
	must(t, err)
	c.clientCert, c.clientK, err = authority.Issue("client")
	must(t, err)
	dir := t.TempDir()
	c.certFile, c.keyFile, c.caFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")
	must(t, os.WriteFile(c.certFile, c.cert, 0o600))
	must(t, os.WriteFile(c.keyFile, c.key, 0o600))
	must(t, os.WriteFile(c.caFile, c.ca, 0o600))
	return c
}

func (c certificates) server(t *testing.T) *tls.Config {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{wire.ALPN}}
}

// Mistake of earlier clients: a leader redirect that falls back to plaintext with the API key.
func TestARedirectNeverLeadsIntoPlaintext(t *testing.T) {
	certs := makeCertificates(t)
	clear, asked := follower(t, nil, "")
	misled, _ := follower(t, certs.server(t), clear.Addr)
	client := dial(t, misled.Addr, fila.WithTLSCACert(certs.ca), fila.WithAPIKey("secret"), fila.WithConnectTimeout(time.Second),
		fila.WithReconnectPause(time.Millisecond, 10*time.Millisecond))
	_, err := client.Enqueue(soon(t), "q", nil, nil)
	if err == nil {
		t.Fatal("it was stored somewhere")
	}
	for _, first := range clear.FirstBytes() {
		if first != 0x16 { // a TLS handshake
			t.Errorf("a connection began with 0x%02X", first)
		}
	}
	if asked.Load() != 0 || len(clear.Keys()) != 0 || clear.Opened() == 0 {
		t.Errorf("%d requests and keys %v in the clear over %d connections", asked.Load(), clear.Keys(), clear.Opened())
	}
	if keys := misled.Keys(); len(keys) == 0 || keys[0] != "secret" {
		t.Errorf("the follower saw %v", keys)
	}
}

func TestTLSWorksAndItsFailuresAreFastAndClear(t *testing.T) {
	certs := makeCertificates(t)
	broker := ownBroker(t, "FILA_TLS__CERT_FILE="+certs.certFile, "FILA_TLS__KEY_FILE="+certs.keyFile)
	client := dial(t, "https://"+broker.Addr, fila.WithTLSCACert(certs.ca))
	enqueue(t, client, queue(t, client, fila.QueueConfig{}), "x")
	for what, opts := range map[string][]fila.Option{
		"not signed by a trusted authority": {fila.WithTLSCACert(certs.other)},
		"certificate":                       {fila.WithTLS()},
		"TLS":                               {},
	} {
		start := time.Now()
		_, err := fila.Dial(broker.Addr, append(opts, fila.WithConnectTimeout(time.Minute))...)
		if !errors.Is(err, fila.ErrConnectFailed) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if time.Since(start) > 30*time.Second {
			t.Errorf("%s took %v", what, time.Since(start))
		}
	}
	if _, err := fila.Dial(addr, fila.WithTLSCACert(certs.ca)); !errors.Is(err, fila.ErrConnectFailed) || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("TLS to a plaintext port: %v", err)
	}
	if _, err := fila.Dial(addr, fila.WithTLSCACert([]byte("no PEM"))); !errors.Is(err, fila.ErrInvalidArgument) {
		t.Errorf("a CA that is none: %v", err)
	}
}

func TestClientCertificatesAreShown(t *testing.T) {
	certs := makeCertificates(t)
	broker := ownBroker(t, "FILA_TLS__CERT_FILE="+certs.certFile, "FILA_TLS__KEY_FILE="+certs.keyFile, "FILA_TLS__CA_FILE="+certs.caFile)
	client := dial(t, broker.Addr, fila.WithTLSCACert(certs.ca), fila.WithTLSClientCert(certs.clientCert, certs.clientK))
	queue(t, client, fila.QueueConfig{})
	if _, err := fila.Dial(broker.Addr, fila.WithTLSCACert(certs.ca)); !errors.Is(err, fila.ErrConnectFailed) {
		t.Errorf("without a certificate: %v", err)
	}
}
