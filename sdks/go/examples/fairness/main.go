// Command fairness lets a hook sort messages by tenant: one tenant with a thousand messages does not
// make another with ten wait.
//
//	go run ./examples/fairness [address]
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

const byTenant = `function on_enqueue(msg)
  return { fairness_key = msg.headers["tenant"] }
end`

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
	if err := client.DeleteQueue(ctx, "fair"); err != nil && !errors.Is(err, fila.ErrQueueNotFound) {
		return err
	}
	if _, err := client.CreateQueue(ctx, "fair", fila.QueueConfig{OnEnqueue: byTenant}); err != nil {
		return err
	}
	var messages []fila.EnqueueMessage
	for range 1000 {
		messages = append(messages, fila.EnqueueMessage{Queue: "fair", Headers: map[string]string{"tenant": "noisy"}})
	}
	for range 10 {
		messages = append(messages, fila.EnqueueMessage{Queue: "fair", Headers: map[string]string{"tenant": "quiet"}})
	}
	if _, err := client.EnqueueMany(ctx, messages); err != nil {
		return err
	}
	handled, quiet := 0, 0
	for msg, err := range client.Consume(ctx, "fair", fila.WithPrefetch(1)) {
		if err != nil {
			return err
		}
		handled++
		if msg.FairnessKey == "quiet" {
			quiet++
		}
		if err := msg.Ack(ctx); err != nil {
			return err
		}
		if quiet == 10 {
			break
		}
	}
	fmt.Printf("all ten of the quiet tenant were served among the first %d of 1010\n", handled)
	return nil
}
