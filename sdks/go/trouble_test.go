package fila_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

func TestAKilledBrokerLosesNothingAcknowledgedAndConsumersComeBack(t *testing.T) {
	broker := ownBroker(t)
	var events sync.Map
	client := dial(t, broker.Addr, fila.WithReconnectPause(10*time.Millisecond, 100*time.Millisecond),
		fila.WithEventHandler(func(e fila.Event) { events.Store(e.Kind, true) }))
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Second})
	var mu sync.Mutex
	stored, seen := map[string]bool{}, map[string]bool{}
	ctx, stop := context.WithCancel(soon(t))
	consumed := make(chan error, 1)
	go func() {
		consumed <- client.ConsumeFunc(ctx, q, func(_ context.Context, msg *fila.Message) error {
			mu.Lock()
			defer mu.Unlock()
			seen[msg.ID] = true
			return nil
		}, fila.WithConcurrency(4))
	}()
	var producers sync.WaitGroup
	produce := func(n int) {
		for range 8 {
			producers.Add(1)
			go func() {
				defer producers.Done()
				for range n {
					id, err := client.Enqueue(ctx, q, nil, []byte("x"))
					switch {
					case err == nil:
						mu.Lock()
						stored[id] = true
						mu.Unlock()
					case !errors.Is(err, fila.ErrConnectionLost):
						t.Error(err)
					}
				}
			}()
		}
	}
	produce(200)
	time.Sleep(100 * time.Millisecond)
	broker.Kill()
	must(t, broker.Restart())
	producers.Wait()
	produce(20)
	producers.Wait()
	eventually(t, "everything stored was seen", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for id := range stored {
			if !seen[id] {
				return false
			}
		}
		return len(stored) > 160
	})
	stop()
	must(t, <-consumed)
	for _, kind := range []fila.EventKind{fila.EventConnected, fila.EventDisconnected, fila.EventReconnecting} {
		if _, ok := events.Load(kind); !ok {
			t.Errorf("no event %s", kind)
		}
	}
}

func TestACallOnAFrozenBrokerEndsWithItsDeadline(t *testing.T) {
	broker := ownBroker(t)
	client := dial(t, broker.Addr, fila.WithCallTimeout(300*time.Millisecond))
	q := queue(t, client, fila.QueueConfig{})
	broker.Freeze()
	defer broker.Thaw()
	_, err := client.Enqueue(context.Background(), q, nil, []byte("x"))
	var detail *fila.Error
	if !errors.Is(err, fila.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &detail) ||
		!detail.Retryable() || !detail.MaybeApplied() || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("the client's own timeout: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.GetStats(ctx, q); !errors.Is(err, fila.ErrTimeout) {
		t.Errorf("the caller's deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	err = client.Ack(ctx, q, "x")
	if !errors.Is(err, context.Canceled) || errors.Is(err, fila.ErrTimeout) || fila.Retryable(err) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// Mistake of earlier clients: a batch that runs under its first caller's context.
func TestABatchOutlivesItsFirstCaller(t *testing.T) {
	var held atomic.Pointer[func()]
	stored := make(chan int, 100)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		if held.Load() == nil { // the first frame is kept waiting
			release := func() { c.StoreAll(m) }
			held.Store(&release)
			return
		}
		stored <- c.StoreAll(m)
	})
	client := dial(t, peer.Addr)
	go client.Enqueue(soon(t), "q", nil, []byte("holds the line"))
	eventually(t, "the first frame is under way", func() bool { return held.Load() != nil })
	first, cancel := context.WithCancel(context.Background())
	outcome := make(chan error, 3)
	send := func(ctx context.Context) {
		_, err := client.Enqueue(ctx, "q", nil, []byte("x"))
		outcome <- err
	}
	go send(first)
	time.Sleep(50 * time.Millisecond) // it is the batch's first
	go send(soon(t))
	go send(soon(t))
	time.Sleep(50 * time.Millisecond)
	cancel()
	if err := <-outcome; !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled call: %v", err)
	}
	(*held.Load())()
	must(t, <-outcome)
	must(t, <-outcome)
	if n := <-stored; n != 2 {
		t.Errorf("%d messages were in the batch: what was cancelled before it was sent must not be", n)
	}
}

func TestBytesInFlightAreBounded(t *testing.T) {
	var received atomic.Int64
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		received.Add(int64(len(m.Body))) // and never answers
	})
	client := dial(t, peer.Addr, fila.WithInFlightBytes(100_000))
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	var producers sync.WaitGroup
	for range 100 {
		producers.Add(1)
		go func() {
			defer producers.Done()
			if _, err := client.Enqueue(ctx, "q", nil, make([]byte, 10_000)); !errors.Is(err, fila.ErrTimeout) {
				t.Errorf("a call without an answer: %v", err)
			}
		}()
	}
	producers.Wait()
	if n := received.Load(); n == 0 || n > 110_000 {
		t.Errorf("%d bytes were sent", n)
	}
}

func TestAHalfOpenConnectionIsGivenUp(t *testing.T) {
	var silent atomic.Bool
	silent.Store(true)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		switch {
		case silent.Load():
		case m.Opcode == wire.OpPing:
			c.Send(m.RequestID, &wire.Pong{})
		default:
			c.StoreAll(m)
		}
	})
	var log lockedBuffer
	client := dial(t, peer.Addr, fila.WithKeepAlive(50*time.Millisecond, 100*time.Millisecond),
		fila.WithReconnectPause(time.Millisecond, 10*time.Millisecond),
		fila.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if _, err := client.Enqueue(soon(t), "q", nil, nil); !errors.Is(err, fila.ErrConnectionLost) || !strings.Contains(err.Error(), "silent") {
		t.Errorf("sent into silence: %v", err)
	}
	silent.Store(false)
	_, err := client.Enqueue(soon(t), "q", nil, nil)
	for errors.Is(err, fila.ErrConnectionLost) {
		_, err = client.Enqueue(soon(t), "q", nil, nil)
	}
	must(t, err)
	if text := log.String(); !strings.Contains(text, "connection lost") || !strings.Contains(text, "connected") {
		t.Errorf("log: %s", text)
	}
}

func TestAnEnqueueWithAnIdempotencyKeyIsSentAgain(t *testing.T) {
	var frames atomic.Int64
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		if frames.Add(1) == 1 {
			c.Close()
			return
		}
		c.StoreAll(m)
	})
	client := dial(t, peer.Addr, fila.WithReconnectPause(time.Millisecond, 10*time.Millisecond))
	_, err := client.Enqueue(soon(t), "q", nil, []byte("x"), fila.WithIdempotencyKey("k"))
	must(t, err)
	if frames.Load() != 2 {
		t.Errorf("%d frames", frames.Load())
	}
}

func TestAPingIsAnsweredWhileAConsumerDoesNotRead(t *testing.T) {
	ponged := make(chan uint32, 1)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		switch m.Opcode {
		case wire.OpConsume:
			c.Send(m.RequestID, &wire.ConsumeOk{ConsumerID: "c-1"})
			items := make([]wire.DeliveryItem, 10)
			for i := range items {
				items[i] = wire.DeliveryItem{ID: fmt.Sprint(i), Queue: "q"}
			}
			for range 3 {
				c.Send(m.RequestID, &wire.Delivery{Messages: items})
			}
			c.Send(99, &wire.Ping{})
		case wire.OpPong:
			ponged <- m.RequestID
		}
	})
	client := dial(t, peer.Addr)
	consumer := subscribe(t, client, "q", fila.WithPrefetch(10))
	if id := <-ponged; id != 99 {
		t.Errorf("Pong %d", id)
	}
	// Thirty were sent against a credit of ten: leases ran out, and only the newest are kept.
	messages, err := consumer.ReceiveMany(soon(t), 100)
	must(t, err)
	if len(messages) != 10 {
		t.Errorf("%d messages were kept", len(messages))
	}
}

func TestStrangersAreToldApart(t *testing.T) {
	for what, script := range map[string]func(net.Conn){
		"does not speak FIBP": func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"closed the connection before the handshake": func(c net.Conn) {
			c.Read(make([]byte, 100))
			c.Close()
		},
		"no handshake within": func(c net.Conn) { io.Copy(io.Discard, c) },
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				go script(c)
			}
		}()
		_, err = fila.Dial(listener.Addr().String(), fila.WithConnectTimeout(500*time.Millisecond))
		if !errors.Is(err, fila.ErrConnectFailed) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := fila.Dial("127.0.0.1:1"); !errors.Is(err, fila.ErrConnectFailed) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestGarbageEndsTheConnectionAndNotTheClient(t *testing.T) {
	var garbage atomic.Bool
	garbage.Store(true)
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		if garbage.CompareAndSwap(true, false) {
			c.Write([]byte("this is no frame at all"))
			return
		}
		c.StoreAll(m)
	})
	client := dial(t, peer.Addr, fila.WithReconnectPause(time.Millisecond, 10*time.Millisecond))
	_, err := client.Enqueue(soon(t), "q", nil, nil)
	if !errors.Is(err, fila.ErrConnectionLost) || !errors.Is(err, fila.ErrInvalidFrame) {
		t.Errorf("answered with garbage: %v", err)
	}
	_, err = client.Enqueue(soon(t), "q", nil, nil)
	must(t, err)
}

func TestDrainFinishesWhatIsUnderWay(t *testing.T) {
	var closed atomic.Bool
	client := dial(t, addr, fila.WithBatchMode(fila.Linger(time.Minute)),
		fila.WithEventHandler(func(e fila.Event) { closed.Store(e.Kind == fila.EventClosed) }))
	watcher := dial(t, addr)
	in, out := queue(t, watcher, fila.QueueConfig{VisibilityTimeout: time.Hour}), queue(t, watcher, fila.QueueConfig{})
	for range 10 {
		enqueue(t, watcher, in, "x")
	}
	started := make(chan struct{}, 10)
	finish := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- client.ConsumeFunc(context.Background(), in, func(context.Context, *fila.Message) error {
			started <- struct{}{}
			<-finish
			return nil
		})
	}()
	<-started
	sent := make(chan error, 5)
	for range 5 {
		go func() {
			_, err := client.Enqueue(context.Background(), out, nil, nil)
			sent <- err
		}()
	}
	time.Sleep(100 * time.Millisecond)
	time.AfterFunc(100*time.Millisecond, func() { close(finish) })
	must(t, client.Drain(soon(t)))
	must(t, <-ended)
	for range 5 {
		must(t, <-sent)
	}
	if _, err := client.Enqueue(soon(t), out, nil, nil); !errors.Is(err, fila.ErrClosed) {
		t.Errorf("after the drain: %v", err)
	}
	eventually(t, "nine are at hand again", func() bool {
		stats, err := watcher.GetStats(soon(t), in)
		must(t, err)
		return stats.Depth == 9 && stats.InFlight == 0
	})
	if !closed.Load() {
		t.Error("no event said that the client is closed")
	}
}

func TestCloseLeavesNobodyWaiting(t *testing.T) {
	peer := peertest.Start(t, nil, func(c *peertest.Conn, m wire.Message) {
		if m.Opcode == wire.OpConsume {
			c.Send(m.RequestID, &wire.ConsumeOk{ConsumerID: "c-1"})
		}
	})
	client := dial(t, peer.Addr)
	consumer := subscribe(t, client, "q")
	outcomes := make(chan error, 3)
	go func() { _, err := client.Enqueue(context.Background(), "q", nil, nil); outcomes <- err }()
	go func() { _, err := client.GetStats(context.Background(), "q"); outcomes <- err }()
	go func() { _, err := consumer.Receive(context.Background()); outcomes <- err }()
	time.Sleep(50 * time.Millisecond)
	must(t, client.Close())
	must(t, client.Close())
	for range 3 {
		if err := <-outcomes; !errors.Is(err, fila.ErrClosed) {
			t.Errorf("a waiting call: %v", err)
		}
	}
	must(t, consumer.Err())
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
