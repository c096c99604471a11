package fila

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/faiscadev/fila/sdks/go/internal/vectors"
	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

func TestAddressesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, wanted := range map[string]string{
		"localhost:5555": "localhost:5555", "broker": "broker:5555", "[::1]:9": "[::1]:9", "[::1]": "[::1]:5555",
		"http://a:1/": "a:1", "HTTPS://a": "a:5555 tls", " a:1 ": "a:1",
	} {
		got, encrypted, err := parseAddress(text)
		if encrypted {
			got += " tls"
		}
		if err != nil || got != wanted {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":5555", "a:0", "a:70000", "a:b", "::1", "[::1"} {
		if got, _, err := parseAddress(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

func itemsOf(n, size int) []item {
	cl := newCall("", kindEnqueue, n)
	items := make([]item, n)
	for i := range items {
		items[i] = item{call: cl, index: i, size: size}
	}
	return items
}

func TestAutoSendsAtOnceAndThenCollectsUntilThereIsEnough(t *testing.T) {
	c := collector{mode: Auto(), maxItems: 1000, maxBytes: 1 << 20}
	c.add(itemsOf(1, 10))
	if !c.due() || len(c.take()) != 1 {
		t.Fatal("a lone call waits")
	}
	c.inFlight = 1
	c.add(itemsOf(99, 10))
	if c.due() {
		t.Error("it does not wait for the answer")
	}
	c.add(itemsOf(1, 10))
	if !c.due() || len(c.take()) != 100 || c.bytes != 0 {
		t.Error("a hundred wait for company")
	}
}

func TestAFrameIsBoundedAndALargeMessageGoesAlone(t *testing.T) {
	c := collector{mode: Auto(), maxItems: 3, maxBytes: 100}
	c.add(itemsOf(4, 10))
	c.add(itemsOf(1, 500))
	var sizes []int
	for c.due() {
		sizes = append(sizes, len(c.take()))
	}
	if len(sizes) != 3 || sizes[0] != 3 || sizes[1] != 1 || sizes[2] != 1 {
		t.Errorf("frames of %v", sizes)
	}
}

func TestLingerWaitsAndDisabledKeepsCallsApart(t *testing.T) {
	c := collector{mode: Linger(time.Hour), maxItems: 10, maxBytes: 1 << 20}
	c.add(itemsOf(2, 10))
	if c.due() || c.wait() <= 0 {
		t.Error("it does not linger")
	}
	c.oldest = time.Now().Add(-2 * time.Hour)
	if !c.due() {
		t.Error("it lingers too long")
	}
	d := collector{mode: Disabled(), maxItems: 10, maxBytes: 1 << 20}
	d.add(itemsOf(2, 10))
	d.add(itemsOf(3, 10))
	if len(d.take()) != 2 || len(d.take()) != 3 {
		t.Error("calls share frames")
	}
}

// Callers can reach their deadlines together, with a broker away and everything waiting.
func TestThousandsWhoGiveUpTogetherTakeNoTime(t *testing.T) {
	const callers = 50_000
	c := collector{mode: Auto(), maxItems: 1000, maxBytes: 1 << 20, inFlight: 1}
	calls := make([]*call, callers)
	for i := range calls {
		one := itemsOf(1, 100)
		calls[i] = one[0].call
		c.add(one)
	}
	freed, searches := 0, 0
	for _, cl := range calls[:callers-1] {
		cl.abandon(closedError(""))
		if dropped := c.forget(1, 100); dropped > 0 {
			freed += dropped
			searches++
		}
	}
	if searches > 200 { // each looks at all that wait; one for every caller would be the square of them
		t.Errorf("all items were looked through %d times", searches)
	}
	if len(c.items) > 8 || freed+c.bytes != callers*100 || len(c.items)*100 != c.bytes {
		t.Errorf("%d items of %d bytes wait, %d bytes were freed", len(c.items), c.bytes, freed)
	}
}

func TestTheGateLetsInInOrderAndALargeOneAlone(t *testing.T) {
	g := gate{limit: 100}
	ctx, cancel := context.WithCancel(context.Background())
	if g.enter(ctx, 500) != nil {
		t.Fatal("what is larger than the bound must go alone")
	}
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { large <- g.enter(ctx, 90) }()
	for {
		g.mu.Lock()
		n := g.waiting.Len()
		g.mu.Unlock()
		if n == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	go func() { small <- g.enter(context.Background(), 20) }()
	time.Sleep(20 * time.Millisecond)
	select {
	case <-small:
		t.Fatal("who came later was let in first")
	default:
	}
	cancel()
	if err := <-large; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	g.leave(500)
	if err := <-small; err != nil || g.used != 20 {
		t.Errorf("%v, %d used", err, g.used)
	}
}

// The hot path has codecs of its own; they agree with the generated ones on the golden vectors.
func TestTheHotPathAgreesWithTheVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Name   string
			Opcode uint8
			Bytes  any
		}
	}
	if err := vectors.Load("hot.json", &file); err != nil {
		t.Fatal(err)
	}
	deliveries, enqueues := 0, 0
	for _, v := range file.Vectors {
		raw, err := vectors.Bytes(v.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.NewFrameReader(bytes.NewReader(raw), wire.DefaultLimits).Next()
		if err != nil {
			t.Fatal(err)
		}
		switch v.Opcode {
		case wire.OpDelivery:
			deliveries++
			var wanted wire.Delivery
			if err := wire.Decode(m.Body, &wanted); err != nil {
				t.Fatal(err)
			}
			got, err := decodeDelivery(m.Body, newStream(nil, "", 1), nil)
			if err != nil || len(got) != len(wanted.Messages) {
				t.Fatalf("%s: %v", v.Name, err)
			}
			for i, w := range wanted.Messages {
				g := got[i]
				if g.ID != w.ID || g.Queue != w.Queue || len(g.Headers) != len(w.Headers) || !bytes.Equal(g.Payload, w.Payload) ||
					g.FairnessKey != w.FairnessKey || g.Weight != w.Weight || len(g.ThrottleKeys) != len(w.ThrottleKeys) ||
					g.AttemptCount != w.AttemptCount || uint64(g.LeasedAt.UnixMilli()) != w.LeasedAtMs {
					t.Errorf("%s: %+v", v.Name, g)
				}
			}
			for cut := range min(len(m.Body), 1000) {
				if _, err := decodeDelivery(m.Body[:cut], newStream(nil, "", 1), nil); err == nil {
					t.Errorf("%s cut to %d bytes is accepted", v.Name, cut)
				}
			}
		case wire.OpEnqueue:
			var e wire.Enqueue
			if err := wire.Decode(m.Body, &e); err != nil {
				t.Fatal(err)
			}
			if len(e.Messages) != 1 || len(e.Messages[0].Headers) > 1 {
				continue
			}
			enqueues++
			one := e.Messages[0]
			headers := map[string]string{}
			for _, pair := range one.Headers {
				headers[pair.Key] = pair.Value
			}
			cl := newCall("", kindEnqueue, 1)
			cl.messages = []EnqueueMessage{{Queue: one.Queue, Headers: headers, Payload: one.Payload}}
			wanted, err := wire.Encode(nil, &e)
			if err != nil {
				t.Fatal(err)
			}
			if got := (item{call: cl}).appendTo([]byte{0, 0, 0, 1}); !bytes.Equal(got, wanted) {
				t.Errorf("%s: encoded %.200x", v.Name, got)
			}
		}
	}
	if deliveries == 0 || enqueues == 0 {
		t.Error("no vectors were found")
	}
}

// A delivery can come between the end of a consumer and its cancel: nobody has read it, so it goes back.
func TestADeliveryInTheMomentOfACloseIsHandedBack(t *testing.T) {
	c := &Client{cfg: newConfig(nil), streams: map[*stream]struct{}{}}
	l := newLink(c, "localhost:5555", true)
	c.seed = l
	l.conn = &connection{frameMax: wire.FrameBytesMax}
	s := newStream(c, "q", 10)
	c.join(s)
	l.subscribe(s)
	id := s.id
	deliver := func(message string) {
		body, err := wire.Encode(nil, &wire.Delivery{Messages: []wire.DeliveryItem{{ID: message, Queue: "q"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.deliver(wire.Message{Opcode: wire.OpDelivery, RequestID: id, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	deliver("unread")
	unread := s.finish(nil)
	deliver("in between")
	l.unsubscribe(s, unread)
	deliver("after the cancel")
	frames := wire.NewFrameReader(bytes.NewReader(l.out), wire.DefaultLimits)
	var released []string
	for {
		m, err := frames.Next()
		if err != nil {
			break
		}
		var r wire.Release
		if m.Opcode == wire.OpRelease && wire.Decode(m.Body, &r) == nil {
			for _, one := range r.Messages {
				released = append(released, one.ID)
			}
		}
	}
	if len(released) != 3 || released[0] != "unread" || released[1] != "in between" {
		t.Errorf("handed back: %q", released)
	}
}

// endsAfter is a context that ends between two looks at it, and tells nobody.
type endsAfter struct {
	context.Context
	looks int
}

func (c *endsAfter) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

func aStream() *stream {
	c := &Client{cfg: newConfig(nil), streams: map[*stream]struct{}{}}
	return newStream(c, "q", 10)
}

// A reader may be woken for a message and give up at the same moment: another one must hear of it.
func TestAReaderThatGivesUpLeavesTheMessageToAnother(t *testing.T) {
	s := aStream()
	gone := make(chan error)
	go func() {
		_, err := s.next(&endsAfter{context.Background(), 1})
		gone <- err
	}()
	s.push([]*Message{{ID: "1"}})
	if err := <-gone; err == nil {
		return // it found the message before it slept
	} else if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case <-s.notify:
	default:
		t.Error("nobody is told of the message")
	}
}

func TestWhatIsDeliveredDuringABeatIsNotForgottenWithItsAnswer(t *testing.T) {
	s := aStream()
	s.held = map[string]uint64{}
	s.push([]*Message{{ID: "gone"}, {ID: "again"}})
	if asked := s.heldIDs(); len(asked) != 2 {
		t.Fatalf("asked for %q", asked)
	}
	s.push([]*Message{{ID: "again"}}) // its lease ran out, and this consumer got it once more
	s.drop([]string{"gone", "again"})
	if left := s.heldIDs(); len(left) != 1 || left[0] != "again" {
		t.Errorf("held are %q", left)
	}
}

func TestTheChannelFormDropsWhatALostConnectionLeased(t *testing.T) {
	s := aStream()
	c := &Consumer{stream: s, detach: func() bool { return true }}
	messages := c.Messages()
	s.push([]*Message{{ID: "old"}})
	for held := false; !held; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		held = s.hand != nil
		s.mu.Unlock()
	}
	s.disconnected()
	for dropped := false; !dropped; time.Sleep(time.Millisecond) {
		dropped = len(s.revoked) == 0
	}
	s.push([]*Message{{ID: "new"}})
	if m := <-messages; m.ID != "new" {
		t.Errorf("message %q came", m.ID)
	}
	s.close()
}
