package fila_test

import (
	"context"
	"errors"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

// visibility is long enough that a busy machine does not miss two of three beats.
const visibility = 3 * time.Second

func TestAHeartbeatKeepsWhatASlowConsumerHolds(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: visibility})
	enqueue(t, client, q, "read")
	enqueue(t, client, q, "unread")
	consumer, err := client.Subscribe(soon(t), q, fila.WithHeartbeat())
	must(t, err)
	defer consumer.Close()
	msg, err := consumer.Receive(soon(t))
	must(t, err)
	time.Sleep(2 * visibility)
	stats, err := client.GetStats(soon(t), q)
	must(t, err)
	if stats.Depth != 0 || stats.InFlight != 2 {
		t.Errorf("%d wait and %d are leased", stats.Depth, stats.InFlight)
	}
	must(t, msg.Ack(soon(t)))
	other, err := consumer.Receive(soon(t))
	must(t, err)
	if other.AttemptCount != 0 {
		t.Errorf("it failed %d times", other.AttemptCount)
	}
	must(t, other.Ack(soon(t)))
}

func TestAHeartbeatKeepsWhatHandlersHaveWhileTheClientDrains(t *testing.T) {
	client, other := dial(t, addr), dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: visibility})
	enqueue(t, client, q, "x")
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- client.ConsumeFunc(soon(t), q, func(ctx context.Context, msg *fila.Message) error {
			close(begun) // panics if it comes a second time
			time.Sleep(2 * visibility)
			return errors.Join(msg.Extend(ctx, 0), msg.Ack(ctx)) // settling, and what concerns it, goes on
		}, fila.WithHeartbeat())
	}()
	<-begun
	must(t, client.Drain(soon(t)))
	must(t, <-ended)
	stats, err := other.GetStats(soon(t), q)
	must(t, err)
	if stats.Depth != 0 || stats.InFlight != 0 {
		t.Errorf("%d wait and %d are leased", stats.Depth, stats.InFlight)
	}
}

func TestALeaseIsExtendedByHand(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: visibility})
	enqueue(t, client, q, "x")
	consumer, err := client.Subscribe(soon(t), q)
	must(t, err)
	defer consumer.Close()
	msg, err := consumer.Receive(soon(t))
	must(t, err)
	must(t, msg.Extend(soon(t), time.Minute))
	must(t, client.ExtendMany(soon(t), q, []string{msg.ID}, time.Minute))
	time.Sleep(visibility * 3 / 2)
	must(t, msg.Ack(soon(t)))
	if err := msg.Extend(soon(t), 0); !errors.Is(err, fila.ErrMessageNotFound) {
		t.Errorf("a settled message is extended: %v", err)
	}
}

func TestAQueueLimitsAttempts(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{MaxAttempts: 1})
	enqueue(t, client, q, "poison")
	consumer, err := client.Subscribe(soon(t), q)
	must(t, err)
	defer consumer.Close()
	msg, err := consumer.Receive(soon(t))
	must(t, err)
	must(t, msg.Nack(soon(t), "it broke"))
	dead, err := client.Subscribe(soon(t), q+".dlq")
	must(t, err)
	defer dead.Close()
	letter, err := dead.Receive(soon(t))
	must(t, err)
	if letter.Headers["fila.dead.reason"] != "max_attempts" || letter.Headers["fila.dead.error"] != "it broke" {
		t.Errorf("it says %v", letter.Headers)
	}
}
