package fila_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/peertest"
	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// How calls and consumers end when nobody means well: many deadlines in one moment, answers that cannot
// be read, connections that die with work on them.

func TestWhatWasGivenUpMakesRoomForOthers(t *testing.T) {
	peer := peertest.Start(t, nil, func(*peertest.Conn, wire.Message) {})
	client := dial(t, peer.Addr, fila.WithReconnectPause(time.Hour, time.Hour), fila.WithInFlightBytes(100_000))
	peer.HangUp()
	time.Sleep(100 * time.Millisecond)
	for range 30 { // each would fill the bound for good
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, err := client.Enqueue(ctx, "q", nil, make([]byte, 90_000))
		cancel()
		if err == nil || strings.Contains(err.Error(), "under way") {
			t.Fatalf("nothing is under way any more: %v", err)
		}
	}
}

// An answer that cannot be read is no refusal: sending the messages again would store them twice.
func TestAnAnswerThatCannotBeReadIsNotTakenForARefusal(t *testing.T) {
	var frames atomic.Int64
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		frames.Add(1)
		c.Write([]byte{0, 0, 0, 6, wire.OpEnqueueResult, 0x80, byte(m.RequestID >> 24), byte(m.RequestID >> 16), byte(m.RequestID >> 8), byte(m.RequestID)})
	})
	client := dial(t, peer.Addr)
	results, err := client.EnqueueMany(soon(t), []fila.EnqueueMessage{{Queue: "q"}, {Queue: "q"}, {Queue: "r"}, {Queue: "q"}})
	var detail *fila.Error
	if len(results) != 4 || !errors.Is(err, fila.ErrInvalidFrame) || !errors.As(err, &detail) || !detail.MaybeApplied() || detail.Retryable() {
		t.Errorf("%v", err)
	}
	if n := frames.Load(); n != 1 {
		t.Errorf("the messages were sent %d times", n)
	}
}

func TestADeliveryThatCannotBeReadEndsTheConsumerOnBothSides(t *testing.T) {
	cancelled := make(chan uint32, 1)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		switch m.Opcode {
		case wire.OpConsume:
			c.Send(m.RequestID, &wire.ConsumeOk{ConsumerID: "c-1"})
			c.Write([]byte{0, 0, 0, 6, wire.OpDelivery, 0x80, byte(m.RequestID >> 24), byte(m.RequestID >> 16), byte(m.RequestID >> 8), byte(m.RequestID)})
		case wire.OpCancelConsume:
			cancelled <- m.RequestID
		}
	})
	client := dial(t, peer.Addr)
	consumer := subscribe(t, client, "q")
	if _, err := consumer.Receive(soon(t)); !errors.Is(err, fila.ErrInvalidFrame) || consumer.Err() == nil {
		t.Errorf("%v", err)
	}
	select {
	case <-cancelled:
	case <-time.After(patience):
		t.Error("the broker goes on delivering to nobody")
	}
}

func TestWhatIsSentAgainKeepsItsOrder(t *testing.T) {
	var mu sync.Mutex
	var stored []string
	var broken atomic.Bool
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		var e wire.EnqueueWith
		if m.Opcode != wire.OpEnqueueWith || wire.Decode(m.Body, &e) != nil {
			return
		}
		if !broken.Load() {
			if e.Messages[len(e.Messages)-1].IdempotencyKey == "199" {
				broken.Store(true)
				c.Close()
			}
			return
		}
		mu.Lock()
		for _, one := range e.Messages {
			stored = append(stored, one.IdempotencyKey)
		}
		mu.Unlock()
		c.StoreAll(m)
	})
	client := dial(t, peer.Addr, fila.WithBatchLimits(10, 1<<20), fila.WithReconnectPause(time.Millisecond, 10*time.Millisecond))
	messages := make([]fila.EnqueueMessage, 200)
	for i := range messages {
		messages[i] = fila.EnqueueMessage{Queue: "q", IdempotencyKey: fmt.Sprint(i)}
	}
	_, err := client.EnqueueMany(soon(t), messages)
	must(t, err)
	for i, key := range stored {
		if key != fmt.Sprint(i) {
			t.Fatalf("stored in the order %v", stored)
		}
	}
}

// Mistake of earlier clients: a stream error that only closes the channel.
func TestConsumersAtALeaderLearnWhyTheClientEnded(t *testing.T) {
	leader := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		if m.Opcode == wire.OpConsume {
			c.Send(m.RequestID, &wire.ConsumeOk{ConsumerID: "c-1"})
		}
	})
	revoked := make(chan *peertest.Conn, 1)
	seed := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		c.NotLeader(m.RequestID, leader.Addr)
		revoked <- c
	})
	client := dial(t, seed.Addr)
	consumer := subscribe(t, client, "q")
	called := make(chan error, 1)
	go func() {
		_, err := client.Enqueue(context.Background(), "q", nil, nil)
		called <- err
	}()
	c := <-revoked
	time.Sleep(50 * time.Millisecond)
	c.Send(0, &wire.Error{Code: wire.CodeUnauthorized, Message: "the key was revoked"})
	c.Close()
	if _, err := consumer.Receive(soon(t)); !errors.Is(err, fila.ErrUnauthorized) || !errors.Is(consumer.Err(), fila.ErrUnauthorized) {
		t.Errorf("the consumer ended with %v, and says %v", err, consumer.Err())
	}
	if err := <-called; !errors.Is(err, fila.ErrConnectionLost) {
		t.Errorf("a call at the leader: %v", err)
	}
}

func TestWhatWasSentBeforeCloseMayHaveBeenCarriedOut(t *testing.T) {
	got := make(chan struct{})
	peer := peertest.Start(t, nil, func(*peertest.Conn, wire.Message) { close(got) })
	client := dial(t, peer.Addr)
	called := make(chan error, 1)
	go func() {
		_, err := client.Enqueue(context.Background(), "q", nil, nil)
		called <- err
	}()
	<-got
	must(t, client.Close())
	var detail *fila.Error
	if err := <-called; !errors.Is(err, fila.ErrClosed) || !errors.As(err, &detail) || !detail.MaybeApplied() {
		t.Errorf("%v", err)
	}
	if _, err := client.Enqueue(context.Background(), "q", nil, nil); !errors.As(err, &detail) || detail.MaybeApplied() {
		t.Errorf("what was never sent: %v", err)
	}
}

func TestAnAnswerInTheMomentOfACancelHarmsNobody(t *testing.T) {
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		c.Send(m.RequestID, &wire.PurgeResult{Purged: 7})
	})
	client := dial(t, peer.Addr)
	for i := range 300 { // the race detector looks on
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Microsecond)
		if n, err := client.Purge(ctx, "q"); err != nil && n != 0 {
			t.Fatalf("%d with %v", n, err)
		}
		cancel()
	}
}

func TestADialThatIsGivenUpSaysWhose(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = fila.DialContext(ctx, listener.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "before the deadline") || !fila.Retryable(err) {
		t.Errorf("the caller's deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err = fila.DialContext(ctx, listener.Addr().String()); !errors.Is(err, context.Canceled) || fila.Retryable(err) {
		t.Errorf("a cancelled dial: %v", err)
	}
}
