// Command produce-consume stores ten messages and consumes them.
//
//	go run ./examples/produce-consume [address]
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
	_, err = client.CreateQueue(ctx, "hello", fila.QueueConfig{})
	if err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		return err
	}
	for n := range 10 {
		id, err := client.Enqueue(ctx, "hello", map[string]string{"n": fmt.Sprint(n)}, fmt.Appendf(nil, "message %d", n))
		if err != nil {
			return err
		}
		fmt.Println("stored", id)
	}
	handled := 0
	for msg, err := range client.Consume(ctx, "hello", fila.WithPrefetch(5)) {
		if err != nil {
			return err
		}
		fmt.Printf("received %s\n", msg.Payload)
		if err := msg.Ack(ctx); err != nil {
			return err
		}
		if handled++; handled == 10 {
			break
		}
	}
	return nil
}
