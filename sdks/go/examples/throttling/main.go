// Command throttling keeps a provider's limit: its messages are delivered at ten a second, others are
// not slowed down.
//
//	go run ./examples/throttling [address]
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

func main() {
	addr := "localhost:5555"
	if len(os.Args) > 1 {
		addr = os.Args[1]
	}
	if err := run(addr); err != nil {
		log.Fatal(err)
	}
}

func run(addr string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	client, err := fila.Dial(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.DeleteQueue(ctx, "calls"); err != nil && !errors.Is(err, fila.ErrQueueNotFound) {
		return err
	}
	if _, err := client.CreateQueue(ctx, "calls", fila.QueueConfig{}); err != nil {
		return err
	}
	// Ten tokens a second, at most one saved up.
	if err := client.SetConfig(ctx, "throttle.provider:slow", "10,1"); err != nil {
		return err
	}
	for range 6 {
		if _, err := client.Enqueue(ctx, "calls", nil, []byte("slow"), fila.WithThrottleKeys("provider:slow")); err != nil {
			return err
		}
	}
	for range 6 {
		if _, err := client.Enqueue(ctx, "calls", nil, []byte("free")); err != nil {
			return err
		}
	}
	began := time.Now()
	took := map[string]time.Duration{}
	handled := 0
	for msg, err := range client.Consume(ctx, "calls") {
		if err != nil {
			return err
		}
		took[string(msg.Payload)] = msg.LeasedAt.Sub(began)
		if err := msg.Ack(ctx); err != nil {
			return err
		}
		if handled++; handled == 12 {
			break
		}
	}
	fmt.Printf("six throttled calls took at least 400 ms: %t; the free ones were done before them: %t\n",
		took["slow"] >= 400*time.Millisecond, took["free"] < took["slow"])
	return nil
}
