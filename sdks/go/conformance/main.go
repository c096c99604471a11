// Command conformance translates the conformance runner's requests into calls of the SDK; see
// sdks/conformance/PROTOCOL.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	fila "github.com/faiscadev/fila/sdks/go"
)

type object = map[string]any

// request is one line of the runner's; every operation uses some of the fields.
type request struct {
	ID       int
	Op       string
	Client   string
	Consumer string
	Request  int
	Address  string
	Options  options

	Queue     string `json:"queue"`
	Messages  []message
	IDs       []string `json:"ids"`
	Error     string
	Prefetch  int
	Heartbeat bool
	ExtendMs  int `json:"visibility_ms"`
	Max       int
	TimeoutMs int    `json:"timeout_ms"`
	Trace     string `json:"traceparent"`
	message

	Operation string
	RequestID uint32 `json:"request_id"`
	Body      any
	Bytes     string
	Chunk     int
	Limits    limits
	State     string
	Receives  uint8

	Name         string
	OnEnqueue    string `json:"on_enqueue"`
	OnFailure    string `json:"on_failure"`
	VisibilityMs uint64 `json:"visibility_timeout_ms"`
	Key          string
	Value        string
	Prefix       string
	Limit        uint64
	MessageID    string `json:"message_id"`
	Reason       string
	KeyID        string      `json:"key_id"`
	ExpiresAtMs  int64       `json:"expires_at_ms"`
	Superadmin   bool        `json:"is_superadmin"`
	Permissions  [][2]string `json:"permissions"`
}

// message has the fields of enqueue; Queue of a request is its own.
type message struct {
	Queue          string `json:"queue"`
	Headers        map[string]string
	Payload        any
	DelayMs        int64    `json:"delay_ms"`
	IdempotencyKey string   `json:"idempotency_key"`
	FairnessKey    *string  `json:"fairness_key"`
	Weight         uint32   `json:"weight"`
	ThrottleKeys   []string `json:"throttle_keys"`
}

type adapter struct {
	out sync.Mutex

	mu        sync.Mutex
	clients   map[string]*fila.Client
	events    map[string][]string
	logs      map[string]*lines
	consumers map[string]*consumer
	aborts    map[int]context.CancelFunc
}

func main() {
	a := &adapter{
		clients: map[string]*fila.Client{}, events: map[string][]string{}, logs: map[string]*lines{},
		consumers: map[string]*consumer{}, aborts: map[int]context.CancelFunc{},
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			a.start(line)
		}
		if err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "reading requests:", err)
			}
			break
		}
	}
	a.end()
}

func (a *adapter) start(line []byte) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		fmt.Fprintf(os.Stderr, "request %.200s: %v\n", line, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.mu.Lock()
	a.aborts[r.ID] = cancel
	a.mu.Unlock()
	go func() {
		answer, err := a.do(ctx, &r)
		if err != nil {
			a.respond(object{"id": r.ID, "error": describe(err)})
		} else {
			a.respond(object{"id": r.ID, "ok": answer})
		}
		cancel()
		a.mu.Lock()
		delete(a.aborts, r.ID)
		a.mu.Unlock()
	}()
}

func (a *adapter) respond(response object) {
	line, err := json.Marshal(response)
	if err != nil {
		line, _ = json.Marshal(object{"id": response["id"], "error": object{
			"code": "Unexpected", "message": err.Error(), "retryable": false, "metadata": object{}}})
	}
	a.out.Lock()
	defer a.out.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func (a *adapter) end() {
	var closing sync.WaitGroup
	for _, c := range a.clients {
		closing.Add(1)
		go func() {
			defer closing.Done()
			c.Close()
		}()
	}
	closing.Wait()
}

func (a *adapter) client(name string) (*fila.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no client %q", name)
}
