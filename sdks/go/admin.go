package fila

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// QueueConfig is what a queue is made of; the zero value takes every default.
type QueueConfig struct {
	// OnEnqueue and OnFailure are the hooks' Lua source; empty means none.
	OnEnqueue string
	OnFailure string
	// VisibilityTimeout is how long a lease lasts; 0 means the broker's default, 30 s.
	VisibilityTimeout time.Duration
	// MaxAttempts makes a dead letter of a message that failed so many times, whatever the hook says; 0 is
	// no limit.
	MaxAttempts uint32
	// Cost is what a message costs its fairness key: "messages" (1; also if empty), or "bytes", those of its
	// headers and payload, so that keys share bytes by weight.
	Cost string
}

// QueueInfo is a line of the list of queues.
type QueueInfo struct {
	Name            string
	Depth           uint64
	InFlight        uint64
	ActiveConsumers uint32
	LeaderNodeID    uint64
}

// QueueList is the queues and the number of the cluster's nodes, 0 for a broker that stands alone.
type QueueList struct {
	Queues           []QueueInfo
	ClusterNodeCount uint32
}

// QueueStats is a queue's present state.
type QueueStats struct {
	Depth              uint64
	InFlight           uint64
	ActiveFairnessKeys uint64
	ActiveConsumers    uint32
	Quantum            uint32
	LeaderNodeID       uint64
	ReplicationCount   uint32
	FairnessKeys       []FairnessKeyStats
	ThrottleKeys       []ThrottleKeyStats
}

// FairnessKeyStats is the state of one fairness key.
type FairnessKeyStats struct {
	Key     string
	Pending uint64
	Deficit int64
	Weight  uint32
}

// ThrottleKeyStats is the state of one bucket.
type ThrottleKeyStats struct {
	Key           string
	Tokens        float64
	RatePerSecond float64
	Burst         float64
}

// CreateQueue makes a queue and its dead letter queue, <name>.dlq, and returns the queue's id.
func (c *Client) CreateQueue(ctx context.Context, name string, cfg QueueConfig) (string, error) {
	if cfg.VisibilityTimeout < 0 {
		return "", invalid("create queue "+quoted(name), fmt.Errorf("visibility timeout must not be negative, not %v", cfg.VisibilityTimeout))
	}
	var maxAttempts *uint32
	var cost *string
	if cfg.MaxAttempts > 0 || cfg.Cost != "" {
		maxAttempts = &cfg.MaxAttempts
	}
	if cfg.Cost != "" {
		cost = &cfg.Cost
	}
	var reply wire.CreateQueueResult
	q := query{op: "create queue " + quoted(name), queue: name, subject: "queue " + quoted(name), reply: &reply,
		body: &wire.CreateQueue{
			Name: name, OnEnqueue: given(cfg.OnEnqueue), OnFailure: given(cfg.OnFailure),
			VisibilityTimeoutMs: millis(cfg.VisibilityTimeout), MaxAttempts: maxAttempts, Cost: cost,
		}}
	if err := c.ask(ctx, q); err != nil {
		return "", err
	}
	return reply.QueueID, q.refusal(reply.Code, reply.Message)
}

// DeleteQueue removes a queue with everything in it. Its consumers end with ErrQueueNotFound.
func (c *Client) DeleteQueue(ctx context.Context, queue string) error {
	var reply wire.DeleteQueueResult
	q := query{op: "delete queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue),
		body: &wire.DeleteQueue{Queue: queue}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(reply.Code, reply.Message)
}

// ListQueues lists the queues this client may see.
func (c *Client) ListQueues(ctx context.Context) (*QueueList, error) {
	var reply wire.ListQueuesResult
	q := query{op: "list queues", repeatable: true, body: &wire.ListQueues{}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	list := &QueueList{ClusterNodeCount: reply.ClusterNodeCount, Queues: make([]QueueInfo, len(reply.Queues))}
	for i, found := range reply.Queues {
		list.Queues[i] = QueueInfo(found)
	}
	return list, q.refusal(reply.Code, reply.Message)
}

// GetStats tells the state of a queue, its fairness keys and buckets.
func (c *Client) GetStats(ctx context.Context, queue string) (*QueueStats, error) {
	var reply wire.GetStatsResult
	q := query{op: "stats of queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue), repeatable: true,
		body: &wire.GetStats{Queue: queue}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, nil); err != nil {
		return nil, err
	}
	stats := &QueueStats{
		Depth: reply.Depth, InFlight: reply.InFlight, ActiveFairnessKeys: reply.ActiveFairnessKeys,
		ActiveConsumers: reply.ActiveConsumers, Quantum: reply.Quantum,
		LeaderNodeID: reply.LeaderNodeID, ReplicationCount: reply.ReplicationCount,
	}
	for _, key := range reply.FairnessKeys {
		stats.FairnessKeys = append(stats.FairnessKeys, FairnessKeyStats(key))
	}
	for _, key := range reply.ThrottleKeys {
		stats.ThrottleKeys = append(stats.ThrottleKeys, ThrottleKeyStats(key))
	}
	return stats, nil
}

// SetConfig sets a runtime setting, such as throttle.provider:stripe; an empty value removes it.
func (c *Client) SetConfig(ctx context.Context, key, value string) error {
	var reply wire.SetConfigResult
	q := query{op: "set config " + quoted(key), subject: "config key " + quoted(key),
		body: &wire.SetConfig{Key: key, Value: value}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(reply.Code, reply.Message)
}

// GetConfig is a runtime setting's value, "" if it is not set.
func (c *Client) GetConfig(ctx context.Context, key string) (string, error) {
	var reply wire.GetConfigResult
	q := query{op: "get config " + quoted(key), subject: "config key " + quoted(key), repeatable: true,
		body: &wire.GetConfig{Key: key}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return "", err
	}
	return reply.Value, q.refusal(reply.Code, reply.Message)
}

// ListConfig is every runtime setting whose key has this prefix.
func (c *Client) ListConfig(ctx context.Context, prefix string) (map[string]string, error) {
	var reply wire.ListConfigResult
	q := query{op: "list config", repeatable: true, body: &wire.ListConfig{Prefix: prefix}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	entries := make(map[string]string, len(reply.Entries))
	for _, entry := range reply.Entries {
		entries[entry.Key] = entry.Value
	}
	return entries, q.refusal(reply.Code, reply.Message)
}

// Redrive moves pending messages of a dead letter queue back to their queue, at most limit of them,
// 0 for all. It returns how many were moved.
func (c *Client) Redrive(ctx context.Context, dlq string, limit uint64) (uint64, error) {
	var reply wire.RedriveResult
	q := query{op: "redrive " + quoted(dlq), queue: dlq, subject: "queue " + quoted(dlq),
		body: &wire.Redrive{DLQQueue: dlq, Limit: limit}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return 0, err
	}
	return reply.Redriven, q.refusal(reply.Code, nil)
}

// ExplainQuery says what is to be explained; the zero value asks for all queues in short.
type ExplainQuery struct {
	Queue string
	// FairnessKey asks about the next message of a key, which may be the empty one.
	FairnessKey *string
	// MessageID asks about one message.
	MessageID string
	// Keys is how many of the longest-waiting keys of a queue are told; 0 means 10.
	Keys uint32
}

// Explain says why something waits, as the JSON document that spec/explain.md describes.
func (c *Client) Explain(ctx context.Context, about ExplainQuery) (json.RawMessage, error) {
	if about.Keys == 0 {
		about.Keys = 10
	}
	var reply wire.ExplainResult
	q := query{op: "explain queue " + quoted(about.Queue), queue: about.Queue, subject: "queue " + quoted(about.Queue), repeatable: true,
		body: &wire.Explain{
			Queue: about.Queue, FairnessKey: about.FairnessKey, MessageID: about.MessageID, KeysMax: about.Keys,
		}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	return reply.Document, q.refusal(reply.Code, nil)
}

// PauseQueue hands out nothing of this queue until it is resumed; it still takes messages in.
func (c *Client) PauseQueue(ctx context.Context, queue, reason string) error {
	var reply wire.PauseQueueResult
	return c.act(ctx, "pause queue "+quoted(queue), queue, &wire.PauseQueue{Queue: queue, Reason: reason}, &reply, &reply.Code)
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, queue string) error {
	var reply wire.ResumeQueueResult
	return c.act(ctx, "resume queue "+quoted(queue), queue, &wire.ResumeQueue{Queue: queue}, &reply, &reply.Code)
}

// PauseKey gives a fairness key no turns until it is resumed.
func (c *Client) PauseKey(ctx context.Context, queue, fairnessKey, reason string) error {
	var reply wire.PauseKeyResult
	op := fmt.Sprintf("pause key %q of queue %q", fairnessKey, queue)
	return c.act(ctx, op, queue, &wire.PauseKey{Queue: queue, FairnessKey: fairnessKey, Reason: reason}, &reply, &reply.Code)
}

// ResumeKey ends a key's pause.
func (c *Client) ResumeKey(ctx context.Context, queue, fairnessKey string) error {
	var reply wire.ResumeKeyResult
	op := fmt.Sprintf("resume key %q of queue %q", fairnessKey, queue)
	return c.act(ctx, op, queue, &wire.ResumeKey{Queue: queue, FairnessKey: fairnessKey}, &reply, &reply.Code)
}

// Purge drops what is pending in a queue; what is leased stays. It returns how many were dropped.
func (c *Client) Purge(ctx context.Context, queue string) (uint64, error) {
	return c.purge(ctx, queue, nil)
}

// PurgeKey drops what is pending of one fairness key.
func (c *Client) PurgeKey(ctx context.Context, queue, fairnessKey string) (uint64, error) {
	return c.purge(ctx, queue, &fairnessKey)
}

func (c *Client) purge(ctx context.Context, queue string, key *string) (uint64, error) {
	var reply wire.PurgeResult
	err := c.act(ctx, "purge queue "+quoted(queue), queue, &wire.Purge{Queue: queue, FairnessKey: key}, &reply, &reply.Code)
	if err != nil {
		return 0, err // and the reply may still be written to
	}
	return reply.Purged, nil
}

// act is a request about a queue whose answer is a code.
func (c *Client) act(ctx context.Context, op, queue string, body, reply wire.Body, code *uint8) error {
	q := query{op: op, queue: queue, subject: "queue " + quoted(queue), body: body, reply: reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(*code, nil)
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// millis rounds up, so that a short time does not become "not given".
func millis(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}
