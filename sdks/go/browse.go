package fila

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// BrowseState is where a browsed message stood when the snapshot was taken; a query may ask for a
// sum of them.
type BrowseState uint8

// The states a message can be browsed in.
const (
	BrowseReady   BrowseState = 1
	BrowseDelayed BrowseState = 2
	BrowseLeased  BrowseState = 4
	browseAll                 = BrowseReady | BrowseDelayed | BrowseLeased
)

// String is the state in lower case.
func (s BrowseState) String() string {
	switch s {
	case BrowseReady:
		return "ready"
	case BrowseDelayed:
		return "delayed"
	case BrowseLeased:
		return "leased"
	}
	return fmt.Sprintf("states(%d)", uint8(s))
}

// BrowseQuery says what to look at; the zero value takes everything in one part.
type BrowseQuery struct {
	// FairnessKey restricts to one key, which may be the empty one.
	FairnessKey *string
	// States is a sum of states, 0 for all.
	States BrowseState
	// Parts is about how many ranges of equal size the snapshot is cut into, for parallel readers.
	Parts uint16
	// TTL is how long the snapshot lives, 0 for ten minutes.
	TTL time.Duration
}

// BrowsedMessage is a message seen without taking it.
type BrowsedMessage struct {
	ID           string
	Queue        string
	Headers      map[string]string
	Payload      []byte
	FairnessKey  string
	Weight       uint32
	ThrottleKeys []string
	AttemptCount uint32
	EnqueuedAt   time.Time
	// ReadyAt is since or from when it may be delivered.
	ReadyAt time.Time
	State   BrowseState
}

// BrowseRange is a piece of a snapshot.
type BrowseRange struct{ Start, End []byte }

// Snapshot is a queue as it was at one moment, to be read in Ranges, over any connection, until it
// expires or is closed.
type Snapshot struct {
	Token     string
	ExpiresAt time.Time
	Messages  uint64
	Ranges    []BrowseRange
}

// Page is a piece of a range. Next is where the following page starts, empty when the range is read.
type Page struct {
	MessageCount uint32
	Next         []byte
	Messages     []BrowsedMessage // empty when Arrow was asked for
	Arrow        []byte
}

// PageRequest says which page to read. MaxMessages and MaxBytes 0 mean the most there is.
type PageRequest struct {
	Range       BrowseRange
	States      BrowseState
	MaxMessages uint32
	MaxBytes    uint64
	Arrow       bool
}

// Browse reads a queue without taking anything: a snapshot is opened, read and closed by the loop.
// An error is yielded as the last pair.
func (c *Client) Browse(ctx context.Context, queue string, about BrowseQuery) iter.Seq2[*BrowsedMessage, error] {
	return func(yield func(*BrowsedMessage, error) bool) {
		snapshot, err := c.BrowseOpen(ctx, queue, about)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = c.BrowseClose(closing, snapshot.Token) // it expires by itself otherwise
		}()
		for _, piece := range snapshot.Ranges {
			for {
				page, err := c.BrowsePage(ctx, snapshot.Token, PageRequest{Range: piece, States: about.States})
				if err != nil {
					yield(nil, err)
					return
				}
				for i := range page.Messages {
					if !yield(&page.Messages[i], nil) {
						return
					}
				}
				if len(page.Next) == 0 {
					break
				}
				piece.Start = page.Next
			}
		}
	}
}

// BrowseOpen takes a snapshot for several readers. Close it with [Client.BrowseClose].
func (c *Client) BrowseOpen(ctx context.Context, queue string, about BrowseQuery) (*Snapshot, error) {
	var reply wire.BrowseResult
	q := query{op: "browse queue " + quoted(queue), queue: queue, subject: "queue " + quoted(queue), reply: &reply,
		body: &wire.Browse{Queue: queue, FairnessKey: about.FairnessKey, Parts: max(1, about.Parts), TTLMs: millis(about.TTL)}}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, nil); err != nil {
		return nil, err
	}
	found := &Snapshot{Token: reply.Snapshot, ExpiresAt: fromMillis(reply.ExpiresAtMs), Messages: reply.Messages}
	for _, r := range reply.Ranges {
		found.Ranges = append(found.Ranges, BrowseRange(r))
	}
	return found, nil
}

// BrowsePage reads one page of a snapshot.
func (c *Client) BrowsePage(ctx context.Context, token string, page PageRequest) (*Page, error) {
	body := &wire.BrowsePage{
		Snapshot: token, Start: page.Range.Start, End: page.Range.End, States: uint8(page.States),
		MaxMessages: page.MaxMessages, MaxBytes: page.MaxBytes,
	}
	if page.States == 0 {
		body.States = uint8(browseAll)
	}
	if page.Arrow {
		body.Form = formArrow
	}
	var reply wire.BrowsePageResult
	q := query{op: "browse", subject: "snapshot", repeatable: true, body: body, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return nil, err
	}
	if err := q.refusal(reply.Code, nil); err != nil {
		return nil, err
	}
	found := &Page{MessageCount: reply.Messages, Next: reply.Next}
	if reply.Form == formArrow {
		found.Arrow = reply.Body
		return found, nil
	}
	var err error
	if found.Messages, err = decodeBrowsed(reply.Body); err != nil {
		return nil, protocolError("the messages of the page do not parse: %v", err).during(q.op)
	}
	return found, nil
}

// BrowseClose gives a snapshot up before it expires.
func (c *Client) BrowseClose(ctx context.Context, token string) error {
	var reply wire.BrowseCloseResult
	q := query{op: "browse close", subject: "snapshot", body: &wire.BrowseClose{Snapshot: token}, reply: &reply}
	if err := c.ask(ctx, q); err != nil {
		return err
	}
	return q.refusal(reply.Code, nil)
}

func decodeBrowsed(body []byte) ([]BrowsedMessage, error) {
	d := wire.NewDecoder(body)
	messages := make([]BrowsedMessage, d.Browsed())
	for i := range messages {
		m := &messages[i]
		m.ID = d.String("id")
		m.Queue = d.String("queue")
		if pairs := d.Map("headers"); len(pairs) > 0 {
			m.Headers = make(map[string]string, len(pairs))
			for _, pair := range pairs {
				m.Headers[pair.Key] = pair.Value
			}
		}
		m.Payload = d.Bytes("payload")
		m.FairnessKey = d.String("fairness_key")
		m.Weight = d.U32("weight")
		m.ThrottleKeys = d.Strings("throttle_keys")
		m.AttemptCount = d.U32("attempt_count")
		m.EnqueuedAt = fromMillis(d.U64("enqueued_at_ms"))
		m.ReadyAt = fromMillis(d.U64("ready_at_ms"))
		m.State = BrowseState(d.U8("state"))
	}
	return messages, d.Err()
}
