package fila

import (
	"context"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// QueueUpdate is a change of a queue's settings: all of it is made, or none.
type QueueUpdate struct {
	// Settings that change, by name: on_enqueue, on_failure, visibility_timeout_ms, max_attempts,
	// hook_timeout_ms, hook_memory_limit_bytes, fail_mode. An empty text is none, or the default; what is not
	// named stays as it is.
	Settings map[string]string
	// ExpectedVersion is refused with ErrVersionConflict if the queue has another one by now; 0 is any.
	ExpectedVersion uint32
	// FromVersion brings that version back, with Settings on top; 0 begins with the present ones.
	FromVersion uint32
	// Note says why, for the history.
	Note string
	// Unrehearsed leaves out trying new hooks on messages that the present ones decided.
	Unrehearsed bool
}

// QueueSettings is what a queue is told to be, in one version of it.
type QueueSettings struct {
	Settings map[string]string
	Version  uint32
	MadeAt   time.Time
	Who      string
	Note     string
}

// QueueVersion is a line of a queue's history.
type QueueVersion struct {
	Version uint32
	MadeAt  time.Time
	Who     string
	Note    string
	// Changed names the settings that differ from the version before.
	Changed []string
}

// UpdateQueue changes a queue while it works, and returns the version that holds then.
func (c *Client) UpdateQueue(ctx context.Context, queue string, update QueueUpdate) (uint32, error) {
	settings := make([]wire.Pair, 0, len(update.Settings))
	for name, text := range update.Settings {
		settings = append(settings, wire.Pair{Key: name, Value: text})
	}
	var reply wire.UpdateQueueResult
	q := query{op: "update queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue), reply: &reply,
		body: &wire.UpdateQueue{
			Queue: queue, Settings: settings, ExpectedVersion: update.ExpectedVersion,
			FromVersion: update.FromVersion, Note: update.Note, Unrehearsed: update.Unrehearsed,
		}}
	if err := c.ask(ctx, q); err != nil {
		return 0, err
	}
	return reply.Version, q.refusal(reply.Code, reply.Message)
}

// GetQueue tells a queue's settings in a version of them; 0 is the one that holds.
func (c *Client) GetQueue(ctx context.Context, queue string, version uint32) (*QueueSettings, error) {
	var reply wire.GetQueueResult
	q := query{op: "settings of queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue),
		repeatable: true, body: &wire.GetQueue{Queue: queue, Version: version}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, reply.Message); err != nil {
		return nil, err
	}
	found := &QueueSettings{Settings: make(map[string]string, len(reply.Settings)), Version: reply.Version,
		MadeAt: time.UnixMilli(int64(reply.AtMs)), Who: reply.Who, Note: reply.Note}
	for _, one := range reply.Settings {
		found.Settings[one.Key] = one.Value
	}
	return found, nil
}

// ListVersions lists the versions of a queue's settings that are kept, the newest first.
func (c *Client) ListVersions(ctx context.Context, queue string) ([]QueueVersion, error) {
	var reply wire.ListVersionsResult
	q := query{op: "versions of queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue),
		repeatable: true, body: &wire.ListVersions{Queue: queue}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	versions := make([]QueueVersion, len(reply.Versions))
	for i, one := range reply.Versions {
		versions[i] = QueueVersion{Version: one.Version, MadeAt: time.UnixMilli(int64(one.AtMs)), Who: one.Who,
			Note: one.Note, Changed: one.Changed}
	}
	return versions, q.refusal(reply.Code, reply.Message)
}
