package fila_test

import (
	"errors"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

func TestAHeartbeatKeepsWhatASlowConsumerHolds(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Second})
	enqueue(t, client, q, "read")
	enqueue(t, client, q, "unread")
	consumer, err := client.Subscribe(soon(t), q, fila.WithHeartbeat())
	must(t, err)
	defer consumer.Close()
	msg, err := consumer.Receive(soon(t))
	must(t, err)
	time.Sleep(2500 * time.Millisecond)
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

func TestALeaseIsExtendedByHand(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{VisibilityTimeout: time.Second})
	enqueue(t, client, q, "x")
	consumer, err := client.Subscribe(soon(t), q)
	must(t, err)
	defer consumer.Close()
	msg, err := consumer.Receive(soon(t))
	must(t, err)
	must(t, msg.Extend(soon(t), time.Minute))
	must(t, client.ExtendMany(soon(t), q, []string{msg.ID}, time.Minute))
	time.Sleep(1500 * time.Millisecond)
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
