package fila_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

func TestAMessageGoesThroughWithEverythingItCarries(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	headers := map[string]string{"größe": "日本語 🐟", "empty": ""}
	before := time.Now().Add(-time.Second)
	id, err := client.Enqueue(soon(t), q, headers, []byte("hello"),
		fila.WithFairnessKey("acme"), fila.WithWeight(3), fila.WithThrottleKeys("a:1", "b:2"))
	must(t, err)
	msg := receive(t, subscribe(t, client, q))
	if msg.ID != id || msg.Queue != q || string(msg.Payload) != "hello" || msg.FairnessKey != "acme" ||
		msg.Weight != 3 || len(msg.ThrottleKeys) != 2 || msg.AttemptCount != 0 {
		t.Errorf("got %+v", msg)
	}
	if len(msg.Headers) != 2 || msg.Headers["größe"] != "日本語 🐟" {
		t.Errorf("headers %v", msg.Headers)
	}
	if msg.EnqueuedAt.Before(before) || msg.LeasedAt.Before(msg.EnqueuedAt.Add(-time.Second)) {
		t.Errorf("enqueued at %v, leased at %v", msg.EnqueuedAt, msg.LeasedAt)
	}
	must(t, msg.Ack(soon(t)))
	stats, err := client.GetStats(soon(t), q)
	must(t, err)
	if stats.Depth != 0 || stats.InFlight != 0 {
		t.Errorf("after the ack: %+v", stats)
	}
}

func TestManyMessagesHaveResultsInOrderAndARefusedOneCostsOnlyItself(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	var messages []fila.EnqueueMessage
	for n := range 2500 {
		messages = append(messages, fila.EnqueueMessage{Queue: q, Payload: fmt.Appendf(nil, "%d", n)})
	}
	messages[1234].Queue = "nowhere-at-all"
	results, err := client.EnqueueMany(soon(t), messages)
	var batch *fila.BatchError
	if !errors.As(err, &batch) || !errors.Is(err, fila.ErrQueueNotFound) {
		t.Fatalf("error %v", err)
	}
	if len(results) != len(messages) || len(batch.Unwrap()) != 1 {
		t.Fatalf("%d results, %d failures", len(results), len(batch.Unwrap()))
	}
	last := ""
	for n, result := range results {
		if n == 1234 {
			if !strings.Contains(result.Err.Error(), `queue "nowhere-at-all" does not exist`) {
				t.Errorf("refused with %v", result.Err)
			}
			continue
		}
		if result.Err != nil || result.MessageID <= last {
			t.Fatalf("result %d: %+v after %s", n, result, last)
		}
		last = result.MessageID
	}
	consumer := subscribe(t, client, q, fila.WithPrefetch(5000))
	for n := range 2500 {
		if n == 1234 {
			continue
		}
		if got := string(receive(t, consumer).Payload); got != fmt.Sprint(n) {
			t.Fatalf("message %d came as %s", n, got)
		}
	}
}

func TestAnIdempotencyKeyStoresOnce(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	first := enqueue(t, client, q, "x", fila.WithIdempotencyKey("order-7"))
	again, err := client.EnqueueMany(soon(t), []fila.EnqueueMessage{{Queue: q, IdempotencyKey: "order-7"}})
	must(t, err)
	if again[0].MessageID != first || !again[0].Duplicate {
		t.Errorf("first %s, again %+v", first, again[0])
	}
}

func TestADelayedMessageWaits(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	enqueue(t, client, q, "later", fila.WithDelay(700*time.Millisecond))
	enqueue(t, client, q, "now")
	consumer := subscribe(t, client, q)
	if got := string(receive(t, consumer).Payload); got != "now" {
		t.Errorf("first came %q", got)
	}
	late := receive(t, consumer)
	if string(late.Payload) != "later" || late.LeasedAt.Sub(late.EnqueuedAt) < 700*time.Millisecond {
		t.Errorf("%s was leased %v after it was enqueued", late.Payload, late.LeasedAt.Sub(late.EnqueuedAt))
	}
}

func TestAMessageLargerThanAFrameIsCutAndJoined(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	payload := bytes.Repeat([]byte("0123456789abcdef"), 20<<16) // 20 MiB
	_, err := client.Enqueue(soon(t), q, map[string]string{"k": "v"}, payload)
	must(t, err)
	msg := receive(t, subscribe(t, client, q))
	if !bytes.Equal(msg.Payload, payload) || msg.Headers["k"] != "v" {
		t.Errorf("%d bytes came, headers %v", len(msg.Payload), msg.Headers)
	}
	must(t, msg.Ack(soon(t)))
}

func TestWhatCannotBeSentIsRefusedBeforeItIs(t *testing.T) {
	client := dial(t, addr)
	for what, message := range map[string]fila.EnqueueMessage{
		"65,536 bytes of name": {Queue: strings.Repeat("q", 65536)},
		"no name":              {},
		"header not UTF-8":     {Queue: "q", Headers: map[string]string{"k": "\xc3\x28"}},
		"negative delay":       {Queue: "q", Delay: -time.Second},
		"long key":             {Queue: "q", IdempotencyKey: strings.Repeat("k", 70000)},
	} {
		results, err := client.EnqueueMany(soon(t), []fila.EnqueueMessage{{Queue: "q"}, message})
		if !errors.Is(err, fila.ErrInvalidArgument) || results != nil {
			t.Errorf("%s: %v %v", what, results, err)
		}
	}
	if err := client.Nack(soon(t), strings.Repeat("q", 65536), "id", ""); !errors.Is(err, fila.ErrInvalidArgument) {
		t.Errorf("a long name: %v", err)
	}
	// A reason is shortened: the broker hears of it.
	if err := client.Nack(soon(t), "q", "id", strings.Repeat("€", 70000)); !errors.Is(err, fila.ErrQueueNotFound) {
		t.Errorf("a long reason: %v", err)
	}
}

func TestFiftyProducersAtOnceLoseNothing(t *testing.T) {
	for name, mode := range map[string]fila.BatchMode{
		"auto": fila.Auto(), "linger": fila.Linger(2 * time.Millisecond), "disabled": fila.Disabled(),
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, addr, fila.WithBatchMode(mode))
			q := queue(t, client, fila.QueueConfig{})
			var producers sync.WaitGroup
			ids := make(chan string, 1000)
			for range 50 {
				producers.Add(1)
				go func() {
					defer producers.Done()
					for range 20 {
						id, err := client.Enqueue(soon(t), q, nil, []byte("x"))
						if err != nil {
							t.Error(err)
							return
						}
						ids <- id
					}
				}()
			}
			producers.Wait()
			close(ids)
			seen := map[string]bool{}
			for id := range ids {
				seen[id] = true
			}
			stats, err := client.GetStats(soon(t), q)
			must(t, err)
			if len(seen) != 1000 || stats.Depth != 1000 {
				t.Errorf("%d ids, depth %d", len(seen), stats.Depth)
			}
		})
	}
}

func TestATraceParentTravelsWithTheMessage(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const own = "00-11111111111111111111111111111111-2222222222222222-01"
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	ctx := fila.ContextWithTraceParent(soon(t), parent)
	_, err := client.Enqueue(ctx, q, map[string]string{"a": "b"}, nil)
	must(t, err)
	_, err = client.Enqueue(ctx, q, map[string]string{fila.TraceParentHeader: own}, nil)
	must(t, err)
	var seen []string
	ctx, stop := context.WithCancel(soon(t))
	must(t, client.ConsumeFunc(ctx, q, func(ctx context.Context, msg *fila.Message) error {
		seen = append(seen, fila.TraceParentFromContext(ctx))
		if len(seen) == 2 {
			stop()
		}
		return nil
	}))
	if len(seen) != 2 || seen[0] != parent || seen[1] != own {
		t.Errorf("seen %v", seen)
	}
}
