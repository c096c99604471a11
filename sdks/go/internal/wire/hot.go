package wire

import "encoding/binary"

// The hot path's bodies are written straight from the caller's values. Texts have been checked with
// CheckString before.

// AppendText appends a string.
func AppendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// AppendMessage appends an item of Enqueue. The header (key, value) is added if value is not empty
// and the headers do not have it.
func AppendMessage(b []byte, queue string, headers map[string]string, key, value string, payload []byte) []byte {
	b = AppendText(b, queue)
	n := len(headers)
	if _, has := headers[key]; has {
		value = ""
	}
	if value != "" {
		n++
	}
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	for k, v := range headers {
		b = AppendText(b, k)
		b = AppendText(b, v)
	}
	if value != "" {
		b = AppendText(b, key)
		b = AppendText(b, value)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// AppendOptions appends what an item of EnqueueWith has more than one of Enqueue.
func AppendOptions(b []byte, delayMs uint64, idempotencyKey, fairnessKey string, weight uint32, throttleKeys []string) []byte {
	b = binary.BigEndian.AppendUint64(b, delayMs)
	b = AppendText(b, idempotencyKey)
	b = AppendText(b, fairnessKey)
	b = binary.BigEndian.AppendUint32(b, weight)
	b = binary.BigEndian.AppendUint16(b, uint16(len(throttleKeys)))
	for _, key := range throttleKeys {
		b = AppendText(b, key)
	}
	return b
}

// Deliveries takes the count of a Delivery.
func (d *Decoder) Deliveries() int { return d.countU32("messages", 38) }

// Count takes a count of two bytes whose entries have at least so many bytes.
func (d *Decoder) Count(field string, least int) int { return d.countU16(field, least) }

// Browsed takes the count of a page's messages.
func (d *Decoder) Browsed() int { return d.countU32("messages", 39) }
