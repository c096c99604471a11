package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// BodyError says which field of a body does not parse, and why.
type BodyError struct{ Field, Reason string }

func (e *BodyError) Error() string { return e.Field + ": " + e.Reason }

// Decode reads a body. Bytes after the last known field are ignored: they belong to a later version.
func Decode(data []byte, into Body) error {
	d := Decoder{data: data}
	into.decode(&d)
	return d.Err()
}

// Decoder takes fields off a body. After the first failure every field is zero.
//
// Slices it returns share the body's memory; strings are copies.
type Decoder struct {
	data []byte
	at   int
	err  *BodyError
}

// NewDecoder starts at the beginning of a body.
func NewDecoder(data []byte) Decoder { return Decoder{data: data} }

// Err is the first failure.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// U8 takes an unsigned integer of one byte.
func (d *Decoder) U8(field string) uint8 {
	if b := d.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

// U16 takes an unsigned integer of two bytes.
func (d *Decoder) U16(field string) uint16 {
	if b := d.take(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// U32 takes an unsigned integer of four bytes.
func (d *Decoder) U32(field string) uint32 {
	if b := d.take(field, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// U64 takes an unsigned integer of eight bytes.
func (d *Decoder) U64(field string) uint64 {
	if b := d.take(field, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// I64 takes a signed integer.
func (d *Decoder) I64(field string) int64 { return int64(d.U64(field)) }

// F64 takes a double.
func (d *Decoder) F64(field string) float64 { return math.Float64frombits(d.U64(field)) }

// Bool takes one byte that is 0 or 1.
func (d *Decoder) Bool(field string) bool {
	v := d.U8(field)
	if v > 1 {
		d.fail(field, fmt.Sprintf("a bool is 0 or 1, not %d", v))
		return false
	}
	return v == 1
}

// String takes a text and copies it.
func (d *Decoder) String(field string) string { return string(d.Text(field)) }

// Text takes a text without copying it.
func (d *Decoder) Text(field string) []byte {
	b := d.take(field, int(d.U16(field)))
	if !utf8.Valid(b) {
		d.fail(field, "not valid UTF-8")
		return nil
	}
	return b
}

// Bytes takes a byte string without copying it. Appending to it never writes into the body.
func (d *Decoder) Bytes(field string) []byte {
	n := d.U32(field)
	if uint64(n) > uint64(len(d.data)-d.at) {
		d.short(field, uint64(n))
		return nil
	}
	b := d.take(field, int(n))
	return b[:len(b):len(b)]
}

// Map takes pairs in wire order. Of one key twice the last value counts.
func (d *Decoder) Map(field string) []Pair {
	pairs := make([]Pair, d.countU16(field, 4))
	for i := range pairs {
		pairs[i].Key = d.String("key")
		pairs[i].Value = d.String("value")
		if d.err != nil {
			d.err.Field = fmt.Sprintf("%s[%d] %s", field, i, d.err.Field)
			return nil
		}
	}
	return unique(pairs)
}

func unique(pairs []Pair) []Pair {
	if len(pairs) < 2 {
		return pairs
	}
	places := make(map[string]int, len(pairs))
	kept := pairs[:0]
	for _, pair := range pairs {
		if i, ok := places[pair.Key]; ok {
			kept[i].Value = pair.Value
			continue
		}
		places[pair.Key] = len(kept)
		kept = append(kept, pair)
	}
	return kept
}

// Strings takes a list.
func (d *Decoder) Strings(field string) []string {
	list := make([]string, d.countU16(field, 2))
	for i := range list {
		list[i] = d.String("")
		if d.err != nil {
			d.err.Field = fmt.Sprintf("%s[%d]", field, i)
			return nil
		}
	}
	return list
}

// Nullable takes a presence byte, and the text if there is one.
func (d *Decoder) Nullable(field string) *string {
	if !d.Bool(field) {
		return nil
	}
	v := d.String(field)
	return &v
}

// countU16 and countU32 take a count and check it against the bytes that are there, so that nobody
// reserves memory for a claim.
func (d *Decoder) countU16(field string, least int) int {
	return d.checked(field, uint64(d.U16(field)), least)
}

func (d *Decoder) countU32(field string, least int) int {
	return d.checked(field, uint64(d.U32(field)), least)
}

func (d *Decoder) checked(field string, n uint64, least int) int {
	if d.err != nil {
		return 0
	}
	if n*uint64(least) > uint64(len(d.data)-d.at) {
		d.fail(field, fmt.Sprintf("%d entries cannot stand in %d bytes", n, len(d.data)-d.at))
		return 0
	}
	return int(n)
}

// more reports whether a trailing field is there.
func (d *Decoder) more() bool { return d.err == nil && d.at < len(d.data) }

// within reports a failure inside entry i of a list and says so in its field.
func (d *Decoder) within(field string, i int) bool {
	if d.err == nil {
		return false
	}
	d.err.Field = fmt.Sprintf("%s[%d].%s", field, i, d.err.Field)
	return true
}

func (d *Decoder) take(field string, n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.data)-d.at {
		d.short(field, uint64(n))
		return nil
	}
	b := d.data[d.at : d.at+n]
	d.at += n
	return b
}

func (d *Decoder) short(field string, wanted uint64) {
	d.fail(field, fmt.Sprintf("%d bytes expected, %d left", wanted, len(d.data)-d.at))
}

func (d *Decoder) fail(field, reason string) {
	if d.err == nil {
		d.err = &BodyError{field, reason}
	}
}
