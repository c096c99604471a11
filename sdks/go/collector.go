package fila

import "time"

// enough items need not wait for company.
const enough = 100

// collector holds items of one kind until they become a frame. It decides when that is; the link
// sends.
//
//   - auto: at once when nothing of this kind is under way or when there is enough for a frame of
//     its own, else when an answer comes.
//   - linger: when the oldest item has waited long enough or the frame is full.
//   - disabled: one frame for every call.
type collector struct {
	mode     BatchMode
	maxItems int
	maxBytes int
	inFlight int // frames
	items    []item
	bytes    int
	left     int       // items of callers who have gone, at most, see forget
	leftover int       // their bytes
	oldest   time.Time // only when lingering
}

func (c *collector) add(items []item) {
	if len(c.items) == 0 && c.mode.kind == batchLinger {
		c.oldest = time.Now()
	}
	c.items = append(c.items, items...)
	for i := range items {
		c.bytes += items[i].size
	}
}

// putBack takes items that must be sent before the others.
func (c *collector) putBack(items []item) {
	rest := c.items
	c.items = append(make([]item, 0, len(items)+len(rest)), items...)
	c.items = append(c.items, rest...)
	for i := range items {
		c.bytes += items[i].size
	}
}

func (c *collector) due() bool {
	switch {
	case len(c.items) == 0:
		return false
	case len(c.items) >= c.maxItems || c.bytes >= c.maxBytes:
		return true
	case c.mode.kind == batchAuto:
		return c.inFlight == 0 || len(c.items) >= enough
	case c.mode.kind == batchLinger:
		return time.Since(c.oldest) >= c.mode.linger
	}
	return true
}

// wait is how long a lingering frame is not due yet, 0 if nothing lingers.
func (c *collector) wait() time.Duration {
	if c.mode.kind != batchLinger || len(c.items) == 0 {
		return 0
	}
	return max(c.mode.linger-time.Since(c.oldest), time.Microsecond)
}

// take is the next frame's items.
func (c *collector) take() []item {
	count, size := 0, 0
	for _, i := range c.items {
		full := count >= c.maxItems || size+i.size > c.maxBytes
		alone := c.mode.kind == batchDisabled && i.call != c.items[0].call
		if count > 0 && (full || alone) {
			break
		}
		count++
		size += i.size
	}
	c.bytes -= size
	taken := c.items[:count:count]
	c.items = c.items[count:]
	if len(c.items) == 0 {
		c.items = nil // the frame keeps the memory
	}
	return taken
}

func (c *collector) takeAll() []item {
	items := c.items
	c.items, c.bytes = nil, 0
	return items
}

// forget is told that a caller has gone and that up to so many items and bytes here are its. They are
// never sent, but dropped only once they may be an eighth of what waits: thousands of callers can reach
// their deadline in one moment, and looking for each one's items would take all of them the square of
// that. It returns the bytes that were dropped.
func (c *collector) forget(items, bytes int) int {
	c.left += items
	c.leftover += bytes
	if 8*c.left < len(c.items) && 8*c.leftover < max(c.bytes, 1) {
		return 0
	}
	c.left, c.leftover = 0, 0
	freed := 0
	kept := c.items[:0]
	for _, i := range c.items {
		if i.gone() {
			freed += i.size
		} else {
			kept = append(kept, i)
		}
	}
	clear(c.items[len(kept):])
	c.items = kept
	c.bytes -= freed
	return freed
}

// split cuts a refused frame into smaller ones: one for each queue, or halves of a single queue's.
func split(items []item) [][]item {
	var order []string
	byQueue := map[string][]item{}
	for _, i := range items {
		q := i.queue()
		if _, ok := byQueue[q]; !ok {
			order = append(order, q)
		}
		byQueue[q] = append(byQueue[q], i)
	}
	if len(order) == 1 {
		return [][]item{items[:len(items)/2], items[len(items)/2:]}
	}
	parts := make([][]item, 0, len(order))
	for _, q := range order {
		parts = append(parts, byQueue[q])
	}
	return parts
}
