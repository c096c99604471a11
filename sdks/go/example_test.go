package fila_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

// The examples talk to the broker at addr, "localhost:5555" on your machine.

func Example() {
	ctx := context.Background()
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if _, err := client.CreateQueue(ctx, "example-orders", fila.QueueConfig{}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "example-orders", map[string]string{"tenant": "acme"}, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	for msg, err := range client.Consume(ctx, "example-orders") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(msg.Headers["tenant"], "says", string(msg.Payload))
		if err := msg.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		break
	}
	// Output: acme says hello
}

func ExampleClient_EnqueueMany() {
	ctx := context.Background()
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.CreateQueue(ctx, "example-many", fila.QueueConfig{}); err != nil {
		log.Fatal(err)
	}

	results, err := client.EnqueueMany(ctx, []fila.EnqueueMessage{
		{Queue: "example-many", Payload: []byte("stored")},
		{Queue: "example-nowhere", Payload: []byte("refused")},
	})
	for _, result := range results {
		fmt.Println(len(result.MessageID), errors.Is(result.Err, fila.ErrQueueNotFound))
	}
	fmt.Println(err)
	// Output:
	// 36 false
	// 0 true
	// 1 of 2 items failed; first: fila: enqueue: queue "example-nowhere" does not exist
}

func ExampleClient_ConsumeFunc() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.CreateQueue(ctx, "example-func", fila.QueueConfig{}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "example-func", nil, []byte("work")); err != nil {
		log.Fatal(err)
	}

	err = client.ConsumeFunc(ctx, "example-func", func(ctx context.Context, msg *fila.Message) error {
		fmt.Printf("attempt %d of %s\n", msg.AttemptCount, msg.Payload)
		if msg.AttemptCount == 0 {
			return errors.New("not today") // rejected, and delivered again
		}
		stop() // acknowledged, and the end
		return nil
	})
	fmt.Println(err)
	// Output:
	// attempt 0 of work
	// attempt 1 of work
	// <nil>
}

func ExampleConsumer_Messages() {
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	if _, err := client.CreateQueue(ctx, "example-channel", fila.QueueConfig{}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "example-channel", nil, []byte("hello")); err != nil {
		log.Fatal(err)
	}

	consumer, err := client.Subscribe(ctx, "example-channel", fila.WithPrefetch(10))
	if err != nil {
		log.Fatal(err)
	}
	for msg := range consumer.Messages() {
		fmt.Println(string(msg.Payload))
		if err := msg.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		if err := client.DeleteQueue(ctx, "example-channel"); err != nil {
			log.Fatal(err)
		}
	}
	// The channel was closed; Err says why.
	fmt.Println(errors.Is(consumer.Err(), fila.ErrQueueNotFound))
	// Output:
	// hello
	// true
}

func ExampleConsumer_ReceiveMany() {
	ctx := context.Background()
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.CreateQueue(ctx, "example-batches", fila.QueueConfig{}); err != nil {
		log.Fatal(err)
	}
	if _, err := client.EnqueueMany(ctx, make100("example-batches")); err != nil {
		log.Fatal(err)
	}

	consumer, err := client.Subscribe(ctx, "example-batches", fila.WithPrefetch(1000))
	if err != nil {
		log.Fatal(err)
	}
	defer consumer.Close()
	handled := 0
	for handled < 100 {
		messages, err := consumer.ReceiveMany(ctx, 500)
		if err != nil {
			log.Fatal(err)
		}
		handled += len(messages)
		if err := client.AckMessages(ctx, messages); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(handled)
	// Output: 100
}

func make100(queue string) []fila.EnqueueMessage {
	messages := make([]fila.EnqueueMessage, 100)
	for i := range messages {
		messages[i] = fila.EnqueueMessage{Queue: queue, Payload: []byte("x")}
	}
	return messages
}

func ExampleError() {
	client, err := fila.Dial(addr)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Enqueue(context.Background(), "example-none", nil, nil)
	var detail *fila.Error
	if errors.As(err, &detail) {
		fmt.Println(detail.Code, detail.Retryable())
	}
	fmt.Println(errors.Is(err, fila.ErrQueueNotFound))
	fmt.Println(err)
	// Output:
	// QueueNotFound false
	// true
	// fila: enqueue: queue "example-none" does not exist
}

func ExampleClient_Drain() {
	client, err := fila.Dial(addr, fila.WithCallTimeout(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(client.Drain(ctx))
	// Output: <nil>
}
