// Command nats is the load program of nats.go: a file stream, asynchronous publishing, a pull consumer
// with explicit acks.
//
//	nats produce|consume ADDRESS QUEUE MESSAGES
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	batch    = 100
	underWay = 8 * batch
	prefetch = 2000
	size     = 1024
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatal(err)
	}
}

func run(role, address, queue, count string) error {
	messages, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	ctx := context.Background()
	connection, err := nats.Connect("nats://" + address)
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(underWay))
	if err != nil {
		return err
	}
	_, err = stream.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: queue, Subjects: []string{queue},
		Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return err
	}
	work := map[string]func(context.Context, jetstream.JetStream, string, int) error{"produce": produce, "consume": consume}[role]
	began, before := time.Now(), cpuSeconds()
	if err := work(ctx, stream, queue, messages); err != nil {
		return err
	}
	if err := connection.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"lang": "nats.go", "role": role, "messages": messages, "seconds": time.Since(began).Seconds(),
		"cpu_seconds": cpuSeconds() - before, "rss_mb": peakMiB(),
	})
}

func produce(_ context.Context, stream jetstream.JetStream, queue string, messages int) error {
	payload := make([]byte, size)
	for range messages {
		if _, err := stream.PublishAsync(queue, payload, jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	<-stream.PublishAsyncComplete()
	return nil
}

func consume(ctx context.Context, stream jetstream.JetStream, queue string, messages int) error {
	consumer, err := stream.CreateOrUpdateConsumer(ctx, queue, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: prefetch,
	})
	if err != nil {
		return err
	}
	deliveries, err := consumer.Messages(jetstream.PullMaxMessages(prefetch))
	if err != nil {
		return err
	}
	defer deliveries.Stop()
	for got := 1; got <= messages; got++ {
		message, err := deliveries.Next()
		if err != nil {
			return err
		}
		if len(message.Data()) != size {
			return fmt.Errorf("a payload has %d bytes", len(message.Data()))
		}
		if got == messages { // its answer comes after those of the others
			if err := message.DoubleAck(ctx); err != nil {
				return err
			}
		} else if err := message.Ack(); err != nil {
			return err
		}
	}
	return nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		log.Fatal(err)
	}
	return kib / 1024
}
