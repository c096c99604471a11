// Command retries lets a hook decide what happens to failed messages: two more attempts, then the
// dead letter queue, from which they are moved back.
//
//	go run ./examples/retries [address]
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

const twice = `function on_failure(msg)
  if msg.attempts >= 3 then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 50 * msg.attempts }
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
	if err := client.DeleteQueue(ctx, "jobs"); err != nil && !errors.Is(err, fila.ErrQueueNotFound) {
		return err
	}
	if _, err := client.CreateQueue(ctx, "jobs", fila.QueueConfig{OnFailure: twice}); err != nil {
		return err
	}
	if _, err := client.Enqueue(ctx, "jobs", nil, []byte("job")); err != nil {
		return err
	}
	broken := true
	work := func(ctx context.Context, msg *fila.Message) error {
		if broken {
			fmt.Printf("attempt %d fails\n", msg.AttemptCount)
			return errors.New("the printer is on fire")
		}
		fmt.Printf("%s is done\n", msg.Payload)
		stop()
		return nil
	}
	working, rest := context.WithCancel(ctx)
	defer rest()
	ended := make(chan error, 1)
	go func() { ended <- client.ConsumeFunc(working, "jobs", work) }()
	for {
		stats, err := client.GetStats(ctx, "jobs.dlq")
		if err != nil {
			return err
		}
		if stats.Depth == 1 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	rest()
	if err := <-ended; err != nil {
		return err
	}
	broken = false
	moved, err := client.Redrive(ctx, "jobs.dlq", 0)
	if err != nil {
		return err
	}
	fmt.Printf("%d dead letter moved back\n", moved)
	return client.ConsumeFunc(ctx, "jobs", work)
}
