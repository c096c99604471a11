package fila_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/brokertest"
)

func TestQueuesAreMadeListedAndDeleted(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	if _, err := client.CreateQueue(soon(t), q, fila.QueueConfig{}); !errors.Is(err, fila.ErrQueueAlreadyExists) {
		t.Errorf("made twice: %v", err)
	}
	_, err := client.CreateQueue(soon(t), "bad-hook", fila.QueueConfig{OnEnqueue: "function ("})
	var detail *fila.Error
	if !errors.Is(err, fila.ErrLuaCompilation) || !errors.As(err, &detail) || detail.Code != fila.CodeLuaCompilationError || detail.Message == "" {
		t.Errorf("with a broken hook: %v", err)
	}
	list, err := client.ListQueues(soon(t))
	must(t, err)
	found := false
	for _, info := range list.Queues {
		found = found || info.Name == q
	}
	if !found {
		t.Errorf("list %+v", list)
	}
	must(t, client.DeleteQueue(soon(t), q))
	if err := client.DeleteQueue(soon(t), q); !errors.Is(err, fila.ErrQueueNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := client.GetStats(soon(t), q); !errors.Is(err, fila.ErrQueueNotFound) {
		t.Errorf("stats of nothing: %v", err)
	}
	if _, err := client.Redrive(soon(t), queue(t, client, fila.QueueConfig{}), 0); !errors.Is(err, fila.ErrNotADLQ) {
		t.Errorf("redrive of an ordinary queue: %v", err)
	}
}

func TestRuntimeSettingsAreSetReadAndRemoved(t *testing.T) {
	client := dial(t, addr)
	must(t, client.SetConfig(soon(t), "throttle.go:x", "100,150"))
	value, err := client.GetConfig(soon(t), "throttle.go:x")
	must(t, err)
	entries, err := client.ListConfig(soon(t), "throttle.go:")
	must(t, err)
	if value != "100,150" || len(entries) != 1 || entries["throttle.go:x"] != value {
		t.Errorf("value %q, entries %v", value, entries)
	}
	must(t, client.SetConfig(soon(t), "throttle.go:x", ""))
	value, err = client.GetConfig(soon(t), "throttle.go:x")
	must(t, err)
	if value != "" {
		t.Errorf("removed, and still %q", value)
	}
	if err := client.SetConfig(soon(t), "throttle.go:x", "many"); !errors.Is(err, fila.ErrInvalidConfigValue) {
		t.Errorf("a value that is none: %v", err)
	}
}

func TestAPausedQueueExplainsItselfAndAPurgedOneIsEmpty(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	enqueue(t, client, q, "x", fila.WithFairnessKey("acme"))
	enqueue(t, client, q, "y", fila.WithFairnessKey("globex"))
	must(t, client.PauseQueue(soon(t), q, "migration"))
	document, err := client.Explain(soon(t), fila.ExplainQuery{Queue: q})
	must(t, err)
	var parsed map[string]any
	must(t, json.Unmarshal(document, &parsed))
	if !strings.Contains(string(document), "migration") {
		t.Errorf("explanation %s", document)
	}
	must(t, client.ResumeQueue(soon(t), q))
	must(t, client.PauseKey(soon(t), q, "acme", ""))
	if msg := receive(t, subscribe(t, client, q)); msg.FairnessKey != "globex" {
		t.Errorf("a paused key was served: %v", msg)
	}
	must(t, client.ResumeKey(soon(t), q, "acme"))
	other := queue(t, client, fila.QueueConfig{})
	enqueue(t, client, other, "x", fila.WithFairnessKey("acme"))
	enqueue(t, client, other, "y", fila.WithFairnessKey("globex"))
	one, err := client.PurgeKey(soon(t), other, "acme")
	must(t, err)
	rest, err := client.Purge(soon(t), other)
	must(t, err)
	if one != 1 || rest != 1 {
		t.Errorf("purged %d, then %d", one, rest)
	}
}

func TestALeaseMayWaitLongerThanTheCallTimeout(t *testing.T) {
	client := dial(t, addr, fila.WithCallTimeout(300*time.Millisecond))
	q := queue(t, client, fila.QueueConfig{})
	time.AfterFunc(600*time.Millisecond, func() { client.Enqueue(context.Background(), q, nil, []byte("late")) })
	batch, err := client.LeaseBatch(context.Background(), q, "job", fila.LeaseRequest{MaxMessages: 1, Wait: 20 * time.Second, CountOnly: true})
	must(t, err)
	if batch.MessageCount != 1 || batch.Messages != nil || batch.Arrow != nil {
		t.Errorf("%+v", batch)
	}
	if _, err := client.LeaseBatch(soon(t), q, "job", fila.LeaseRequest{Wait: 1000 * time.Hour}); !errors.Is(err, fila.ErrInvalidArgument) {
		t.Errorf("a wait of weeks: %v", err)
	}
}

func TestLeaseBatchesAreTheSameForWhoeverAsksAgain(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	for range 5 {
		enqueue(t, client, q, "x")
	}
	first, err := client.LeaseBatch(soon(t), q, "job/0", fila.LeaseRequest{MaxMessages: 3, Visibility: time.Minute, Wait: time.Second})
	must(t, err)
	same, err := client.LeaseBatch(soon(t), q, "job/0", fila.LeaseRequest{})
	must(t, err)
	if len(first.Messages) != 3 || first.Again || !same.Again || same.Messages[0].ID != first.Messages[0].ID {
		t.Errorf("first %+v, again %+v", first, same)
	}
	_, err = client.LeaseBatch(soon(t), q, "job/1", fila.LeaseRequest{MaxMessages: 3})
	must(t, err)
	open, err := client.ListBatches(soon(t), q)
	must(t, err)
	if len(open) != 2 || open[0].Name != "job/0" || open[0].Messages != 3 {
		t.Errorf("open %+v", open)
	}
	count, err := client.ExtendBatchesBelow(soon(t), q, "job", time.Minute, 2)
	must(t, err)
	if count.Batches != 2 {
		t.Errorf("extended %+v", count)
	}
	count, err = client.AckBatchesBelow(soon(t), q, "job", 1)
	must(t, err)
	if count != (fila.BatchCount{Batches: 1, Messages: 3}) {
		t.Errorf("acknowledged %+v", count)
	}
	count, err = client.ReleaseBatch(soon(t), q, "job/1")
	must(t, err)
	if count.Messages != 2 {
		t.Errorf("released %+v", count)
	}
	if _, err = client.AckBatch(soon(t), q, "job/1"); !errors.Is(err, fila.ErrBatchNotFound) {
		t.Errorf("a batch that is gone: %v", err)
	}
}

func TestBrowsingTakesNothing(t *testing.T) {
	client := dial(t, addr)
	q := queue(t, client, fila.QueueConfig{})
	for n := range 10 {
		opts := []fila.EnqueueOption{fila.WithFairnessKey("acme")}
		if n%2 == 1 {
			opts = append(opts, fila.WithDelay(time.Hour))
		}
		_, err := client.Enqueue(soon(t), q, map[string]string{"n": "v"}, []byte("x"), opts...)
		must(t, err)
	}
	states := map[fila.BrowseState]int{}
	for msg, err := range client.Browse(soon(t), q, fila.BrowseQuery{Parts: 3}) {
		must(t, err)
		states[msg.State]++
		if msg.FairnessKey != "acme" || msg.Headers["n"] != "v" || string(msg.Payload) != "x" {
			t.Errorf("browsed %+v", msg)
		}
	}
	if states[fila.BrowseReady] != 5 || states[fila.BrowseDelayed] != 5 {
		t.Errorf("states %v", states)
	}
	if _, err := client.BrowsePage(soon(t), "no-such-snapshot", fila.PageRequest{}); !errors.Is(err, fila.ErrSnapshotExpired) {
		t.Errorf("a snapshot that is gone: %v", err)
	}
}

func TestKeysHavePermissionsAndRefusalsNameThem(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	broker := ownBroker(t, "FILA_AUTH__BOOTSTRAP_APIKEY="+secret)
	if _, err := fila.Dial(broker.Addr); !errors.Is(err, fila.ErrUnauthorized) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := fila.Dial(broker.Addr, fila.WithAPIKey("wrong")); !errors.Is(err, fila.ErrUnauthorized) {
		t.Errorf("with a wrong key: %v", err)
	}
	admin := dial(t, broker.Addr, fila.WithAPIKey(secret))
	mine, other := queue(t, admin, fila.QueueConfig{}), queue(t, admin, fila.QueueConfig{})
	key, err := admin.CreateAPIKey(soon(t), "billing", fila.APIKeyConfig{ExpiresAt: time.Now().Add(time.Hour)})
	must(t, err)
	must(t, admin.SetACL(soon(t), key.ID, []fila.Permission{{Kind: "produce", Pattern: mine}, {Kind: "consume", Pattern: mine}}))
	acl, err := admin.GetACL(soon(t), key.ID)
	must(t, err)
	keys, err := admin.ListAPIKeys(soon(t))
	must(t, err)
	if len(acl.Permissions) != 2 || len(keys) == 0 {
		t.Errorf("ACL %+v, keys %+v", acl, keys)
	}
	client := dial(t, broker.Addr, fila.WithAPIKey(key.Key))
	results, err := client.EnqueueMany(soon(t), []fila.EnqueueMessage{{Queue: mine}, {Queue: other}, {Queue: mine}})
	if !errors.Is(err, fila.ErrForbidden) || results[0].Err != nil || results[2].Err != nil {
		t.Errorf("the broker refuses the frame, the client sends its items apart: %+v %v", results, err)
	}
	if !strings.Contains(results[1].Err.Error(), "produce") {
		t.Errorf("the refusal does not name the permission: %v", results[1].Err)
	}
	consumer := subscribe(t, client, mine)
	receive(t, consumer)
	must(t, admin.RevokeAPIKey(soon(t), key.ID))
	for {
		_, err = consumer.Receive(soon(t))
		if err != nil {
			break
		}
	}
	if !errors.Is(err, fila.ErrUnauthorized) {
		t.Errorf("a consumer whose key was revoked: %v", err)
	}
	if _, err := client.Enqueue(soon(t), mine, nil, nil); !errors.Is(err, fila.ErrUnauthorized) {
		t.Errorf("a later call: %v", err)
	}
}

// ownBroker is a broker of one test's own.
func ownBroker(t testing.TB, env ...string) *brokertest.Broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "fila-go-")
	must(t, err)
	broker, err := brokertest.Start(dir, env...)
	must(t, err)
	t.Cleanup(func() {
		broker.Kill()
		os.RemoveAll(dir)
	})
	return broker
}
