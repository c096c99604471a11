package fila_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/brokertest"
)

// addr is the broker that tests and examples share.
var addr string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fila-go-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	broker, err := brokertest.Start(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	addr = broker.Addr
	code := m.Run()
	broker.Kill()
	os.RemoveAll(dir)
	os.Exit(code)
}

// patience is for what should happen soon, on a machine that is busy with other things.
const patience = 30 * time.Second

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func dial(t testing.TB, where string, opts ...fila.Option) *fila.Client {
	t.Helper()
	client, err := fila.Dial(where, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

var queues atomic.Int64

// queue makes a queue of this test's own.
func queue(t testing.TB, client *fila.Client, cfg fila.QueueConfig) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", queues.Add(1))
	if _, err := client.CreateQueue(soon(t), name, cfg); err != nil {
		t.Fatal(err)
	}
	return name
}

func enqueue(t testing.TB, client *fila.Client, queue, text string, opts ...fila.EnqueueOption) string {
	t.Helper()
	id, err := client.Enqueue(soon(t), queue, nil, []byte(text), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func subscribe(t testing.TB, client *fila.Client, queue string, opts ...fila.ConsumeOption) *fila.Consumer {
	t.Helper()
	consumer, err := client.Subscribe(context.Background(), queue, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { consumer.Close() })
	return consumer
}

func receive(t testing.TB, consumer *fila.Consumer) *fila.Message {
	t.Helper()
	msg, err := consumer.Receive(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("it never happened that %s", what)
}
