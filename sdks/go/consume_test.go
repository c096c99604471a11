package fila_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

func TestTheIteratorYieldsUntilItsContextEnds(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	for n := range 10 {
		enqueue(t, client, q, fmt.Sprint(n))
	}
	ctx, stop := context.WithCancel(soon(t))
	defer stop()
	var seen []string
	for msg, err := range client.Consume(ctx, q, fila.WithPrefetch(3)) {
		must(t, err)
		seen = append(seen, string(msg.Payload))
		must(t, msg.Ack(ctx))
		if len(seen) == 10 {
			stop()
		}
	}
	if strings.Join(seen, "") != "0123456789" {
		t.Errorf("seen %v", seen)
	}
}

func TestLeavingTheLoopHandsBackWhatWasNotYielded(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Hour})
	for n := range 20 {
		enqueue(t, client, q, fmt.Sprint(n))
	}
	for msg, err := range client.Consume(soon(t), q) {
		must(t, err)
		must(t, msg.Ack(soon(t)))
		break
	}
	eventually(t, "nineteen messages are at hand again", func() bool {
		stats, err := client.GetStats(soon(t), q)
		must(t, err)
		return stats.Depth == 19 && stats.InFlight == 0 && stats.ActiveConsumers == 0
	})
}

// Mistake of earlier clients: a stream error that only closes the channel.
func TestAStreamErrorReachesEveryFormOfConsuming(t *testing.T) {
	client := dial(t, addr)
	forms := map[string]func(ctx context.Context, q string, ready func()) error{
		"iterator": func(ctx context.Context, q string, ready func()) error {
			for msg, err := range client.Consume(ctx, q) {
				if err != nil {
					return err
				}
				if err := msg.Ack(ctx); err != nil {
					return err
				}
				ready()
			}
			return nil
		},
		"callback": func(ctx context.Context, q string, ready func()) error {
			return client.ConsumeFunc(ctx, q, func(context.Context, *fila.Message) error {
				ready()
				return nil
			}, fila.WithConcurrency(3))
		},
		"channel": func(ctx context.Context, q string, ready func()) error {
			consumer, err := client.Subscribe(ctx, q)
			if err != nil {
				return err
			}
			for msg := range consumer.Messages() {
				if err := msg.Ack(ctx); err != nil {
					return err
				}
				ready()
			}
			return consumer.Err()
		},
		"receive": func(ctx context.Context, q string, ready func()) error {
			consumer, err := client.Subscribe(ctx, q)
			if err != nil {
				return err
			}
			for {
				msg, err := consumer.Receive(ctx)
				if err != nil {
					return err
				}
				if err := msg.Ack(ctx); err != nil {
					return err
				}
				ready()
			}
		},
	}
	for name, consume := range forms {
		t.Run(name, func(t *testing.T) {
			if err := consume(soon(t), "no-such-queue", func() {}); !errors.Is(err, fila.ErrQueueNotFound) {
				t.Errorf("of a queue that never was: %v", err)
			}
			q := queue(t, client, fila.QueueConfig{})
			enqueue(t, client, q, "x")
			handled := make(chan struct{})
			ended := make(chan error, 1)
			go func() { ended <- consume(soon(t), q, func() { close(handled) }) }()
			<-handled
			must(t, client.DeleteQueue(soon(t), q))
			if err := <-ended; !errors.Is(err, fila.ErrQueueNotFound) {
				t.Errorf("of a queue that was deleted: %v", err)
			}
		})
	}
}

func TestAHandlersErrorIsANackAndItsSuccessAnAck(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{OnFailure: `function on_failure(msg)
		if msg.attempts >= 2 then return { action = "dlq" } end
		return { action = "retry", delay_ms = 0 }
	end`})
	for n := range 30 {
		enqueue(t, client, q, fmt.Sprint(n))
	}
	ctx, stop := context.WithCancel(soon(t))
	var handled, failed atomic.Int64
	ended := make(chan error, 1)
	go func() {
		ended <- client.ConsumeFunc(ctx, q, func(_ context.Context, msg *fila.Message) error {
			if strings.HasSuffix(string(msg.Payload), "7") {
				failed.Add(1)
				return errors.New("not today")
			}
			handled.Add(1)
			return nil
		}, fila.WithConcurrency(4))
	}()
	eventually(t, "three messages are dead letters", func() bool {
		stats, err := client.GetStats(soon(t), q+".dlq")
		must(t, err)
		return stats.Depth == 3
	})
	eventually(t, "the others are gone", func() bool {
		stats, err := client.GetStats(soon(t), q)
		must(t, err)
		return stats.Depth == 0 && stats.InFlight == 0
	})
	stop()
	must(t, <-ended)
	if handled.Load() != 27 || failed.Load() != 6 {
		t.Errorf("%d handled, %d failures", handled.Load(), failed.Load())
	}
	moved, err := client.Redrive(soon(t), q+".dlq", 2)
	must(t, err)
	if moved != 2 {
		t.Errorf("%d moved back", moved)
	}
}

func TestAHandlerThatStopsBecauseItsContextEndedLosesNoAttempt(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Hour})
	enqueue(t, client, q, "x")
	ctx, stop := context.WithCancel(soon(t))
	must(t, client.ConsumeFunc(ctx, q, func(ctx context.Context, _ *fila.Message) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	}))
	if msg := receive(t, subscribe(t, client, q)); msg.AttemptCount != 0 {
		t.Errorf("%d attempts were counted", msg.AttemptCount)
	}
}

func TestPrefetchBoundsWhatAConsumerHolds(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	for n := range 20 {
		enqueue(t, client, q, fmt.Sprint(n))
	}
	consumer := subscribe(t, client, q, fila.WithPrefetch(5))
	eventually(t, "five are leased", func() bool {
		stats, err := client.GetStats(soon(t), q)
		must(t, err)
		return stats.InFlight == 5
	})
	messages, err := consumer.ReceiveMany(soon(t), 100)
	must(t, err)
	if len(messages) > 5 {
		t.Errorf("%d at once", len(messages))
	}
	must(t, client.AckMessages(soon(t), messages))
	if msg := receive(t, consumer); string(msg.Payload) != fmt.Sprint(len(messages)) {
		t.Errorf("then came %s", msg.Payload)
	}
}

func TestSeveralConsumersShareOneConnection(t *testing.T) {
	client := dial(t, addr)
	var seen sync.Map
	var loops sync.WaitGroup
	ctx, stop := context.WithCancel(soon(t))
	defer stop()
	var left atomic.Int64
	left.Store(60)
	for range 3 {
		q := queue(t, client, fila.QueueConfig{})
		for range 2 {
			loops.Add(1)
			go func() {
				defer loops.Done()
				for msg, err := range client.Consume(ctx, q, fila.WithPrefetch(4)) {
					if err != nil {
						t.Error(err)
						return
					}
					if _, twice := seen.LoadOrStore(msg.ID, true); twice {
						t.Errorf("%s came twice", msg.ID)
					}
					if err := msg.Ack(soon(t)); err != nil {
						t.Error(err)
					}
					if left.Add(-1) == 0 {
						stop()
					}
				}
			}()
		}
		for n := range 20 {
			enqueue(t, client, q, fmt.Sprint(n))
		}
	}
	loops.Wait()
	if left.Load() != 0 {
		t.Errorf("%d never came", left.Load())
	}
}

func TestSettlingManyTellsWhichWereNotLeased(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	enqueue(t, client, q, "a")
	enqueue(t, client, q, "b")
	consumer := subscribe(t, client, q)
	a, b := receive(t, consumer), receive(t, consumer)
	const unknown = "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"
	err := client.AckMany(soon(t), q, []string{a.ID, unknown, b.ID})
	var batch *fila.BatchError
	if !errors.As(err, &batch) || batch.Errs[0] != nil || batch.Errs[2] != nil || !errors.Is(batch.Errs[1], fila.ErrMessageNotFound) {
		t.Fatalf("error %v", err)
	}
	if err := a.Ack(soon(t)); !errors.Is(err, fila.ErrMessageNotFound) || !strings.Contains(err.Error(), a.ID) {
		t.Errorf("settled twice: %v", err)
	}
}

func TestReleaseKeepsThePlaceAndCountsNoAttempt(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	enqueue(t, client, q, "x")
	consumer := subscribe(t, client, q)
	must(t, receive(t, consumer).Release(soon(t)))
	again := receive(t, consumer)
	if again.AttemptCount != 0 {
		t.Errorf("%d attempts", again.AttemptCount)
	}
	must(t, again.Nack(soon(t), "failed"))
	if third := receive(t, consumer); third.AttemptCount != 1 {
		t.Errorf("%d attempts after a nack", third.AttemptCount)
	}
}

func TestTheChannelClosesWithItsContextAndHandsBackWhatItHeld(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Hour})
	for n := range 5 {
		enqueue(t, client, q, fmt.Sprint(n))
	}
	ctx, stop := context.WithCancel(soon(t))
	consumer, err := client.Subscribe(ctx, q)
	must(t, err)
	messages := consumer.Messages()
	must(t, (<-messages).Ack(ctx))
	stop()
	taken := uint64(0)
	for range messages { // what was taken before the end stays leased
		taken++
	}
	must(t, consumer.Err())
	eventually(t, "only what was taken is leased", func() bool {
		stats, err := client.GetStats(soon(t), q)
		must(t, err)
		return stats.InFlight == taken && stats.ActiveConsumers == 0
	})
}

func TestReceivingNothingOrLessIsRefused(t *testing.T) {
	client := dial(t, addr)
	consumer := subscribe(t, client, queue(t, client, fila.QueueConfig{}))
	for _, limit := range []int{0, -1} {
		if _, err := consumer.ReceiveMany(soon(t), limit); !errors.Is(err, fila.ErrInvalidArgument) {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
}

// The conformance programme shows it for Receive; the channel holds one message outside the buffer.
func TestALateAckIsNotFollowedByTheSameMessageFromTheChannel(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Second})
	consumer, err := client.Subscribe(soon(t), q, fila.WithPrefetch(1))
	must(t, err)
	defer consumer.Close()
	enqueue(t, client, q, "late")
	first := <-consumer.Messages()
	// Its lease runs out, and the second delivery stands in the channel's hand.
	eventually(t, "the message is delivered again", func() bool {
		document, err := client.Explain(soon(t), fila.ExplainQuery{Queue: q})
		must(t, err)
		var why struct{ Delivered int }
		must(t, json.Unmarshal(document, &why))
		return why.Delivered > 1
	})
	time.Sleep(200 * time.Millisecond)
	must(t, first.Ack(soon(t)))
	enqueue(t, client, q, "news")
	if next := <-consumer.Messages(); string(next.Payload) != "news" {
		t.Errorf("after the ack came %q with attempt count %d", next.Payload, next.AttemptCount)
	}
}
