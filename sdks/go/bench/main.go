// Command bench produces and consumes messages in batches and prints what that cost, one JSON line
// for each role.
//
//	go run ./bench -addr localhost:5555 -role both -messages 100000
//
// A comparison of clients runs producer and consumer as processes of their own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
)

type settings struct {
	addr, role, queue               string
	messages, batch, size, inFlight int
	prefetch                        int
}

// report is one line of output.
type report struct {
	Lang       string  `json:"lang"`
	Role       string  `json:"role"`
	Messages   int     `json:"messages"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	RSSMB      float64 `json:"rss_mb"`
}

func main() {
	var s settings
	flag.StringVar(&s.addr, "addr", "localhost:5555", "the broker")
	flag.StringVar(&s.role, "role", "both", "produce, consume or both, one after the other")
	flag.StringVar(&s.queue, "queue", "bench-go", "made if it is not there")
	flag.IntVar(&s.messages, "messages", 100_000, "how many")
	flag.IntVar(&s.batch, "batch", 100, "messages in one call")
	flag.IntVar(&s.size, "size", 1024, "bytes of payload")
	flag.IntVar(&s.inFlight, "in-flight", 8, "calls under way at a time")
	flag.IntVar(&s.prefetch, "prefetch", 2000, "messages delivered and not settled")
	flag.Parse()
	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

func run(s settings) error {
	ctx := context.Background()
	client, err := fila.Dial(s.addr)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.CreateQueue(ctx, s.queue, fila.QueueConfig{}); err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		return err
	}
	roles := map[string][]string{"produce": {"produce"}, "consume": {"consume"}, "both": {"produce", "consume"}}[s.role]
	if roles == nil {
		return fmt.Errorf("role is produce, consume or both, not %q", s.role)
	}
	for _, role := range roles {
		work := produce
		if role == "consume" {
			work = consume
		}
		began, cpu := time.Now(), cpuSeconds()
		if err := work(ctx, client, s); err != nil {
			return err
		}
		line, err := json.Marshal(report{
			Lang: "go", Role: role, Messages: s.messages, Seconds: time.Since(began).Seconds(),
			CPUSeconds: cpuSeconds() - cpu, RSSMB: rssMB(),
		})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func produce(ctx context.Context, client *fila.Client, s settings) error {
	payload := make([]byte, s.size)
	var left atomic.Int64
	left.Store(int64(s.messages))
	failures := make(chan error, s.inFlight)
	var workers sync.WaitGroup
	for range s.inFlight {
		workers.Add(1)
		go func() {
			defer workers.Done()
			messages := make([]fila.EnqueueMessage, s.batch)
			for i := range messages {
				messages[i] = fila.EnqueueMessage{Queue: s.queue, Payload: payload}
			}
			for {
				before := left.Add(-int64(s.batch)) + int64(s.batch)
				if before <= 0 {
					return
				}
				if _, err := client.EnqueueMany(ctx, messages[:min(int64(s.batch), before)]); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	workers.Wait()
	close(failures)
	return <-failures
}

func consume(ctx context.Context, client *fila.Client, s settings) error {
	consumer, err := client.Subscribe(ctx, s.queue, fila.WithPrefetch(s.prefetch))
	if err != nil {
		return err
	}
	defer consumer.Close()
	settling := make(chan []*fila.Message, s.inFlight)
	failures := make(chan error, s.inFlight)
	var workers sync.WaitGroup
	for range s.inFlight {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for messages := range settling {
				if err := client.AckMessages(ctx, messages); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	for handled := 0; handled < s.messages; {
		messages, err := consumer.ReceiveMany(ctx, min(s.batch, s.messages-handled))
		if err != nil {
			return err
		}
		handled += len(messages)
		select {
		case settling <- messages:
		case err := <-failures:
			return err
		}
	}
	close(settling)
	workers.Wait()
	close(failures)
	return <-failures
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// rssMB is the most resident memory the process had.
func rssMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}
